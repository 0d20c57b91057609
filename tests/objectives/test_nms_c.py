"""nms-c finds the one kept set for every knob, and so does what it is measured against."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune.measure.objective import WrongAnswer
from tests.objectives.ready import Ready, ready

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="nms-c is compiled by gcc")


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Ready:
    return ready("nms-c", tmp_path_factory.mktemp("nms"))


def ratio(a: np.ndarray, b: np.ndarray) -> Fraction:
    """Intersection over union of two boxes, exactly."""
    width = max(0, int(min(a[2], b[2]) - max(a[0], b[0])))
    height = max(0, int(min(a[3], b[3]) - max(a[1], b[1])))
    areas = [int(box[2] - box[0]) * int(box[3] - box[1]) for box in (a, b)]
    return Fraction(width * height, sum(areas) - width * height)


@pytest.mark.parametrize("overlap", [0.25, 0.5, 45 / 64])
def test_the_oracle_is_the_definition(space: Ready, overlap: float) -> None:
    objective = space.objective(boxes=80, objects=4, overlap=overlap)
    inputs = objective.make_inputs(np.random.default_rng(0))
    boxes, kept = inputs["boxes"], []
    for i in range(80):
        if all(ratio(boxes[i], boxes[j]) <= Fraction(overlap) for j in kept):
            kept.append(i)
    assert np.flatnonzero(objective.reference(inputs)["keep"]).tolist() == kept
    assert 4 <= len(kept) < 80


def test_its_boxes_can_be_compared_exactly_in_float32(space: Ready) -> None:
    boxes = space.objective().make_inputs(np.random.default_rng(0))["boxes"]
    sides = boxes[:, 2:] - boxes[:, :2]
    assert (boxes == boxes.astype(int)).all() and (boxes >= -26).all() and (sides > 0).all()
    assert 2 * sides.prod(axis=1).max() * 64 < 2**24


@pytest.mark.parametrize("knobs", [{}, {"divide": False}, {"vector": 4, "columns": True}])
def test_to_suppress_at_the_very_limit_is_always_wrong(
    space: Ready, knobs: dict[str, object], tmp_path: Path
) -> None:
    objective = space.objective(boxes=300)
    text = objective.source.read_text()
    assert (text.count("> p->limit"), text.count("> either")) == (3, 1)
    source = tmp_path / objective.source.name
    source.write_text(text.replace("> p->limit", ">= p->limit").replace("> either", ">= either"))
    changed = type("Changed", (type(objective),), {"source": source})(objective.context)
    loaded = changed.load(changed.prepare(space.configuration(**knobs)))
    for seed in range(10):
        with pytest.raises(WrongAnswer, match=r"keep\[\d+\] is 0 instead of 1"):
            objective.check(loaded, np.random.default_rng(seed))


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32 - 1),
    boxes=st.integers(1, 500),
    objects=st.integers(1, 20),
    parts=st.integers(1, 63),
)
def test_any_configuration_finds_the_kept_set(
    space: Ready, seed: int, boxes: int, objects: int, parts: int
) -> None:
    (configuration,) = space.spec.space.sample(np.random.default_rng(seed), 1)
    assert space.error(configuration, {"boxes": boxes, "objects": objects, "overlap": parts / 64}) == 0


@pytest.mark.parametrize("threads", [2, 3])
def test_several_threads_find_the_same(space: Ready, threads: int) -> None:
    knobs = {"threads": threads, "block": 16, "columns": True, "vector": 4, "word": 16}
    configuration = space.configuration(**knobs, early_exit="words")
    assert space.error(configuration, {"boxes": 500, "threads": threads}) == 0


def test_every_baseline_is_right(space: Ready) -> None:
    objective = space.objective(boxes=300)
    for baseline in objective.baselines():
        loaded = objective.load_baseline(baseline)
        assert objective.check(loaded, np.random.default_rng(1))["error"] == 0, baseline


def test_its_work_is_counted_from_what_is_kept(space: Ready) -> None:
    work = space.objective(boxes=1, objects=1).work()
    assert (work.bytes, work.operations) == (17, 0)
    many = space.objective(boxes=300).work()
    assert 13 * 300 < many.operations < 13 * 300 * 299 / 2


def test_a_limit_that_float32_cannot_hold_is_refused(space: Ready) -> None:
    with pytest.raises(Exception, match="multiple of 1/64"):
        space.objective(overlap=0.45)
