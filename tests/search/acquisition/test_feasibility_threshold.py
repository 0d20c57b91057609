"""What is less likely to succeed than tries did comes last, also where most of them have failed."""

from __future__ import annotations

import pytest

from autotune.search.acquisition.feasibility_threshold import AT_A_LIMIT, EVEN, LIKELY, feasibility_threshold
from autotune.search.candidates.pool import Pools
from autotune.search.contract import Observation, Problem
from autotune.search.models.features import Features
from autotune.search.models.history import History
from autotune.search.models.surrogate import Surrogate
from autotune.space.knobs import IntegerRange
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status

SPACE = Space([IntegerRange("k", 0, 99)])
TIME = MetricSpec("time", "minimize")
FAILED = (1, 10), (1, 60)


def threshold(succeeded: int, failed: int, how: Status = Status.CRASHED, **metrics: float) -> float:
    """After so many tries; with ``metrics`` those that failed are past a bound of theirs."""
    bounds = tuple(MetricSpec(name, at_most=1.0) for name in metrics)
    problem = Problem(SPACE, (TIME, *bounds))
    status = Status.WRONG if metrics else how
    fine = {"time": 1.0, **dict.fromkeys(metrics, 0.5)}
    told = [
        Observation(
            SPACE.configuration({"k": k}), *((Status.OK, fine) if k < succeeded else (status, metrics))
        )
        for k in range(succeeded + failed)
    ]
    history = History.of(problem, told)
    targets = history.targets()
    assert targets is not None
    features = Features(SPACE)
    surrogate = Surrogate(problem, features, told, Pools(features, seed=0, count=50).draw(features, due=0))
    return feasibility_threshold(targets, history.ran_out, surrogate)


@pytest.mark.parametrize(("how", "part"), [(Status.CRASHED, LIKELY), (Status.OUT_OF_MEMORY, AT_A_LIMIT)])
def test_it_is_a_part_of_the_share_that_succeeded(how: Status, part: float) -> None:
    assert threshold(8, 2, how) == pytest.approx(part * 9 / 12)


@pytest.mark.parametrize(("succeeded", "failed"), FAILED)
def test_where_most_has_failed_further_failures_do_not_lower_it(succeeded: int, failed: int) -> None:
    assert threshold(succeeded, failed) == LIKELY * EVEN


@pytest.mark.parametrize(("succeeded", "failed"), FAILED)
def test_how_far_a_bound_was_missed_is_known_so_that_they_do(succeeded: int, failed: int) -> None:
    assert threshold(succeeded, failed, error=2.0) == pytest.approx(
        LIKELY * (succeeded + 1) / (succeeded + failed + 2)
    )
