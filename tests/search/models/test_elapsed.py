"""Time in which trials were in flight: side by side, apart, and not known."""

from __future__ import annotations

import pytest

from autotune.search.contract import Observation
from autotune.search.models.elapsed import Elapsed
from autotune.space.configuration import Configuration
from autotune.status import Status


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        ([], 0.0),
        ([(0.0, 0.0)], 0.0),
        ([(10.0, 12.0), (12.0, 15.0)], 5.0),
        ([(10.0, 12.0), (10.0, 13.0), (11.0, 14.0)], 4.0),
        ([(10.0, 12.0), (90.0, 91.0)], 3.0),
        ([(10.0, 14.0), (0.0, 0.0), (11.0, 13.0)], 4.0),
    ],
    ids=["none", "not known", "in turn", "side by side", "a pause between", "told late"],
)
def test_time_counts_once_and_pauses_do_not(spans: list[tuple[float, float]], seconds: float) -> None:
    told = [Observation(Configuration({}), Status.OK, began=began, ended=ended) for began, ended in spans]
    together, one_by_one = Elapsed(), Elapsed()
    together.learn(told)
    for one in told:
        one_by_one.learn([one])
    assert together.seconds == one_by_one.seconds == pytest.approx(seconds)
