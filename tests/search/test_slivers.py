"""Searches where constraints leave next to nothing of the continuous knobs."""

from __future__ import annotations

import pytest

from autotune.search.registry import make_strategy
from autotune.space.knobs import FloatRange
from autotune.space.space import Space
from tests.search.spaces import Case, observe, problem

NAMES = tuple(f"share{number}" for number in range(6))
BEST = (0.5, 0.2, 0.1, 0.1, 0.1, 0.0)
SHARES = Case(
    Space(
        [FloatRange(name, 0.0, 1.0, default=0.125) for name in NAMES],
        [f"{' + '.join(NAMES)} == 1"],
    ),
    lambda c: 1.0 + sum((c[name] - best) ** 2 for name, best in zip(NAMES, BEST, strict=True)),
    None,
)
"""Shares of a whole; the default is none."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "within"),
    [("auto", 0.01), ("evolution", 0.2), ("random", 0.5), ("optuna-tpe", 0.5), ("grid", 0.5)],
)
def test_shares_of_a_whole_are_searched(name: str, within: float) -> None:
    strategy, costs = make_strategy(name, problem(SHARES), seed=1), []
    for _ in range(30):
        [proposal] = strategy.ask()
        assert proposal.configuration in SHARES.space
        costs.append(SHARES.cost(proposal.configuration))
        strategy.tell([observe(SHARES, proposal)])
    assert min(cost for cost in costs if cost is not None) < 1.0 + within
