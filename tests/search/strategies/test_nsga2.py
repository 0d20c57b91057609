"""Optuna's NSGA-II as a strategy: fronts, bounds, generations that follow from what was told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("optuna")

from autotune.search.contract import Observation, Problem
from autotune.search.registry import make_strategy
from autotune.space.configuration import Configuration
from autotune.space.knobs import IntegerRange
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status

TIME, RATE = MetricSpec("time", "minimize", "s"), MetricSpec("rate", "maximize", "1/s")
MEMORY = MetricSpec("memory", at_most=30.0)


def problem(*metrics: MetricSpec, population: int = 8) -> Problem:
    space = Space(
        [IntegerRange("x", 0, 40), IntegerRange("y", 0, 40)],
        constraints=["x + y <= 60"],
    )
    return Problem(space, metrics, options={"population": population, "initial": 4})


def measured(c: Mapping[str, Any]) -> dict[str, float]:
    """The front lies at y = 0: faster with a small x, a higher rate with a large one."""
    return {"time": 1.0 + c["x"] + c["y"], "rate": c["x"] - c["y"], "memory": float(c["x"])}


def run(given: Problem, tries: int, name: str = "optuna-nsga2") -> list[Observation]:
    options = given.options if name == "optuna-nsga2" else {}
    strategy = make_strategy(name, replace(given, options=options), 0)
    for _ in range(tries):
        (proposal,) = strategy.ask(1)
        strategy.tell([observe(given, proposal.configuration)])
    return strategy.told


def observe(given: Problem, configuration: Configuration) -> Observation:
    metrics = measured(configuration)
    for metric in given.metrics:
        if metric.at_most is not None and metrics[metric.name] > metric.at_most:
            return Observation(configuration, Status.WRONG)
    return Observation(configuration, Status.OK, metrics)


def on_the_front(told: list[Observation]) -> list[int]:
    """The different x of the front that were found, in order."""
    good = [o.configuration for o in told if o.status is Status.OK and o.configuration["y"] == 0]
    return sorted(int(str(c["x"])) for c in good)


def test_finds_the_whole_front() -> None:
    found = on_the_front(run(problem(TIME, RATE), 80))
    assert len(found) >= 3 * len(on_the_front(run(problem(TIME, RATE), 80, "random")))
    assert len(found) >= 12
    assert found[0] <= 3
    assert found[-1] >= 37


def test_finds_the_front_inside_a_bound_although_failures_show_no_number() -> None:
    found = on_the_front(run(problem(TIME, RATE, MEMORY), 80))
    assert len(found) >= 10
    assert 25 <= found[-1] <= 30


def test_a_number_past_its_bound_is_a_constraint() -> None:
    """Told as ok with all its numbers, of which the rate alone would lead far past the bound."""
    given = problem(RATE, MEMORY)
    strategy = make_strategy("optuna-nsga2", given, 0)
    for _ in range(72):
        (proposal,) = strategy.ask(1)
        strategy.tell([Observation(proposal.configuration, Status.OK, measured(proposal.configuration))])
    later = [int(str(o.configuration["x"])) for o in strategy.told[-32:]]
    assert sum(x <= 30 for x in later) >= 20
    assert 29 in later or 30 in later


def test_generations_do_not_depend_on_who_asked() -> None:
    given = problem(TIME, RATE)
    told = run(given, 30)
    resumed = make_strategy("optuna-nsga2", given, 0)
    resumed.restore(30, [o.configuration for o in told], told)
    whole = run(given, 34)
    for number in range(30, 34):
        (proposal,) = resumed.ask(1)
        assert proposal.configuration == whole[number].configuration
        resumed.tell([observe(given, proposal.configuration)])


def test_takes_trials_that_others_made() -> None:
    given = problem(TIME, RATE)
    strategy = make_strategy("optuna-nsga2", given, 0)
    strange = [given.space.configuration({"x": x, "y": y}) for x in range(0, 40, 8) for y in (0, 9)]
    strategy.tell([observe(given, c) for c in strange])
    (proposal,) = strategy.ask(1)
    assert proposal.reason["kind"] in ("sampled", "projected", "default")
    assert proposal.configuration not in strange[1:]
