"""cuda-gemm: right on the emulator for every shape and knob; planted faults are caught."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autotune.space.spec import StudySpec
from tests.objectives.cuda import (
    compiled,
    compiles,
    error,
    is_caught,
    mutated,
    on_emulator,
    on_profile,
    read_space,
    with_knobs,
)

SHAPES = [(1, 1, 1), (64, 64, 32), (70, 52, 36), (19, 130, 67)]

TUNED = {
    "block_m": 32, "block_n": 64, "block_k": 8, "thread_m": 4, "thread_n": 4, "load": 4, "read": 4,
    "stages": 2, "pad": 4, "group": 2, "unroll": 8, "min_blocks": 2,
}  # fmt: skip


@pytest.fixture(scope="module")
def spec() -> StudySpec:
    return read_space("cuda-gemm")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cuda-gemm")


@pytest.mark.torch
@pytest.mark.parametrize("knobs", [{}, TUNED, {**TUNED, "stages": 1, "load": 2, "read": 2}], ids=str)
def test_ragged_shapes_are_right(spec: StudySpec, cache: Path, knobs: dict[str, int]) -> None:
    for m, n, k in SHAPES:
        assert error(on_emulator(spec, cache, m=m, n=n, k=k), with_knobs(spec, **knobs)) < 1e-5


@pytest.mark.torch
@pytest.mark.parametrize("seed", range(4))
def test_any_configuration_is_right(spec: StudySpec, cache: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    (configuration,) = spec.space.sample(rng, 1)
    m, n, k = (int(size) for size in rng.integers(1, 150, 3))
    assert error(on_emulator(spec, cache, m=m, n=n, k=k), configuration, variations=seed == 0) < 1e-5


@pytest.mark.torch
@pytest.mark.parametrize(
    ("right", "count", "wrong", "said"),
    [
        ("__syncthreads();", 1, "", "no barrier between"),
        ("__syncthreads();", 2, "", "no barrier between"),
        ("__syncthreads();", 3, "", "no barrier between"),
        ("at_row < m", 1, "at_row <= m", "outside every buffer"),
        ("column + i < columns ?", 1, "column + i <= columns ?", ""),
        ("depth < k;", 1, "depth < k - BLOCK_K;", "c["),
        ("c[(size_t)at_row * n + at_column] = sum[i][j];", 1, ";", "perhaps never written"),
    ],
)
def test_a_planted_fault_is_caught(
    spec: StudySpec, cache: Path, tmp_path: Path, right: str, count: int, wrong: str, said: str
) -> None:
    gemm = on_emulator(spec, tmp_path, m=37, n=41, k=35)
    knobs = with_knobs(spec, **{**TUNED, "stages": 1})
    assert said in is_caught(mutated(gemm, right, wrong, tmp_path, count), knobs)


@compiles
def test_it_compiles_and_says_what_it_takes(spec: StudySpec, cache: Path) -> None:
    program = compiled(spec, with_knobs(spec, **TUNED), cache)
    code = on_profile(spec, cache).code(program)
    assert 32 <= code.resources["registers"] <= 255 and code.resources["spilled_bytes"] == 0
    assert code.resources["shared_bytes"] == 4 * 2 * 8 * (32 + 4 + 64)
    assert code.fingerprint and code.facts["compile_seconds"] > 0  # type: ignore[operator]


@pytest.mark.torch
def test_the_vendor_is_right(spec: StudySpec, cache: Path) -> None:
    gemm = on_emulator(spec, cache, m=33, n=20, k=65)
    (vendor,) = gemm.baselines()
    assert gemm.check(gemm.load_baseline(vendor), np.random.default_rng(1))["error"] < 1e-5
