"""The grid visits everything once, and its beginning is spread over every knob."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.search.contract import Observation, Problem
from autotune.search.strategies import grid
from autotune.search.strategies.grid import Grid, alikeness, strided
from autotune.space.knobs import Choice, Flag, FloatRange, IntegerRange, OrderedValues, Permutation
from autotune.space.knobs.knob import Knob
from autotune.space.space import Space
from autotune.status import Status
from tests.search.spaces import TIME


def first(space: Space, n: int) -> list[Mapping[str, Any]]:
    return [p.configuration for p in Grid(Problem(space, (TIME,))).ask(n)]


@given(size=st.integers(1, 3000), multiple=st.integers(1, 32))
def test_a_stride_visits_each_number_once(size: int, multiple: int) -> None:
    assert sorted(strided(size, multiple)) == list(range(size))


@given(size=st.integers(100, 10**30), multiple=st.integers(1, 32))
def test_a_stride_never_needs_the_numbers_listed(size: int, multiple: int) -> None:
    walk = strided(size, multiple)
    assert len({next(walk) for _ in range(50)}) == 50


@pytest.mark.parametrize("items", [5, 6, 7, 8, 9])
def test_every_item_of_an_order_comes_to_every_position(items: int) -> None:
    space = Space([Permutation("order", tuple(f"i{n}" for n in range(items)))])
    orders = [c["order"] for c in first(space, 60)]
    for position in range(items):
        counts = Counter(order[position] for order in orders)
        assert len(counts) == items
        assert max(counts.values()) <= 2.5 * 60 / items


@pytest.mark.parametrize("others", [[], [FloatRange("rate", 0.0, 1.0)]])
def test_more_configurations_than_a_length_can_hold(others: list[Knob]) -> None:
    space = Space([*(OrderedValues(f"k{n}", tuple(range(10))) for n in range(30)), *others])
    seen = first(space, 20)
    assert len({tuple(c.values()) for c in seen}) == 20
    assert all(c in space for c in seen)


def test_a_resumed_grid_goes_on_from_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "PATIENCE", 20)
    space = Space([OrderedValues("a", tuple(range(10))), FloatRange("b", 0.0, 1.0)], constraints=["a >= 5"])
    whole, resumed = Grid(Problem(space, (TIME,))), Grid(Problem(space, (TIME,)))
    tried = [p.configuration for p in whole.ask(60)]
    resumed.restore(1, tried, [Observation(c, Status.OK, {"time": 1.0}) for c in tried])
    [after], [proposal] = whole.ask(1), resumed.ask(1)
    assert proposal.reason["kind"] == "grid"
    assert proposal.configuration == after.configuration


def test_a_walk_without_patience_left_is_not_taken_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "PATIENCE", 20)
    space = Space([FloatRange("a", 0.0, 1.0), FloatRange("b", 0.0, 1.0)], constraints=["a + b > 1.9"])
    walker = Grid(Problem(space, (TIME,)))
    kinds = [walker.ask(1)[0].reason["kind"] for _ in range(30)]
    assert kinds == sorted(kinds)
    assert set(kinds) == {"grid", "uniform"}


def test_a_walk_that_only_repeats_itself_ends() -> None:
    space = Space([FloatRange("pinned", 1.0, 1.0), Choice("kind", ("a", "b"))])
    assert len(Grid(Problem(space, (TIME,))).ask(5)) == 2


def test_every_branch_and_its_knobs_are_seen_about_as_often_as_they_occur() -> None:
    space = Space(
        [
            Choice("solver", ("direct", "blocked", "iterative")),
            IntegerRange("block", 1, 16, when="solver == 'blocked'"),
            OrderedValues("threads", (1, 2, 4, 8)),
            IntegerRange("sweeps", 1, 20, when="solver == 'iterative'"),
            Flag("damped", when="solver == 'iterative' and sweeps > 10"),
        ],
        constraints=["block * threads <= 64"],
    )
    everything = list(space.feasible)
    seen = first(space, 60)
    for knob in space.knobs:
        whole, part = (Counter(str(c.get(knob.name)) for c in some) for some in (everything, seen))
        off = sum(abs(part[v] / len(seen) - whole[v] / len(everything)) for v in whole) / 2
        assert off < 0.2, f"{knob.name}: {part}"


def test_pairs_of_knobs_are_spread_at_least_as_well_as_at_random() -> None:
    space = Space([OrderedValues(f"k{n}", tuple(range(10))) for n in range(5)])
    cells = [(True, 10)] * 5
    walked = np.array([[c[f"k{n}"] for n in range(5)] for c in first(space, 64)])
    drawn = [np.random.default_rng(seed).integers(10, size=(64, 5)) for seed in range(10)]
    assert alikeness(walked, cells) < min(alikeness(rows, cells) for rows in drawn)


def test_a_range_is_refined_while_the_choices_beside_it_go_round() -> None:
    space = Space([FloatRange("rate", 0.0, 1.0), Choice("kind", ("a", "b", "c"))])
    seen = first(space, 15)
    assert Counter(c["kind"] for c in seen) == {"a": 5, "b": 5, "c": 5}
    assert {c["rate"] for c in seen} == {0.0, 0.25, 0.5, 0.75, 1.0}


def test_ranges_and_choices_are_spread_together() -> None:
    space = Space([FloatRange("x", 0.0, 1.0), FloatRange("y", 0.0, 1.0), Choice("kind", tuple("abcdefg"))])
    seen = first(space, 63)  # 3 x 3 x 7
    for name in ("x", "y", "kind"):
        assert len(set(Counter(c[name] for c in seen).values())) == 1
    early = Counter((c["x"], c["y"]) for c in seen[:18])
    assert len(early) == 9


def test_a_knob_that_hangs_on_a_range_is_visited_too() -> None:
    space = Space(
        [
            FloatRange("rate", 0.0, 1.0),
            Choice("decay", ("none", "step", "cosine"), when="rate > 0.4"),
            Flag("warm", when="rate > 0.9"),
        ]
    )
    seen = first(space, 12)
    assert {c.get("decay") for c in seen} == {None, "none", "step", "cosine"}
    assert {c.get("warm") for c in seen} == {None, False, True}
    assert all(c in space for c in seen)
