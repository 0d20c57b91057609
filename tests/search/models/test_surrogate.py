"""What a search holds new proposals against: the best that is expected, not the luckiest reading."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from autotune.search.candidates.pool import Pools
from autotune.search.contract import Observation, Problem, Proposal
from autotune.search.models.features import Features
from autotune.search.models.history import History, Targets
from autotune.search.models.surrogate import Leader, Prediction, Surrogate
from autotune.search.strategies.bayes import Bayes
from autotune.space.configuration import Configuration
from autotune.space.knobs import OrderedValues
from autotune.space.reading.reader import parse_spec
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status

SPEC = parse_spec(
    "autotune: 1\nname: a\nobjective: a.py:A\nknobs: {x: {range: [0.0, 99.0]}, y: {range: [0.0, 1.0]}}\n",
    "space.yaml",
    {},
)
PROBLEM = Problem(SPEC.space, SPEC.metrics)


def told(values: Sequence[float]) -> list[Observation]:
    return [
        Observation(Configuration({"x": float(x), "y": 0.5}), Status.OK, {"time": value})
        for x, value in zip(np.linspace(0, 99, len(values)), values, strict=True)
    ]


def fitted(observations: list[Observation]) -> tuple[Targets, float]:
    targets, leader, _ = predicted(observations, [])
    return targets, leader.level


def predicted(
    observations: list[Observation], pending: list[Configuration]
) -> tuple[Targets, Leader, Prediction]:
    """The leader, and what is expected of the leader itself and of some fifty others."""
    features = Features(SPEC.space)
    pool = Pools(features, seed=0, count=50).draw(features, due=0)
    surrogate = Surrogate(PROBLEM, features, observations, pool)
    history = History.of(PROBLEM, observations)
    targets = history.targets()
    assert targets is not None
    surrogate.learn(history, targets)
    leader = surrogate.leader(history, targets)
    columns = pool.near([history.configurations[targets.best_first[0]]], np.random.default_rng(0))
    return targets, leader, surrogate.predict(columns, pending, leader)


def test_the_level_of_noise_is_not_its_luckiest_reading() -> None:
    rng = np.random.default_rng(3)
    targets, level = fitted(told([math.exp(0.2 * rng.normal()) for _ in range(60)]))
    assert targets.best < -1.5 and level > -0.8
    assert targets.since(level) < 10, "one in four or so does as well as that"


def test_what_is_like_the_leader_is_little_apart_from_it_though_neither_is_known() -> None:
    rng = np.random.default_rng(3)
    noisy = told([math.exp(3.0 * x + 0.5 * rng.normal()) for x in np.linspace(0, 1, 60)])
    _, _, expected = predicted(noisy, [Configuration({"x": 50.5, "y": 0.9})])
    ratio = expected.apart / expected.spread
    assert ratio.min() < 0.2, "some moves from the leader change next to nothing"
    assert ratio.max() > 0.7, "and what is far from it is not like it"


def test_what_is_apart_from_a_leader_that_is_known_is_not_known_itself() -> None:
    exact = told([1.0 + (x - 0.3) ** 2 for x in np.linspace(0, 1, 30)])
    _, _, expected = predicted(exact, [])
    unknown = expected.spread > 0.05
    assert unknown.any()
    assert np.allclose(expected.apart[unknown], expected.spread[unknown], rtol=0.1)


def test_the_level_of_what_is_exact_is_the_best_reading() -> None:
    targets, level = fitted(told([1.0 + (x - 0.3) ** 2 for x in np.linspace(0, 1, 30)]))
    assert level == pytest.approx(targets.best, abs=0.05)


def test_how_long_nothing_was_as_good_as_the_level() -> None:
    observations = told([3.0, 1.0, 2.0, 4.0, 5.0])
    observations.append(Observation(Configuration({"x": 7.0, "y": 0.5}), Status.CRASHED))
    targets = History.of(PROBLEM, observations).targets()
    assert targets is not None
    assert targets.since(targets.best) == 4
    assert targets.since(float(targets.values[2])) == 3
    assert targets.since(-99.0) == 4, "the best itself is always as good"


LISTED = Space([OrderedValues(f"k{n}", tuple(range(8))) for n in range(3)])
GOALS = (MetricSpec("time", "minimize"), MetricSpec("size", "minimize"))


def noisy(configuration: Configuration, number: int, stopped: bool) -> Observation:
    """A reading that says how sure it is. Where some are ``stopped`` it is every third one."""
    rng = np.random.default_rng(number)
    off = float(np.square(np.array([configuration[f"k{n}"] for n in range(3)], dtype=float) - 4.0).sum())
    value = math.exp(0.1 * off + 0.2 * rng.standard_normal())
    errors = {"time": 0.2 * value * rng.random(), "size": 0.1}
    metrics = {"time": value, "size": 1.0 + 0.1 * rng.standard_normal()}
    early = stopped and number % 3 == 1
    return Observation(
        configuration,
        Status.PRUNED if early else Status.OK,
        metrics,
        errors,
        fraction=0.3 if early else 1.0,
        curve=((0.3, 1.6 * value + 0.1 * rng.random()),) if stopped else (),
    )


@pytest.mark.parametrize(("goals", "stopped"), [(1, False), (2, False), (1, True)])
def test_a_resumed_search_predicts_as_one_that_never_stopped(goals: int, stopped: bool) -> None:
    problem = Problem(LISTED, GOALS[:goals])
    straight = Bayes(problem, seed=1)
    for number in range(60):
        resumed = Bayes(problem, seed=1)
        resumed.restore(straight.asks, [o.configuration for o in straight.told], straight.told)
        [one] = straight.ask()
        if number > 30:  # a fit is not due with every trial
            [other] = resumed.ask()
            assert other.configuration == one.configuration
            assert gain(other) == pytest.approx(gain(one), abs=1e-6)
        straight.tell([noisy(one.configuration, number, stopped)])


def gain(proposal: Proposal) -> object:
    return proposal.reason.get("log_gain", 0.0)


@pytest.mark.parametrize("goals", [1, 2])
def test_failures_before_the_first_success_are_no_values(goals: int) -> None:
    problem = Problem(LISTED, GOALS[:goals], default_first=False)
    tried = list(dict.fromkeys(LISTED.sample(np.random.default_rng(0), 80)))[:59]
    failed = [Observation(c, Status.CRASHED) for c in tried[:56]]
    ended = [noisy(c, number, stopped=False) for number, c in enumerate(tried[56:])]
    strategy = Bayes(problem)
    strategy.restore(59, [], [*failed, *ended])
    assert "improvement" in str(strategy.ask()[0].reason["kind"])
    surrogates = strategy._several._surrogates if strategy._several else [strategy._surrogate]
    assert all(one is not None and one._rows.tolist() == [56, 57, 58] for one in surrogates)
