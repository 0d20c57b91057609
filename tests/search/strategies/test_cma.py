"""CMA-ES by the package behind Optuna's sampler, over spaces of every kind."""

from __future__ import annotations

import pytest

from autotune.search.contract import Observation, Problem
from autotune.space.knobs import FloatRange, IntegerRange
from autotune.space.space import Space
from autotune.status import Status
from tests.search.spaces import TIME

pytest.importorskip("cmaes")
from autotune.search.strategies.cma import OptunaCmaEs


@pytest.mark.parametrize("largest", [100, 2**40, 2**53])
def test_a_range_of_integers_is_searched_however_long_it_is(largest: int) -> None:
    """With more than 2^32 values the search had stayed in the corner where it began, at 0.7 or worse."""
    space = Space([IntegerRange("n", -largest, largest), FloatRange("x", 0.0, 1.0)])
    strategy = OptunaCmaEs(Problem(space, (TIME,)), seed=0)
    best = 1.0
    for _ in range(150):
        (proposal,) = strategy.ask(1)
        loss = abs(proposal.configuration["n"] / largest - 0.4) + abs(proposal.configuration["x"] - 0.7)
        best = min(best, loss)
        strategy.tell([Observation(proposal.configuration, Status.OK, {"time": loss})])
    assert best < 0.05
