"""The result of a trial that the caller has run, checked before any of it is written down."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.arguments import is_whole
from autotune.errors import InputError, Problem, nearest
from autotune.measure.diagnostics import kept, writable
from autotune.measure.facts import given_facts
from autotune.measure.outcome import Outcome, Reading
from autotune.measure.phases.raised import both_ends
from autotune.measure.rules.bounds import beyond_bounds
from autotune.measure.rules.statistics import estimates
from autotune.space.spec import MetricSpec, StudySpec
from autotune.status import Status

Measured = float | Sequence[float] | NDArray[np.generic]
"""One value of a metric, or several readings of it."""

LARGEST = 2**63 - 1
"""The largest whole number that a store can hold."""


def count_of(n: object) -> int:
    """How many trials are asked for. Raises :class:`InputError` unless it is a whole number, 0 or more."""
    if not is_whole(n, 0):
        raise InputError(Problem(f"{n!r:.60} trials were asked for", expected="a whole number, 0 or more"))
    return int(n)  # type: ignore[call-overload,no-any-return]


def outcome_of(
    spec: StudySpec,
    given: Mapping[str, Measured],
    status: Status | str,
    message: str = "",
    seconds: float = 0.0,
    peak_memory: int | None = None,
    facts: Mapping[str, object] | None = None,
) -> Outcome:
    """The outcome of a trial from what the caller says. Raises :class:`InputError` with all that is wrong."""
    problems = [
        *_unknown(given, spec.metrics),
        *_status_problems(status),
        *_other_problems(message, seconds, peak_memory),
        *_taken_for_metrics(given, spec.metrics, seconds=seconds, peak_memory=peak_memory),
    ]
    known: dict[str, object] = {}
    try:
        known = given_facts(facts or {})
    except (TypeError, ValueError, AttributeError) as error:
        problems.append(Problem(f"facts is {facts!r:.60}: {error}", expected="a mapping of JSON"))
    readings: list[Reading] = []
    for name, value in given.items():
        try:
            readings += [Reading(name, reading) for reading in _numbers(value)]
        except (TypeError, ValueError, OverflowError):
            expected = "a number, or a list of at least one"
            problems.append(Problem(f"{name} is {value!r:.60}", expected=expected))
    if problems:
        raise InputError(problems)
    status, message = Status(status), writable(message)
    metrics = estimates(readings, spec.measure.confidence)
    if status is Status.OK:
        missing = [g.name for g in spec.goals if g.name not in given]
        if missing:
            raise InputError(f"a trial that is ok needs its metrics: {', '.join(missing)} missing")
        status, message = beyond_bounds(spec.metrics, metrics) or (status, message)
    return Outcome(
        status=status,
        metrics=metrics,
        readings=tuple(readings),
        phases={"measure": float(seconds)},
        message=kept(message),
        stderr="" if kept(message) == message else both_ends(message),
        peak_memory=None if peak_memory is None else int(peak_memory),
        facts=known,
    )


def _numbers(value: Any) -> list[float]:
    """One number, or several, as a list; raises ``TypeError`` or ``ValueError`` for anything else."""
    several = list(value) if isinstance(value, list | tuple) or np.ndim(value) else [value]
    if not several or any(isinstance(one, str | bytes | bool | np.bool_) or np.ndim(one) for one in several):
        raise ValueError
    return [float(one) for one in several]


def _unknown(given: Mapping[str, Measured], metrics: Sequence[MetricSpec]) -> Iterator[Problem]:
    known = [metric.name for metric in metrics]
    for name in given:
        if name not in known:
            hint = nearest(str(name), known)
            yield Problem(f"unknown metric {name!r}", expected=", ".join(known), hint=hint)


def _taken_for_metrics(
    given: Mapping[str, Measured], metrics: Sequence[MetricSpec], **own: float | None
) -> Iterator[Problem]:
    """Metrics that were given by a name which is an argument of its own, and would be lost."""
    for name, value in own.items():
        if value and name not in given and any(metric.name == name for metric in metrics):
            yield Problem(
                f"{name}= says what the trial took, and there is a metric of that name too",
                expected=f"the metric in a mapping: tell(trial, {{{name!r}: ...}})",
            )


def _status_problems(status: object) -> Iterator[Problem]:
    ends = [str(end) for end in Status if end.finished or end is Status.LOST]
    if str(status) not in ends:
        hint = nearest(str(status), ends)
        yield Problem(f"a trial does not end as {str(status)!r:.60}", expected=", ".join(ends), hint=hint)


def _other_problems(message: object, seconds: object, peak_memory: object) -> Iterator[Problem]:
    if not isinstance(message, str):
        yield Problem(f"message is {message!r:.60}", expected="a text")
    real = isinstance(seconds, numbers.Real) and not isinstance(seconds, bool)
    if not (real and 0 <= seconds < math.inf):  # type: ignore[operator]
        yield Problem(f"seconds is {seconds!r:.60}", expected="a number, 0 or more")
    if peak_memory is not None and not (is_whole(peak_memory, 0) and peak_memory <= LARGEST):  # type: ignore[operator]
        yield Problem(f"peak_memory is {peak_memory!r:.60}", expected="a whole number of bytes, or None")
