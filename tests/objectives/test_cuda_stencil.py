"""cuda-stencil: right on the emulator for every shape and number of steps; planted faults are caught."""

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
    read_space,
    with_knobs,
)

TUNED = {
    "block_x": 16, "block_y": 4, "tile_x": 1, "tile_y": 2, "fused": 3, "power_shared": True, "unroll": 2,
    "min_blocks": 2,
}  # fmt: skip


@pytest.fixture(scope="module")
def spec() -> StudySpec:
    return read_space("cuda-stencil")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cuda-stencil")


@pytest.mark.torch
@pytest.mark.parametrize("knobs", [{}, TUNED, {**TUNED, "fused": 4, "power_shared": False}], ids=str)
def test_ragged_shapes_and_steps_are_right(spec: StudySpec, cache: Path, knobs: dict[str, int]) -> None:
    for height, width, steps in [(1, 1, 1), (33, 35, 7), (12, 97, 8)]:
        objective = on_emulator(spec, cache, height=height, width=width, steps=steps)
        assert error(objective, with_knobs(spec, **knobs)) < 1e-5


@pytest.mark.torch
@pytest.mark.parametrize("seed", range(3))
def test_any_configuration_is_right(spec: StudySpec, cache: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    (configuration,) = spec.space.sample(rng, 1)
    height, width = (int(size) for size in rng.integers(1, 60, 2))
    assert (
        error(
            on_emulator(spec, cache, height=height, width=width, steps=5), configuration, variations=seed == 0
        )
        < 1e-5
    )


@pytest.mark.torch
@pytest.mark.parametrize(
    ("right", "count", "wrong", "said"),
    [
        ("__syncthreads();", 1, ";", "no barrier between"),
        ("__syncthreads();", 2, ";", "no barrier between"),
        ("x >= HELD_X - ring", 1, "x > HELD_X - ring", ""),
        ("row < height - 1", 1, "row < height", "out["),
        ("column >= width", 2, "column > width", "outside every buffer"),
    ],
)
def test_a_planted_fault_is_caught(
    spec: StudySpec, tmp_path: Path, right: str, count: int, wrong: str, said: str
) -> None:
    objective = on_emulator(spec, tmp_path, height=37, width=41, steps=5)
    assert said in is_caught(mutated(objective, right, wrong, tmp_path, count), with_knobs(spec, **TUNED))


@compiles
@pytest.mark.parametrize("knobs", [{}, TUNED], ids=str)
def test_it_compiles(spec: StudySpec, cache: Path, knobs: dict[str, int]) -> None:
    program = compiled(spec, with_knobs(spec, **knobs), cache)
    assert program.kernels is not None and program.kernels["stencil"].spill_store_bytes == 0


@pytest.mark.torch
def test_the_steps_in_pytorch_are_right(spec: StudySpec, cache: Path) -> None:
    objective = on_emulator(spec, cache, height=33, width=20, steps=4)
    (baseline,) = objective.baselines()
    assert objective.check(objective.load_baseline(baseline), np.random.default_rng(1))["error"] < 1e-5
