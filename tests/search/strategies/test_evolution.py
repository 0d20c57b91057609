"""Evolution breeds from what succeeded, near it, and finds what small changes lead to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autotune.search.contract import Observation, Problem
from autotune.search.strategies.evolution import Evolution
from autotune.search.strategies.random import Random
from autotune.space.knobs import Assignment, Choice, FloatRange, IntegerRange, OrderedValues, Permutation
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status
from tests.search.spaces import CASES, TIME, Case, observe, problem, search


def order() -> Case:
    """Seven items that want to stand in the order of the alphabet, the first of them not last."""
    space = Space([Permutation("order", tuple("gfedcba"))], constraints=["order[6] != 'a'"])
    return Case(
        space, lambda c: 1.0 + sum(abs("abcdefg".index(x) - p) for p, x in enumerate(c["order"])), None
    )


def loads() -> Case:
    """Twelve items of different weight on two devices of which the fast one is too small for all."""
    items = tuple("abcdefghijkl")
    load = " + ".join(f"{n + 1} * (place['{item}'] == 'fast')" for n, item in enumerate(items))
    space = Space([Assignment("place", items, ("slow", "fast"))], constraints=[f"{load} <= 35"])

    def cost(c: Any) -> float:
        return 99.0 - sum((n + 1) ** 1.3 for n, item in enumerate(items) if c["place"][item] == "fast")

    return Case(space, cost, None)


def mixed() -> Case:
    """A choice, a tile and two ranges, one of which exists for one choice alone."""
    space = Space(
        [
            Choice("kind", ("sgd", "adam")),
            FloatRange("rate", 1e-5, 1.0, scale="log"),
            FloatRange("momentum", 0.0, 0.99, when="kind == 'sgd'"),
            OrderedValues("batch", (8, 16, 32, 64, 128)),
            IntegerRange("steps", 1, 100_000, scale="log"),
        ],
        constraints=["batch * rate <= 16"],
    )

    def cost(c: Any) -> float:
        off = (
            abs(np.log10(c["rate"]) + 2.0)
            + abs(np.log10(c["steps"]) - 3.0)
            + abs(np.log2(c["batch"]) - 6) / 2
        )
        return float(1.0 + off + abs(c.get("momentum", 0.2) - 0.9))

    return Case(space, cost, None)


def test_more_initial_tries_than_the_population_holds_end_too() -> None:
    case = mixed()
    evolution = Evolution(problem(case, initial=40, population=8), 0)
    kinds = []
    for _ in range(45):
        [proposal] = evolution.ask(1)
        kinds.append(proposal.reason["kind"])
        evolution.tell([observe(case, proposal)])
    assert kinds[:40] == ["default", *["newcomer"] * 39]
    assert set(kinds[40:]) <= {"mutation", "crossover"}


@pytest.mark.parametrize("case", [order(), loads(), mixed()], ids=["order", "loads", "mixed"])
def test_finds_more_than_random(case: Case) -> None:
    bred = [min(map(case.cost, search(Evolution(problem(case), s), case, 70))) for s in range(6)]  # type: ignore[type-var]
    drawn = [min(map(case.cost, search(Random(problem(case), s), case, 70))) for s in range(6)]  # type: ignore[type-var]
    assert np.mean(bred) < np.mean(drawn)


def test_a_child_names_a_parent_that_succeeded() -> None:
    case = CASES["kernel"]()
    strategy = Evolution(problem(case), 0)
    succeeded: dict[str, float] = {}
    children = 0
    for _ in range(60):
        (proposal,) = strategy.ask(1)
        if "parent" in proposal.reason:
            children += 1
            assert proposal.reason["parent_metric"] == succeeded[str(proposal.reason["parent"])]
        told = observe(case, proposal.configuration)
        if told.status is Status.OK:
            succeeded[proposal.configuration.hash] = told.metrics["time"]
        strategy.tell([told])
    assert children > 40


def test_the_best_breeds_on_when_it_has_left_the_window() -> None:
    space = Space([IntegerRange("n", 0, 10_000)])
    strategy = Evolution(Problem(space, (TIME,), options={"population": 12, "sample": 36}), 0)
    best = space.configuration({"n": 5_000})
    strategy.tell([Observation(best, Status.OK, {"time": 1.0})])
    worse = [space.configuration({"n": n}) for n in range(100)]
    strategy.tell([Observation(c, Status.OK, {"time": 2.0 + c["n"]}) for c in worse])  # type: ignore[operator]
    parents = [p.reason.get("parent") for p in strategy.ask(9)[1:]]
    assert parents == [best.hash] * 8


def test_breeds_from_the_largest_where_it_is_to_be_maximised() -> None:
    space = Space([IntegerRange("n", 0, 30), IntegerRange("m", 0, 30)])
    rate = MetricSpec("rate", "maximize", "1/s")
    strategy = Evolution(Problem(space, (rate,)), 0)
    best = 0.0
    for _ in range(80):
        (proposal,) = strategy.ask(1)
        value = 100.0 - abs(proposal.configuration["n"] - 20) - abs(proposal.configuration["m"] - 9)  # type: ignore[operator]
        strategy.tell([Observation(proposal.configuration, Status.OK, {"rate": value})])
        best = max(best, value)
    assert best >= 99.0


def test_leaves_a_parent_whose_neighbours_were_all_tried() -> None:
    """It goes further away from it, and in the end draws what is left."""
    space = Space([Permutation("order", tuple("abcd"))])
    case = Case(space, lambda c: float(1 + c["order"].index("a")), 24)
    assert len(search(Evolution(problem(case), 0), case, 30)) == 24
