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

    A batch size that is tuned for throughput alone may need more samples than it saves. Empty if both
    have about the same throughput, or it was not recorded.
    """
    needed = {THROUGHPUT, goal.name}
    known = [t for t in trials if t.status is Status.OK and needed <= t.metrics.keys()]
    if not known or goal.name == THROUGHPUT:
        return ""
    fastest = max(known, key=_throughput)
    reached = [t for t in known if TIME_TO_TARGET in t.metrics]
    best = min(reached, key=_seconds) if reached else min(known, key=lambda t: goal.sign * _value(t, goal))
    if _throughput(fastest) <= (1 + SAME) * _throughput(best):
        return ""
    return _by_time(fastest, best) if reached else _by_goal(fastest, best, goal)


def _by_time(fastest: TrialRecord, soonest: TrialRecord) -> str:
    least = _seconds(soonest)
    if TIME_TO_TARGET not in fastest.metrics:
        return (
            f"{_fast(fastest)}, but never came to the target; trial {soonest.number} did, at"
            f" {_rate(soonest)}, in {say_value(least, 's')}"
        )
    times = _seconds(fastest) / least if least > 0 else float("inf")
    if times <= 1 + SAME:
        return ""
    return (
        f"{_fast(fastest)}, but takes {say_times(times)} as long to the target as trial {soonest.number},"
        f" which has {_rate(soonest)}"
    )


def _by_goal(fastest: TrialRecord, best: TrialRecord, goal: MetricSpec) -> str:
    values = _value(fastest, goal), _value(best, goal)
    if abs(values[0] - values[1]) <= SAME * abs(values[1]):
        return ""
    its, theirs = (say_value(value, goal.unit) for value in values)
    return (
        f"{_fast(fastest)}, at {goal.name} {its}; the best, {theirs}, is trial {best.number}'s, with"
        f" {_rate(best)}"
    )


def _value(trial: TrialRecord, metric: MetricSpec) -> float:
    return trial.metrics[metric.name].value


def _throughput(trial: TrialRecord) -> float:
    return trial.metrics[THROUGHPUT].value


def _seconds(trial: TrialRecord) -> float:
    return trial.metrics[TIME_TO_TARGET].value


def _fast(trial: TrialRecord) -> str:
    return f"trial {trial.number} has the most samples a second ({_rate(trial)})"


def _rate(trial: TrialRecord) -> str:
    return f"{_throughput(trial):,.0f} samples/s"
