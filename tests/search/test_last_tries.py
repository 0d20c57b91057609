"""The end of a budget: what is close to the best is tried then, and nothing far away."""

from __future__ import annotations

from dataclasses import replace
from statistics import mean

import pytest

from autotune.search.contract import Proposal
from autotune.search.registry import make_strategy
from autotune.space.knobs import OrderedValues
from autotune.space.space import Space
from tests.search.spaces import Case, observe, problem

SPACE = Space([OrderedValues(name, tuple(range(12))) for name in "abcd"])
TRIES = 40
LAST = 35
"""So many are before the last eighth."""


def made(
    case: Case, budget: int | None, at_once: int = 1, seconds: float | None = None, each: float = 0.0
) -> list[Proposal]:
    """``each`` try takes so many seconds."""
    strategy = make_strategy("bayes", replace(problem(case), budget=budget, seconds=seconds), seed=3)
    proposals: list[Proposal] = []
    while len(proposals) < TRIES:
        asked = strategy.ask(at_once)
        proposals += asked
        ended = each * len(proposals)
        strategy.tell([replace(observe(case, one), began=ended - each, ended=ended) for one in asked])
    return proposals


def tried(proposals: list[Proposal]) -> list[str]:
    return [one.configuration.hash for one in proposals]


BUMPY = Case(SPACE, lambda c: 1.0 + abs(c["a"] - 5) + (c["b"] - 7) ** 2 / 9 + (c["c"] * c["d"]) % 5, 12**4)


@pytest.mark.parametrize("at_once", [1, 8])
def test_the_last_tries_are_closer_to_the_best(at_once: int) -> None:
    """Trials in flight count as made."""
    endless, ending = (made(BUMPY, budget, at_once) for budget in (None, TRIES))
    assert tried(endless)[:LAST] == tried(ending)[:LAST]
    far, near = (mean(one.reason["predicted"] for one in found[LAST:]) for found in (endless, ending))
    assert near < far


@pytest.mark.parametrize("trials", [None, 10 * TRIES])
def test_so_are_those_at_the_end_of_the_time(trials: int | None) -> None:
    """A search with a budget of time alone had ended without them."""
    endless, ending = (made(BUMPY, trials, 1, seconds, each=2.0) for seconds in (200.0 * TRIES, 2.0 * TRIES))
    assert tried(endless)[:LAST] == tried(ending)[:LAST]
    far, near = (mean(one.reason["predicted"] for one in found[LAST:]) for found in (endless, ending))
    assert near < far


def test_the_end_of_a_plateau_has_no_way_out() -> None:
    flat = Case(SPACE, lambda c: 1.0 + 0.01 * sum(c.values()), 12**4)
    kinds = [[one.reason["kind"] for one in made(flat, budget)[LAST:]] for budget in (None, TRIES)]
    assert "large improvement" in kinds[0] and "large improvement" not in kinds[1]
