"""Whether the configuration with the most samples a second is also the one that learns soonest. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.report.numbers import say_times, say_value
from autotune.space.spec import MetricSpec
from autotune.status import Status
from autotune.store.records import TrialRecord

THROUGHPUT = "samples_per_s"
TIME_TO_TARGET = "time_to_target"
"""The names of these metrics of trainings. A training that did not reach its target lacks the second."""

SAME = 0.05
"""A smaller relative difference is within the noise of single trainings, and is not reported."""


def disagreement(trials: Sequence[TrialRecord], goal: MetricSpec) -> str:
    """A sentence if the trial with the highest throughput is not the best by time to target, or by ``goal``.

    A batch size that is tuned for throughput alone may need more samples than it saves. Empty if they are
    the same trial, or throughput was not recorded.
    """
    known = [t for t in trials if t.status is Status.OK and THROUGHPUT in t.metrics]
    if len(known) < 2 or goal.name == THROUGHPUT:
        return ""
    fastest = max(known, key=lambda t: t.metrics[THROUGHPUT].value)
    if any(TIME_TO_TARGET in t.metrics for t in known):
        return _by_time(fastest, [t for t in known if TIME_TO_TARGET in t.metrics])
    return _by_goal(fastest, [t for t in known if goal.name in t.metrics], goal)


def _by_time(fastest: TrialRecord, reached: Sequence[TrialRecord]) -> str:
    soonest = min(reached, key=lambda t: t.metrics[TIME_TO_TARGET].value)
    if soonest.number == fastest.number:
        return ""
    least = soonest.metrics[TIME_TO_TARGET].value
    if TIME_TO_TARGET not in fastest.metrics:
        return (
            f"{_fast(fastest)}, but never came to the target; trial {soonest.number} did, at"
            f" {_rate(soonest)}, in {say_value(least, 's')}"
        )
    times = fastest.metrics[TIME_TO_TARGET].value / least if least > 0 else float("inf")
    if times <= 1 + SAME:
        return ""
    return (
        f"{_fast(fastest)}, but takes {say_times(times)} as long to the target as trial {soonest.number},"
        f" which has {_rate(soonest)}"
    )


def _by_goal(fastest: TrialRecord, known: Sequence[TrialRecord], goal: MetricSpec) -> str:
    if not known:
        return ""
    best = min(known, key=lambda t: goal.sign * t.metrics[goal.name].value)
    if best.number == fastest.number or goal.name not in fastest.metrics:
        return ""
    values = [t.metrics[goal.name].value for t in (fastest, best)]
    if abs(values[0] - values[1]) <= SAME * abs(values[1]):
        return ""
    its, theirs = (say_value(value, goal.unit) for value in values)
    return (
        f"{_fast(fastest)}, at {goal.name} {its}; the best, {theirs}, is trial {best.number}'s, with"
        f" {_rate(best)}"
    )


def _fast(trial: TrialRecord) -> str:
    return f"trial {trial.number} has the most samples a second ({_rate(trial)})"


def _rate(trial: TrialRecord) -> str:
    return f"{trial.metrics[THROUGHPUT].value:,.0f} samples/s"
