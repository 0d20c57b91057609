"""The best so far, and how long ago it came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import pytest

from autotune.measure.outcome import Estimate
from autotune.session.incumbent import Incumbent
from autotune.space.configuration import Configuration
from autotune.space.reading.reader import parse_spec
from autotune.space.spec import Budget, MetricSpec
from autotune.status import Status
from autotune.store.records import ResultRecord

SPACE = """
autotune: 1
name: two
objective: given.py:given
metrics: {{time: {{goal: minimize, unit: s}}{more}}}
knobs: {{x: {{range: [0, 9]}}}}
"""


def result(number: int, status: Status = Status.OK, **metrics: float) -> ResultRecord:
    estimates = {name: Estimate.of_one(value) for name, value in metrics.items()}
    return ResultRecord(number, number, Configuration({"x": number}), status, {}, {}, estimates, None, {})


def test_an_improvement_is_strictly_better() -> None:
    incumbent = Incumbent(parse_spec(SPACE.format(more="")))
    heard = []
    for number, time in enumerate((3.0, 2.0, 2.0, 4.0)):
        incumbent.hear(result(number, time=time))
        heard.append((incumbent.best and incumbent.best.trial, incumbent.since))
    assert heard == [(0, 0), (1, 0), (1, 1), (1, 2)]


def test_a_failure_is_no_best_whatever_it_measured() -> None:
    incumbent = Incumbent(parse_spec(SPACE.format(more="")))
    incumbent.hear(result(0, Status.WRONG, time=1.0))
    incumbent.hear(result(1, Status.PRUNED, time=1.0))
    assert incumbent.best is None and incumbent.since == 2


def test_with_several_goals_a_point_of_the_front_is_an_improvement() -> None:
    incumbent = Incumbent(parse_spec(SPACE.format(more=", energy: {goal: minimize, unit: J}")))
    for number, (time, energy) in enumerate(((1.0, 9.0), (2.0, 3.0), (3.0, 3.0))):
        incumbent.hear(result(number, time=time, energy=energy))
    assert incumbent.best is not None and incumbent.best.trial == 0
    assert incumbent.since == 1, "the second is on the front, the third is beaten by it"


@pytest.mark.parametrize(
    ("goal", "target", "intervals", "reached"),
    [
        ("minimize", 2.0, [(2.5, 2.4, 2.6), (1.9, 1.7, 2.1), (1.8, 1.7, 2.0), (1.0, 0.9, 1.1)], 2),
        ("maximize", 2.0, [(1.5, 1.4, 1.6), (2.1, 1.9, 2.3), (2.2, 2.0, 2.3), (3.0, 2.9, 3.1)], 2),
        ("minimize", -1.0, [(0.0, 0.0, 0.0), (-1.0, -1.0, -1.0)], 1),
        ("minimize", None, [(0.0, 0.0, 0.0)], None),
    ],
)
def test_a_target_is_reached_by_a_whole_interval(
    goal: Literal["minimize", "maximize"],
    target: float | None,
    intervals: Sequence[tuple[float, float, float]],
    reached: int | None,
) -> None:
    spec = parse_spec(SPACE.format(more=""))
    budget, metrics = Budget(target=target), (MetricSpec("time", goal, "s"),)
    incumbent = Incumbent(replace(spec, budget=budget, metrics=metrics))
    incumbent.hear(replace(result(9, Status.WRONG, time=0.0), metrics={"time": Estimate.of_one(0.0)}))
    for number, (value, low, high) in enumerate(intervals):
        incumbent.hear(replace(result(number), metrics={"time": Estimate(value, low, high, 9)}))
    assert incumbent.reached == reached


def test_what_lacks_one_of_the_goals_is_the_best_by_the_other_at_most() -> None:
    incumbent = Incumbent(parse_spec(SPACE.format(more=", energy: {goal: minimize, unit: J}")))
    incumbent.hear(result(0, time=2.0, energy=1.0))
    incumbent.hear(result(1, energy=0.5))
    assert incumbent.best is not None and (incumbent.best.trial, incumbent.since) == (0, 1)
    incumbent.hear(result(2, time=1.0))
    assert (incumbent.best.trial, incumbent.since) == (2, 0)
