"""Bounds that leave next to nothing of a space: what is past them says in which direction they lie."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.search.acquisition.first_success import sober
from autotune.search.contract import Observation, Problem, Strategy
from autotune.search.registry import make_strategy
from autotune.space.configuration import Configuration, Value
from autotune.space.knobs import Choice, FloatRange, IntegerRange, OrderedValues
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status

LISTED = Space([IntegerRange(name, 0, 20) for name in "abc"])
DRAWN = Space([*(IntegerRange(name, 0, 60) for name in "abcd"), FloatRange("x", 0.0, 60.0)])
BOUNDS = (MetricSpec("far", at_most=30.0), MetricSpec("sum", at_least=20.0))
"""They leave one configuration in a hundred of the listed space, and one in 40,000 of the other."""


def measured(configuration: Mapping[str, Value]) -> dict[str, float]:
    values = np.array([float(str(value)) for value in configuration.values()])
    return {
        "time": 1.0 + float(values @ np.arange(len(values))),
        "rate": 1.0 + float(values[0]),
        "far": float(np.square(values - 7.0).sum()),
        "sum": float(values.sum()),
    }


def observed(problem: Problem, configuration: Mapping[str, Value]) -> Observation:
    metrics = measured(configuration)
    given = problem.space.configuration(configuration)
    if metrics["far"] > 30.0 or metrics["sum"] < 20.0:
        return Observation(given, Status.WRONG, bounded=metrics)
    return Observation(given, Status.OK, metrics)


def tries_until_success(problem: Problem, seed: int, strategy: str, flight: int = 1) -> int:
    """200 where there was none by then."""
    searched: Strategy = make_strategy(strategy, problem, seed)
    count = 0
    while count < 200:
        for proposal in searched.ask(flight):
            count += 1
            told = observed(problem, proposal.configuration)
            searched.tell([told])
            if not told.status.failed:
                return count
    return count


def goals(*given: MetricSpec) -> tuple[MetricSpec, ...]:
    return (*given, *BOUNDS)


TIME, RATE = MetricSpec("time", "minimize", "s"), MetricSpec("rate", "maximize")


@pytest.mark.parametrize("space", [LISTED, DRAWN], ids=["listed", "drawn"])
@pytest.mark.parametrize("metrics", [goals(TIME), goals(TIME, RATE)], ids=["a goal", "two goals"])
def test_the_first_success_is_found_in_few_tries(space: Space, metrics: Sequence[MetricSpec]) -> None:
    problem = Problem(space, tuple(metrics))
    found = [tries_until_success(problem, seed, "auto") for seed in range(3)]
    drawn = [tries_until_success(problem, seed, "random") for seed in range(3)]
    assert max(found) < 60 and max(found) < np.median(drawn)


def test_proposals_in_flight_keep_apart() -> None:
    problem = Problem(DRAWN, goals(TIME))
    strategy = make_strategy("bayes", problem, 0)
    for _ in range(6):
        strategy.tell([observed(problem, strategy.ask(1)[0].configuration)])
    proposed = strategy.ask(4)
    assert {p.reason["kind"] for p in proposed} == {"towards a success"}
    assert all(0.0 <= float(str(p.reason["success"])) <= 1.0 for p in proposed)
    pairs = itertools.combinations([p.configuration for p in proposed], 2)
    assert min(DRAWN.distance(one, other) for one, other in pairs) > 0.01


@pytest.mark.parametrize("status", [Status.INFEASIBLE, Status.OUT_OF_MEMORY])
def test_what_fails_says_where_not_to_look(status: Status) -> None:
    """Small tiles fit, one configuration in 300; what is larger fails without a word."""
    space = Space([OrderedValues(name, (1, 2, 4, 8, 16, 32), default=32) for name in "abcd"])
    found: dict[str, list[int]] = {"auto": [], "random": []}
    for strategy, tries in found.items():
        for seed in range(4):
            searched = make_strategy(strategy, Problem(space, (TIME,)), seed)
            count = 0
            while count < 200:
                [proposal] = searched.ask(1)
                count += 1
                if math.prod(int(str(value)) for value in proposal.configuration.values()) <= 4:
                    break
                searched.tell([Observation(proposal.configuration, status)])
            tries.append(count)
    assert np.mean(found["auto"]) < 0.5 * np.mean(found["random"])


def test_where_nothing_was_measured_of_what_is_bounded_every_other_try_is_random() -> None:
    strategy = make_strategy("bayes", Problem(LISTED, goals(TIME)), 0)
    kinds = []
    for _ in range(9):
        [proposal] = strategy.ask(1)
        kinds.append(proposal.reason["kind"])
        strategy.tell([Observation(proposal.configuration, Status.CRASHED)])
    assert sorted(kinds[3:]) == ["initial"] * 3 + ["towards a success"] * 3


def test_before_anything_has_ended_tries_are_random() -> None:
    strategy = make_strategy("bayes", Problem(LISTED, goals(TIME)), 0)
    assert [p.reason["kind"] for p in strategy.ask(8)] == ["default"] + ["initial"] * 7


FLAGS = Space(
    [
        Choice("m", ("ok", "fine", "good", "bad")),
        *(IntegerRange(name, 0, 19) for name in "ab"),
        Choice("c", ("x", "y", "z")),
    ]
)
"""As of a compiler: one of four machines is refused, and the error is small in a corner."""


def compiled(configuration: Configuration) -> Observation:
    m, a, b, c = configuration.values()
    if m == "bad":
        return Observation(configuration, Status.INFEASIBLE)
    error = 0.05 * (abs(int(str(a)) - 17) + abs(int(str(b)) - 13)) + (0.0 if c == "z" else 0.2)
    measured = {"time": 1.0 + 0.1 * int(str(a)), "error": error}
    if error > 0.12:
        return Observation(configuration, Status.WRONG, bounded=measured)
    return Observation(configuration, Status.OK, measured)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_is_past_a_bound_ran_all_the_same(seed: int) -> None:
    """Where nothing had kept the bound yet, only what was refused looked promising: nine tries in ten."""
    metrics = (MetricSpec("time", goal="minimize"), MetricSpec("error", at_most=0.12))
    searched = make_strategy("auto", Problem(FLAGS, metrics, 100, {}), seed)
    refused = 0
    for _ in range(60):
        told = compiled(searched.ask(1)[0].configuration)
        refused += told.status is Status.INFEASIBLE
        searched.tell([told])
        if told.status is Status.OK:
            break
    assert told.status is Status.OK and refused <= 8


@given(st.lists(st.floats(-1e100, 0.0), min_size=2, unique=True))
def test_what_is_believed_of_a_bound_keeps_its_order_and_is_never_beyond_doubt(logs: list[float]) -> None:
    believed = sober(np.array(sorted(logs)))
    assert (np.diff(believed) >= 0.0).all() and (believed <= 0.0).all()
    assert sober(np.array([-1000.0]))[0] > -12.0 and sober(np.array([-2.0]))[0] == -2.0
