"""cuda-convolution: right on the emulator for every shape and knob; planted faults are caught."""

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
    "block_x": 16, "block_y": 4, "tile_x": 2, "tile_y": 3, "image_shared": True, "filter_shared": True,
    "pad": 1, "unroll": 3,
}  # fmt: skip


@pytest.fixture(scope="module")
def spec() -> StudySpec:
    return read_space("cuda-convolution")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cuda-convolution")


@pytest.mark.torch
@pytest.mark.parametrize("knobs", [{}, TUNED, {"read_only": True, "filter_shared": True}], ids=str)
@pytest.mark.parametrize("filter_shape", [(3, 5), (4, 1)], ids=str)
def test_ragged_shapes_are_right(
    spec: StudySpec, cache: Path, knobs: dict[str, int], filter_shape: tuple[int, int]
) -> None:
    rows, columns = filter_shape
    for height, width in [(1, 1), (33, 35), (12, 97)]:
        sizes = {"height": height, "width": width, "filter_height": rows, "filter_width": columns}
        assert error(on_emulator(spec, cache, **sizes), with_knobs(spec, **knobs)) < 1e-5


@pytest.mark.torch
@pytest.mark.parametrize("seed", range(4))
def test_any_configuration_is_right(spec: StudySpec, cache: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    (configuration,) = spec.space.sample(rng, 1)
    height, width = (int(size) for size in rng.integers(1, 60, 2))
    small = {"height": height, "width": width, "filter_height": 3, "filter_width": 4}
    assert error(on_emulator(spec, cache, **small), configuration, variations=seed == 0) < 1e-5


@pytest.mark.torch
@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("__syncthreads();", ";", "no barrier between"),
        ("x < out_width", "x <= out_width", ""),
        ("y < out_height", "y <= out_height", "outside every buffer"),
        ("#define HELD_Y (OUT_Y + FILTER_H - 1)", "#define HELD_Y (OUT_Y + FILTER_H - 2)", ""),
        ("i < FILTER_H * FILTER_W; i += THREADS", "i < FILTER_H * FILTER_W - 1; i += THREADS", ""),
        ("out[(size_t)y * out_width + x] = sum[v][u];", ";", "perhaps never written"),
    ],
)
def test_a_planted_fault_is_caught(
    spec: StudySpec, tmp_path: Path, right: str, wrong: str, said: str
) -> None:
    objective = on_emulator(spec, tmp_path, height=37, width=41, filter_height=3, filter_width=3)
    assert said in is_caught(mutated(objective, right, wrong, tmp_path), with_knobs(spec, **TUNED))


@compiles
@pytest.mark.parametrize("knobs", [{}, TUNED], ids=str)
def test_it_compiles(spec: StudySpec, cache: Path, knobs: dict[str, int]) -> None:
    program = compiled(spec, with_knobs(spec, **knobs), cache)
    assert program.kernels is not None and program.kernels["convolution"].spill_store_bytes == 0


@pytest.mark.torch
def test_the_vendor_is_right(spec: StudySpec, cache: Path) -> None:
    objective = on_emulator(spec, cache, height=33, width=20, filter_height=3, filter_width=5)
    (vendor,) = objective.baselines()
    assert objective.check(objective.load_baseline(vendor), np.random.default_rng(1))["error"] < 1e-5
