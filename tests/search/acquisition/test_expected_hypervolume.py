"""Several goals at once: the expected gain of a front, and searches that find one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

from autotune.search.acquisition.expected_hypervolume import (
    Front,
    SeveralGoals,
    log_hypervolume_improvement,
    reference_point,
)
from autotune.search.acquisition.pareto import free_boxes, hypervolume
from autotune.search.candidates.pool import Pools
from autotune.search.contract import Observation, Problem, Strategy
from autotune.search.models.arrays import Floats
from autotune.search.models.features import Features
from autotune.search.registry import make_strategy
from autotune.space.configuration import Configuration
from autotune.space.knobs import IntegerRange
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status

TIME, RATE = MetricSpec("time", "minimize", "s"), MetricSpec("rate", "maximize", "1/s")


def fronts(goals: int) -> st.SearchStrategy[Floats]:
    point = st.lists(st.floats(-1.0, 1.0), min_size=goals, max_size=goals)
    return st.lists(point, min_size=1, max_size=5).map(np.array)


@settings(max_examples=10, deadline=None)
@given(st.integers(2, 3).flatmap(fronts), st.integers(0, 99))
def test_the_expected_gain_is_the_mean_over_the_distribution(front: Floats, seed: int) -> None:
    goals = front.shape[1]
    rng = np.random.default_rng(seed)
    mean, spread = rng.uniform(-1.0, 1.0, (1, goals)), rng.uniform(0.2, 0.5, (1, goals))
    reference = reference_point(front)
    count = 120 if goals == 2 else 32
    quantiles = ndtri((np.arange(count) + 0.5) / count)
    points = mean + spread * np.stack(np.meshgrid(*[quantiles] * goals), axis=-1).reshape(-1, goals)
    lower, upper = free_boxes(front, reference)
    gains = np.zeros(len(points))
    for low, high in zip(lower, upper, strict=True):
        gains += np.prod(np.maximum(high - np.maximum(points, low), 0.0), axis=1)
    expected = float(np.exp(log_hypervolume_improvement(mean, spread, front, reference))[0])
    assert expected == pytest.approx(gains.mean(), rel=0.1, abs=5e-3)


def test_the_hopeless_keep_an_order() -> None:
    front = np.array([[0.0, 0.0]])
    mean = np.array([[60.0, 60.0], [50.0, 50.0], [40.0, 60.0]])
    gain = log_hypervolume_improvement(mean, np.full((3, 2), 0.1), front, np.array([1.0, 1.0]))
    assert np.isfinite(gain).all() and gain[0] < gain[2] and gain[0] < gain[1]


def test_the_reference_lies_behind_a_front_and_behind_a_single_point() -> None:
    assert (reference_point(np.array([[0.0, 0.0]])) > 0.5).all()
    assert reference_point(np.array([[0.0, 4.0], [8.0, 0.0]])) == pytest.approx([8.8, 4.4])


def test_the_ends_of_a_front_are_kept() -> None:
    points = np.array([[0.0, 9.0], [0.1, 8.9], [4.0, 4.0], [9.0, 0.0]])
    kept = Front(np.arange(4), points).foremost(3)
    assert sorted(kept.rows.tolist()) == [0, 2, 3]


def test_a_long_front_is_thinned_to_its_ends_and_others_between() -> None:
    points = np.random.default_rng(0).permutation(np.column_stack([np.arange(500.0), -np.arange(500.0)]))
    thin = Front(np.arange(500), points).thinned()
    assert len(thin.rows) <= 66 and (points[thin.rows] == thin.points).all()
    assert thin.points.min(axis=0).tolist() == [0.0, -499.0]


# -- searches


def space() -> Space:
    return Space([IntegerRange("x", 0, 30), IntegerRange("y", 0, 30)], constraints=["x + y <= 45"])


def measured(c: Mapping[str, Any]) -> dict[str, float]:
    """The front lies at y = 7: faster with a small x, a higher rate with a large one."""
    off = abs(c["y"] - 7)
    return {"time": 5.0 + c["x"] + 2.0 * off, "rate": 10.0 + c["x"] - 0.25 * off}


def observed(configuration: Configuration) -> Observation:
    if configuration["x"] == 13:
        return Observation(configuration, Status.CRASHED)
    return Observation(configuration, Status.OK, measured(configuration))


def search(name: str, tries: int, seed: int = 0) -> Strategy:
    strategy = make_strategy(name, Problem(space(), (TIME, RATE)), seed)
    for _ in range(tries):
        strategy.tell([observed(p.configuration) for p in strategy.ask(1)])
    return strategy


def found(strategy: Strategy) -> float:
    """The hypervolume of what was found, of the true front's."""
    reference = np.array([60.0, 0.0])
    good = [o.metrics for o in strategy.told if o.status is Status.OK]
    true = [measured({"x": x, "y": 7}) for x in range(31) if x != 13]
    shares = [
        hypervolume(np.array([[m["time"], -m["rate"]] for m in some]), reference) for some in (good, true)
    ]
    return shares[0] / shares[1]


def test_the_front_is_found() -> None:
    strategy = search("auto", 40)
    assert found(strategy) > 0.94 > found(search("random", 40))
    assert len({o.configuration.hash for o in strategy.told}) == 40


def test_a_resumed_search_proposes_the_same_and_says_why() -> None:
    strategy = search("auto", 15)
    again = make_strategy("auto", Problem(space(), (TIME, RATE)), 0)
    again.restore(strategy.asks, [o.configuration for o in strategy.told], strategy.told)
    (one,), (other,) = strategy.ask(1), again.ask(1)
    assert one == other
    assert one.reason["kind"] == "expected hypervolume improvement"
    assert set(one.reason["predicted"]) == {"time", "rate"}  # type: ignore[call-overload]


@pytest.mark.parametrize("judged", ["", "time", "rate"])
def test_the_curves_of_stopped_trials_teach_the_goal_that_they_are_of(judged: str) -> None:
    problem, rng = Problem(space(), (TIME, RATE), judged=judged), np.random.default_rng(0)
    told = []
    for configuration in problem.space.sample(rng, 12):
        metrics = measured(configuration)
        curve = ((1 / 3, 3.0 * metrics[judged or "time"]),)
        status, fraction = (Status.PRUNED, 1 / 3) if configuration["x"] > 20 else (Status.OK, 1.0)  # type: ignore[operator]
        told.append(Observation(configuration, status, metrics, fraction=fraction, curve=curve))
    features = Features(problem.space)
    with_curves, without = (SeveralGoals(problem, features, Pools(features, 0, 10)) for _ in range(2))
    with_curves.learn(told)
    without.learn([replace(o, curve=()) for o in told])
    alike = [
        (one.values() == other.values()).all()
        for one, other in zip(with_curves._histories, without._histories, strict=True)
    ]
    assert alike == ([True, False] if judged == "rate" else [False, True])


def test_several_in_flight_are_different() -> None:
    strategy = search("auto", 10)
    assert len({p.configuration.hash for p in strategy.ask(5)}) == 5


def test_a_metric_that_is_missing_everywhere_does_not_end_the_search() -> None:
    strategy = make_strategy("auto", Problem(space(), (TIME, RATE)), 0)
    for _ in range(6):
        (proposal,) = strategy.ask(1)
        strategy.tell([Observation(proposal.configuration, Status.OK, {"time": 1.0})])
    assert strategy.ask(1)
