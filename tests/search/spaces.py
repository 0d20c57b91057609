"""Small spaces of every kind, and problems on them whose answer is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from autotune.search.contract import Observation, Problem, Proposal, Strategy
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
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status

TIME = MetricSpec("time", "minimize", "s")
Cost = Callable[[Mapping[str, Any]], float | None]
"""What a configuration takes; ``None`` where it fails."""


@dataclass(frozen=True)
class Case:
    """A space with a cost; ``size`` is how many configurations it has, ``None`` for endless."""

    space: Space
    cost: Cost
    size: int | None


def kernel() -> Case:
    """Tiles under a shared limit, as kernels have them; a corner of it fails."""
    space = Space(
        [
            OrderedValues("m", (1, 2, 4, 8, 16, 32, 64), default=4),
            OrderedValues("n", (1, 2, 4, 8, 16, 32, 64), default=4),
            IntegerRange("depth", 1, 8, scale="log2"),
            Choice("layout", ("row", "column")),
        ],
        constraints=["m * n <= 512"],
    )

    def cost(c: Mapping[str, Any]) -> float | None:
        if c["m"] * c["depth"] > 256:
            return None
        spread = abs(c["m"] - 16) / 16 + abs(c["n"] - 32) / 32 + abs(c["depth"] - 4) / 4
        return 1.0 + spread + 0.5 * (c["layout"] == "row")

    return Case(space, cost, 312)


def tiny() -> Case:
    space = Space(
        [OrderedValues("a", (1, 2, 3)), Flag("b"), Choice("c", ("x", "y", "z"))],
        constraints=["a > 1 or b"],
    )
    return Case(space, lambda c: c["a"] + c["b"] + len(c["c"]), 15)


def single() -> Case:
    return Case(Space([OrderedValues("a", (7,)), Choice("b", ("only",))]), lambda c: 1.0, 1)


def conditional() -> Case:
    space = Space(
        [
            Choice("solver", ("direct", "iterative")),
            IntegerRange("block", 1, 4, when="solver == 'direct'"),
            IntegerRange("sweeps", 1, 5, when="solver == 'iterative'"),
            Flag("damped", when="solver == 'iterative' and sweeps > 2"),
        ]
    )
    return Case(space, lambda c: float(c.get("block", 5) + c.get("sweeps", 0) + c.get("damped", 0)), 12)


def permutation() -> Case:
    space = Space([Permutation("order", ("i", "j", "k", "l"))], constraints=["order[0] != 'l'"])
    return Case(space, lambda c: 1.0 + sum(p * "ikjl".index(x) for p, x in enumerate(c["order"])), 18)


def assignment() -> Case:
    space = Space(
        [Assignment("place", ("embed", "body", "head"), ("cpu", "gpu"))],
        constraints=["count(place, 'gpu') <= 2"],
    )
    return Case(space, lambda c: 3.0 + len(set(c["place"].values())), 7)


def continuous() -> Case:
    space = Space(
        [FloatRange("lr", 1e-4, 1.0, scale="log", default=0.1), FloatRange("drop", 0.0, 0.9)],
        constraints=["lr + drop < 1.2"],
    )
    return Case(space, lambda c: 0.1 + (c["drop"] - 0.3) ** 2 + abs(c["lr"] - 0.01), None)


def mixed() -> Case:
    space = Space(
        [
            Choice("optimizer", ("sgd", "adam")),
            FloatRange("lr", 1e-4, 1.0, scale="log"),
            FloatRange("momentum", 0.0, 0.99, when="optimizer == 'sgd'"),
            IntegerRange("batch", 1, 256, scale="log"),
            FloatRange("decay", 0.0, 1.0, step=0.25),
            OrderedValues("precision", ("fp16", "fp32")),
        ]
    )
    return Case(space, lambda c: c["lr"] + c.get("momentum", 0.5) + 1.0 / c["batch"] - 3.0, None)


def large() -> Case:
    """Far too many configurations to list."""
    knobs = [IntegerRange(f"k{i}", 0, 999) for i in range(6)]
    return Case(Space(knobs), lambda c: 1.0 + sum(c.values()), 10**18)


CASES = {
    case.__name__: case
    for case in (
        kernel,
        tiny,
        single,
        conditional,
        permutation,
        assignment,
        continuous,
        mixed,
        large,
    )
}


def problem(case: Case, **options: float | int | str | bool) -> Problem:
    return Problem(case.space, (TIME,), 100, options)


def observe(case: Case, tried: Configuration | Proposal) -> Observation:
    proposal = tried if isinstance(tried, Proposal) else Proposal(tried, {})
    value = case.cost(proposal.configuration)
    if value is None:
        return Observation(proposal.configuration, Status.OUT_OF_MEMORY, reason=proposal.reason)
    metrics = {"time": float(value)}
    return Observation(proposal.configuration, Status.OK, metrics, reason=proposal.reason)


def search(strategy: Strategy, case: Case, tries: int) -> list[Configuration]:
    """Run ``strategy`` one at a time; what it tried, in order."""
    tried: list[Configuration] = []
    while len(tried) < tries and (proposals := strategy.ask(1)):
        tried.append(proposals[0].configuration)
        strategy.tell([observe(case, proposals[0])])
    return tried
