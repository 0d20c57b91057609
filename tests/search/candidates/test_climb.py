"""Climbing: from the best candidates to a peak that none of them is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from autotune.search.acquisition.pareto import hypervolume
from autotune.search.candidates.climb import PARENTS, STEPS, Candidate, climb
from autotune.search.candidates.neighbourhood import MOVES
from autotune.search.candidates.pool import Pools
from autotune.search.contract import Observation, Problem
from autotune.search.models.features import Features
from autotune.search.registry import make_strategy
from autotune.space.configuration import Configuration
from autotune.space.knobs import Assignment, Choice, FloatRange, IntegerRange, OrderedValues
from autotune.space.knobs.knob import Knob
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status

SPACE = Space(
    [
        FloatRange("a", 0.0, 1.0),
        FloatRange("b", 1e-3, 1.0, scale="log"),
        IntegerRange("n", 0, 1000, step=5),
        Choice("kind", ("x", "y")),
    ]
)
FEATURES = Features(SPACE)
START = SPACE.configuration({"a": 0.5, "b": 0.1, "n": 500, "kind": "y"})


def height(configuration: Configuration) -> float:
    """A ridge, along which all knobs move together: highest at a = 0.62, b = 0.19, n = 620."""
    a, n = float(str(configuration["a"])), float(str(configuration["n"])) / 1000.0
    b = 1.0 + math.log10(float(str(configuration["b"]))) / 3.0
    across = abs(a - b - 0.14) + abs(a - n)
    return -abs(a - 0.62) - across


def candidate(configuration: Configuration) -> Candidate:
    return Candidate(configuration, (1.0, height(configuration)), dict)


def climbed(first: Sequence[Candidate], seed: int = 0) -> tuple[Candidate, list[list[Configuration]]]:
    """The end of a climb, and the centres of each of its rounds."""
    pool = Pools(FEATURES, seed=0, count=10).draw(FEATURES, due=0)
    assert pool.can_climb
    rng = np.random.default_rng(seed)
    rounds = []

    def beside(centres: Sequence[Configuration], step: float) -> Iterator[Candidate]:
        rounds.append(list(centres))
        columns = pool.beside(centres, step, rng)
        assert len(columns) == 0
        assert len(pool.fresh) == MOVES * len(centres)
        made = [c for i in range(len(pool.fresh)) if (c := pool.candidate(columns, i)) is not None]
        return iter(sorted(map(candidate, made), key=lambda one: one.rank, reverse=True))

    return climb(first[0], iter(first[1:]), beside), rounds


@pytest.mark.parametrize("seed", range(5))
def test_it_ends_higher_than_all_that_it_began_with(seed: int) -> None:
    found, rounds = climbed([candidate(START)], seed)
    assert found.rank[1] > 0.7 * height(START)
    assert len(rounds) == len(STEPS)
    assert max(map(len, rounds)) == PARENTS
    heights = [max(map(height, centres)) for centres in rounds]
    assert heights == sorted(heights)


def test_what_it_finds_is_of_the_space() -> None:
    found, _ = climbed([candidate(START)])
    assert found.configuration in SPACE
    assert int(str(found.configuration["n"])) % 5 == 0
    assert found.configuration["kind"] == "y"


def test_it_starts_from_the_best_few() -> None:
    others = [Configuration({**START, "n": 5 * n}) for n in range(1, 10)]
    _, rounds = climbed([candidate(one) for one in others])
    assert rounds[0] == others[:PARENTS]


def test_the_same_draws_end_at_the_same_place() -> None:
    one, again = (climbed([candidate(START)], seed=3)[0].configuration for _ in range(2))
    assert one == again != climbed([candidate(START)], seed=4)[0].configuration


@pytest.mark.parametrize("values", [3, 9])
def test_without_ranges_there_is_nothing_to_climb_along(values: int) -> None:
    for knobs in ("abc", "abcdefghijkl"):  # listed, and too many to be
        features = Features(Space([OrderedValues(name, tuple(range(values))) for name in knobs]))
        assert not Pools(features, seed=0, count=10).draw(features, due=0).can_climb


def assigning(items: int, *others: Knob, room: int = 99) -> Features:
    """Items to three places, each of which has room for some, beside other knobs."""
    place = Assignment("place", tuple(f"i{n}" for n in range(items)), (0, 1, 2))
    rules = [f"count(place, {at}) <= {room}" for at in (0, 1, 2)]
    return Features(Space([place, *others], constraints=rules))


def test_several_items_of_an_assignment_change_places_together() -> None:
    features = assigning(12, room=6)
    pool = Pools(features, seed=0, count=10).draw(features, due=0)
    assert pool.assigns
    assert pool.can_climb
    (centre,) = features.space.sample(np.random.default_rng(0), 1)
    columns = pool.beside([centre], 0.1, np.random.default_rng(0))
    made = [c for i in range(len(pool.fresh)) if (c := pool.candidate(columns, i)) is not None]
    assert max(np.count_nonzero(np.array(features.row(c)) != features.row(centre)) for c in made) > 2
    assert all(c in features.space for c in made)


@pytest.mark.parametrize("features", [assigning(6), assigning(2, *SPACE.knobs)], ids=["listed", "few"])
def test_a_short_assignment_is_searched_by_its_neighbours(features: Features) -> None:
    assert not Pools(features, seed=0, count=10).draw(features, due=0).assigns


BOUNDED = Problem(
    Space([FloatRange(name, 0.0, 1.0, default=0.5) for name in "ab"]),
    (MetricSpec("loss", "minimize"), MetricSpec("sum", at_most=0.0)),
    25,
)


def observed(configuration: Configuration) -> Observation:
    """The best lies where a ridge is cut by a bound: each knob by itself leads away from it."""
    a, b = (float(str(configuration[name])) for name in "ab")
    told = {"loss": 2.0 - a - 0.7 * b + (a - b) ** 2, "sum": a * a + b * b - 0.7}
    if told["sum"] <= 0.0:
        return Observation(configuration, Status.OK, told)
    return Observation(configuration, Status.WRONG, bounded=told)


@pytest.mark.parametrize("seed", range(3))
def test_a_bound_is_met_to_some_digits(seed: int) -> None:
    search = make_strategy("auto", BOUNDED, seed)
    for _ in range(25):
        search.tell([observed(search.ask()[0].configuration)])
    assert min(o.metrics.get("loss", math.inf) for o in search.told) < 0.9901 + 1e-3


def observed_both(configuration: Configuration) -> Observation:
    """The same with a second goal, for which the knobs have changed places."""
    told = observed(configuration)
    other = observed(Configuration({"a": configuration["b"], "b": configuration["a"]}))
    swapped = {"swapped": {**other.metrics, **other.bounded}["loss"]}
    if told.metrics:
        return replace(told, metrics={**told.metrics, **swapped})
    return replace(told, bounded={**told.bounded, **swapped})


@pytest.mark.parametrize("seed", range(3))
def test_the_front_of_two_goals_is_found_along_a_bound(seed: int) -> None:
    loss, bound = BOUNDED.metrics
    metrics = (loss, MetricSpec("swapped", "minimize"), bound)
    search = make_strategy("auto", replace(BOUNDED, metrics=metrics), seed)
    for _ in range(30):
        search.tell([observed_both(search.ask()[0].configuration)])
    front = np.array([[o.metrics["loss"], o.metrics["swapped"]] for o in search.told if o.metrics])
    assert hypervolume(front, np.array([1.2, 1.2])) > 0.0438  # of 0.0440


def test_a_resumed_search_climbs_to_the_same_place() -> None:
    search, resumed = (make_strategy("auto", BOUNDED, 0) for _ in range(2))
    for _ in range(12):
        search.tell([observed(proposal.configuration) for proposal in search.ask(2)])
    resumed.restore(search.asks, [o.configuration for o in search.told], search.told)
    assert resumed.ask(2) == search.ask(2)
