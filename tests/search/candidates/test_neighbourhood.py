"""What lies near a configuration: far enough along a scale, whatever a step is."""

from __future__ import annotations

import numpy as np
import pytest

from autotune.search.candidates.neighbourhood import Nearby, Scale, Scales, Surroundings
from autotune.search.models.features import Features
from autotune.space.configuration import Configuration
from autotune.space.knobs import (
    Assignment,
    Choice,
    Flag,
    FloatRange,
    IntegerRange,
    OrderedValues,
    Permutation,
)
from autotune.space.knobs.knob import Knob
from autotune.space.reading.reader import parse_spec
from autotune.space.space import Space

TEXT = """
autotune: 1
name: a
objective: a.py:A
knobs:
  rate: {range: [1.0e-4, 1.0], scale: log, default: 1.0e-2}
  kind: {choices: [sgd, adam], default: sgd}
  momentum: {range: [0.5, 0.99], default: 0.9, when: "kind == 'sgd'"}
  batch: {range: [8, 512], scale: log, default: 64}
  clip: {values: [0.0, 0.5, 1.0], default: 0.0}
  stages: {range: [1, 6], default: 6}
  deep: {flag: false, when: "stages >= 4"}
"""
SPACE = parse_spec(TEXT, "space.yaml").space
FEATURES = Features(SPACE)


def made(seed: int = 0) -> tuple[Configuration, list[Configuration]]:
    scales = Scales(FEATURES)
    centre = SPACE.default()
    around = Surroundings.of(FEATURES, scales, centre)
    nearby = Nearby.around(FEATURES, scales, [around], np.random.default_rng(seed))
    return centre, [c for i in range(len(nearby)) if (c := nearby[i]) is not None]


def changed(centre: Configuration, other: Configuration) -> set[str]:
    return {name for name in centre.keys() | other.keys() if centre.get(name) != other.get(name)}


KNOBS: list[Knob] = [
    IntegerRange("a", 8, 512, scale="log"),
    IntegerRange("a", 1, 1000, step=3),
    IntegerRange("a", 1, 4096, scale="log2"),
    IntegerRange("a", 1, 1_000_000, scale="log"),
    IntegerRange("a", -500_000, 500_000, step=7),
    OrderedValues("a", (1, 2, 3, 5, 100, 1000)),
    FloatRange("a", 0.0, 1.0, step=0.1),
]


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: str(knob.domain))
def test_each_value_is_nearest_to_its_own_place(knob: Knob) -> None:
    scale = Scale(knob, 0)
    count = len(knob.cells[0].values)
    cells = np.unique(np.linspace(0, count - 1, 5000).astype(np.int64))
    positions = scale.positions(cells)
    assert (np.diff(positions) > 0).all()
    assert (scale.cells(positions) == cells).all()
    assert scale.cells(np.array([0.0, 1.0])).tolist() == [0, count - 1]


def test_a_long_range_is_crossed_in_one_move() -> None:
    _, near = made()
    batches = {c["batch"] for c in near}
    assert max(batches) > 2 * min(batches)  # type: ignore[type-var,operator]
    assert len(batches) > 8


def test_knobs_are_moved_alone_and_together() -> None:
    centre, near = made()
    ways = [changed(centre, c) for c in near]
    for name in ("rate", "momentum", "batch"):
        assert ways.count({name}) >= 4
    assert {"rate", "momentum", "batch"} in ways


def test_what_decides_which_others_exist_is_not_moved() -> None:
    names = {knob.name for knob in Scales(FEATURES).knobs}
    assert names == {"rate", "momentum", "batch"}


def test_a_space_without_scales_has_its_neighbours_alone() -> None:
    space = Space([Choice("a", ("x", "y", "z")), Flag("b")])
    features = Features(space)
    scales = Scales(features)
    around = Surroundings.of(features, scales, space.default())
    nearby = Nearby.around(features, scales, [around], np.random.default_rng(0))
    assert [nearby[i] for i in range(len(nearby))] == space.neighbours(space.default())
    assert len(Nearby(scales, features.of([]))) == 0


def test_of_an_order_of_many_items_neighbours_are_drawn_anew_each_time() -> None:
    order = Permutation("order", tuple(range(200)))
    place = Assignment("place", tuple(f"i{i}" for i in range(100)), (0, 1, 2, 3), when="f")
    space = Space([Flag("f"), order, place], ["order[100] == 100"])
    features = Features(space)
    scales = Scales(features)
    here = space.configuration({"f": True})
    part = Surroundings.of(features, scales, here)
    assert len(part.neighbours) == 1, "of the flag alone"
    rng = np.random.default_rng(0)
    near, again = (Nearby.around(features, scales, [part], rng) for _ in range(2))
    assert len(near) == 1 + sum(crowd.count for crowd in scales.crowds)
    found = [near[i] for i in range(1, len(near))]
    assert None in found, "some break the constraint"
    made = [one for one in found if one is not None]
    assert all(one in space for one in made)
    assert {frozenset(changed(here, one)) for one in made} == {frozenset({"order"}), frozenset({"place"})}
    assert (near.inputs.codes != again.inputs.codes).any()
    rows = [i for i in range(len(near)) if near[i] is not None]
    told = features.of([one for i in rows if (one := near[i]) is not None])
    assert (told.codes == near.inputs.codes[rows]).all()


def test_what_does_not_exist_has_no_neighbours_drawn() -> None:
    place = Assignment("place", tuple(f"i{i}" for i in range(200)), (0, 1, 2, 3), when="f")
    space = Space([Flag("f", default=False), place])
    features = Features(space)
    scales = Scales(features)
    around = Surroundings.of(features, scales, space.default())
    nearby = Nearby.around(features, scales, [around], np.random.default_rng(0))
    assert [nearby[i] for i in range(len(nearby))] == [space.configuration({"f": True})]


def test_some_of_the_knobs_move_together_and_not_the_same_ones_each_time() -> None:
    centre, around = made()
    several = {frozenset(changed(centre, other) & {"rate", "batch", "momentum"}) for other in around}
    assert several >= {frozenset(pair) for pair in (("rate", "batch"), ("rate", "momentum"))}
