"""cuda-nms: keeps exactly the right boxes on the emulator, for every knob, and planted faults are caught."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autotune.errors import InputError
from autotune.measure.loading.load import load_objective
from autotune.measure.objective import Context
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
    "word": 32, "rows": 64, "tile": 2, "columns_shared": True, "skip": True, "unroll": 4, "walkers": 32,
}  # fmt: skip


@pytest.fixture(scope="module")
def spec() -> StudySpec:
    return read_space("cuda-nms")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cuda-nms")


@pytest.mark.torch
@pytest.mark.parametrize("knobs", [{}, TUNED, {"skip": True, "rows": 32, "walkers": 256}], ids=str)
def test_the_kept_set_is_exact(spec: StudySpec, cache: Path, knobs: dict[str, int]) -> None:
    for boxes, threshold in [(1, 0.5), (63, 0.125), (64, 0.5), (201, 0.625)]:
        objective = on_emulator(spec, cache, boxes=boxes, threshold=threshold)
        assert error(objective, with_knobs(spec, **knobs)) == 0


@pytest.mark.torch
def test_some_boxes_stay_and_some_go(spec: StudySpec, cache: Path) -> None:
    objective = on_emulator(spec, cache, boxes=500)
    kept = objective.reference(objective.make_inputs(np.random.default_rng(0)))["kept"]
    assert 50 < int(kept.sum()) < 450


@pytest.mark.torch
@pytest.mark.parametrize("seed", range(3))
def test_any_configuration_is_right(spec: StudySpec, cache: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    (configuration,) = spec.space.sample(rng, 1)
    assert (
        error(on_emulator(spec, cache, boxes=int(rng.integers(1, 300))), configuration, variations=seed == 0)
        == 0
    )


@pytest.mark.torch
@pytest.mark.parametrize(
    ("right", "count", "wrong", "said"),
    [
        ("__syncthreads();", 1, ";", "no barrier between"),
        ("__syncthreads();", 2, ";", "no barrier between"),
        ("__syncthreads();", 3, ";", "no barrier between"),
        ("if (i >= count)", 1, "if (i > count)", "outside every buffer"),
        ("(count + WORD - 1) / WORD", 2, "count / WORD", ""),
        ("return intersection > threshold", 1, "return intersection >= threshold", "kept["),
        ("later = w + 1 + threadIdx.x", 1, "later = w + 2 + threadIdx.x", "kept["),
    ],
)
def test_a_planted_fault_is_caught(
    spec: StudySpec, tmp_path: Path, right: str, count: int, wrong: str, said: str
) -> None:
    objective = on_emulator(spec, tmp_path, boxes=333, threshold=0.5)
    assert said in is_caught(mutated(objective, right, wrong, tmp_path, count), with_knobs(spec, **TUNED))


def test_a_threshold_that_float32_rounds_is_refused(spec: StudySpec, cache: Path) -> None:
    with pytest.raises(InputError, match="multiple of 1/8"):
        load_objective(spec.objective, Context({"boxes": 8, "threshold": 0.7, "device": "cpu"}, {}, cache))


@compiles
@pytest.mark.parametrize("knobs", [{}, TUNED], ids=str)
def test_it_compiles(spec: StudySpec, cache: Path, knobs: dict[str, int]) -> None:
    program = compiled(spec, with_knobs(spec, **knobs), cache)
    assert program.kernels is not None and set(program.kernels) == {"nms_compare", "nms_walk"}
