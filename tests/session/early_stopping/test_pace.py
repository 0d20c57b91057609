"""How long another run of a trial will take, by its last run."""

from __future__ import annotations

import pytest

from autotune.measure.outcome import Report
from autotune.session.early_stopping.pace import Pace


def run(*reports: tuple[int, float], stood: int = 0) -> Pace:
    first, *rest = [Report(step, {"loss": 1.0}, at) for step, at in reports]
    pace = Pace.begun(first, stood)
    for report in rest:
        pace = pace.heard(report)
    return pace


@pytest.mark.parametrize(
    ("pace", "seconds"),
    [
        (run((1, 2.0)), 54.0),  # how much of it was the start cannot be known
        (run((3, 6.0)), 54.0),
        (run((1, 5.0), (2, 6.0)), 4.0 + 27.0),
        (run((1, 5.0), (2, 6.0), (3, 7.0)), 4.0 + 27.0),
        (run((1, 5.0), (9, 13.0), stood=3), 4.0 + 27.0),  # it had no checkpoint
        (run((4, 5.0), (9, 10.0), stood=3), 4.0 + 18.0),
        (run((4, 3.0), stood=3), 3.0 * 23),
        (run((1, 1.0), (3, 7.0)), 81.0),  # a first step quicker than the others: nothing was left for a start
        (run((1, 0.0), (9, 0.0)), 0.0),
    ],
)
def test_to_the_end_of_27_steps(pace: Pace, seconds: float) -> None:
    assert pace.seconds_to(27) == pytest.approx(seconds)
