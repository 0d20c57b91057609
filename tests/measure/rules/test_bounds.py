"""When a metric is past its bound, and when that is beyond doubt."""

from __future__ import annotations

import math
import random

import pytest

from autotune.measure.outcome import Estimate
from autotune.measure.rules.bounds import beyond_bounds, beyond_doubt
from autotune.space.spec import MetricSpec
from autotune.status import Status

MOST, LEAST = MetricSpec("error", at_most=0.1), MetricSpec("accuracy", at_least=0.9)


def doubtless(spec: MetricSpec, *values: float) -> bool:
    return bool(beyond_doubt([spec], {spec.name: values}.__getitem__))


@pytest.mark.parametrize(
    ("spec", "value", "status"),
    [
        (MOST, 0.1, None),
        (MOST, 0.2, Status.WRONG),
        (LEAST, 0.9, None),
        (LEAST, 0.8, Status.WRONG),
        (MOST, math.nan, Status.DIVERGED),
        (MetricSpec("size"), math.inf, Status.DIVERGED),
    ],
)
def test_past_a_bound(spec: MetricSpec, value: float, status: Status | None) -> None:
    unread = MetricSpec("unread", at_most=0.0)
    found = beyond_bounds([unread, spec], {spec.name: Estimate(value, value, value, 1)})
    assert (found[0] if found else None) is status


def test_a_value_just_past_its_bound_is_not_called_more_than_itself() -> None:
    for value, bound, says in [
        (25165749.0, 25165748.0, "checksum is 25165749, allowed is at most 25165748"),
        (0.1 + 2**-54, 0.1, "checksum is 0.10000000000000006, allowed is at most 0.10000000000000001"),
        (0.2, 0.1, "checksum is 0.2, allowed is at most 0.1"),
    ]:
        found = beyond_bounds(
            [MetricSpec("checksum", at_most=bound)], {"checksum": Estimate(value, value, value, 1)}
        )
        assert found == (Status.WRONG, says)


def test_without_noise_three_readings_settle_it() -> None:
    assert not doubtless(MOST, 0.2, 0.2) and doubtless(MOST, 0.2, 0.2, 0.2)
    assert not doubtless(MOST, *[0.1] * 50) and not doubtless(LEAST, *[0.9] * 50)
    assert doubtless(LEAST, 0.8, 0.8, 0.8)


def test_with_noise_it_takes_more() -> None:
    rising = [0.2 + 0.01 * i for i in range(20)]
    assert not doubtless(MOST, *rising[:5]) and doubtless(MOST, *rising[:10])
    assert not doubtless(MetricSpec("size"), *rising)


def test_what_is_not_finite_stays_so() -> None:
    assert doubtless(MOST, math.nan) and doubtless(MetricSpec("size"), 1.0, math.inf)
    assert not doubtless(MOST)


def test_a_metric_whose_median_is_within_its_bound_is_hardly_ever_given_up() -> None:
    rng = random.Random(0)

    def given_up() -> bool:
        values = [rng.gauss(0.1, 0.02) for _ in range(60)]
        return any(doubtless(MOST, *values[:n]) for n in range(1, 61))

    assert sum(given_up() for _ in range(400)) <= 400 * 0.03
