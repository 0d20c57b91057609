"""A bound that holds in two places of a space: the search begins in the worse one."""

from __future__ import annotations

import math

import pytest

from autotune.search.contract import Observation, Problem
from autotune.search.registry import make_strategy
from autotune.space.configuration import Configuration
from autotune.space.knobs import FloatRange
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status

SPACE = Space([FloatRange("a", 0.0, 1.0), FloatRange("b", 0.0, 1.0)])
TIME, SIZE = MetricSpec("time", "minimize"), MetricSpec("size", "minimize")
BOUND = MetricSpec("error", at_most=0.0)
WORSE, BETTER, RADIUS = (0.3, 0.75), (0.8, 0.3), 0.08


def observed(configuration: Configuration) -> Observation:
    """The error is measured everywhere: how far the nearer of two discs is, as waves that level off."""
    a, b = float(str(configuration["a"])), float(str(configuration["b"]))
    off = min(math.dist((a, b), place) for place in (WORSE, BETTER))
    goals = {"time": 1.0 - a + b, "size": 2.0 + math.sin(3.0 * a) - 0.5 * a * b}
    metrics = {**goals, "error": math.tanh(3.0 * (off - RADIUS))}
    if metrics["error"] > 0.0:
        return Observation(configuration, Status.WRONG, bounded=metrics)
    return Observation(configuration, Status.OK, metrics)


@pytest.mark.parametrize("goals", [(TIME,), (TIME, SIZE)])
@pytest.mark.parametrize("seed", range(3))
def test_a_search_does_not_stay_where_the_bound_first_held(goals: tuple[MetricSpec, ...], seed: int) -> None:
    strategy = make_strategy("auto", Problem(SPACE, (*goals, BOUND)), seed)
    first = [(0.3, 0.75), (0.32, 0.72), (0.1, 0.1), (0.9, 0.9), (0.5, 0.5)]
    strategy.tell([observed(SPACE.configuration({"a": a, "b": b})) for a, b in first])
    for _ in range(45):
        strategy.tell([observed(p.configuration) for p in strategy.ask(1)])
    best = min((o for o in strategy.told if o.status is Status.OK), key=lambda o: o.metrics["time"])
    assert best.metrics["time"] < 0.45
