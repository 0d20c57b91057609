"""One reading: what an objective returned as named numbers, and what the machine did meanwhile."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from numbers import Real
from types import TracebackType

from autotune.measure.clocks import perf_counter, process_time
from autotune.measure.cores.pace import Pace
from autotune.measure.diagnostics import writable
from autotune.provenance.host.pressure import pressure

_GROWING = ("cpu_stall", "memory_stall", "io_stall", "steal", "own_switches", "own_wait")
"""Counters whose difference over a reading is in its context; those that did not change are left out."""

MOSTLY = 0.5
"""Fraction of a reading. A process that computed or was ready to compute for less than this waited for a
program, for ranks or for a device; how long it had no core says nothing about those."""

_LEVELS = ("runnable", "frequency_mhz")
"""Values that are in the context of a reading as they were at its end."""

_MASKED = "MaskedConstant"
"""The type of numpy's ``masked``, the mean of nothing: as a plain number it would be 0."""

MOST_DISCARDED = 20
"""After so many readings that do not count because of the state of the device, a trial ends as it is."""


@dataclass(frozen=True)
class Sample:
    """What ``measure`` may return in place of plain numbers, where more is known of a reading."""

    values: Mapping[str, float]
    """The numbers, by the names of their metrics."""
    context: Mapping[str, float] = field(default_factory=dict)
    """What the device looked like, as numbers; stored with the reading."""
    discarded: str = ""
    """Why the reading does not count (``"throttled"``): it is kept and taken again. Empty: it counts."""
    facts: Mapping[str, object] = field(default_factory=dict)
    """JSON to keep with the trial; where several samples have the same fact, the last one counts."""
    cut_off: bool = False
    """Whether the run was ended because it took longer than :attr:`Objective.worth_seconds`: it is worse than
    the values say."""


class Clock:
    """A context manager around each call of ``measure``: when it was, how long it took, what the machine did.

    ``context`` is in seconds of the whole call, inputs and calibration included: ``wall``, ``cpu``
    (processor time of this process), ``..._stall`` (some task of the machine waited for it) and
    ``steal`` (taken by the hypervisor); ``own_switches`` counts how often the process was interrupted,
    and ``own_wait`` for how long this thread was ready to run and had no core, where it is the one that was
    measured (:data:`MOSTLY`);
    ``runnable`` and ``frequency_mhz`` are as at its end; ``pace_us`` is the mean of the
    :class:`~autotune.measure.cores.pace.Pace` before it and after it, in microseconds.
    """

    def __init__(self, pace: Pace) -> None:
        self.at = 0.0
        """When the last reading began, in seconds after the first one."""
        self.last_seconds = 0.0
        self.context: Mapping[str, float] = {}
        self._first: float | None = None
        self._before: Mapping[str, float] = {}
        self._start = (0.0, 0.0)
        self._pace = pace
        self._pace_before = 0.0

    def __enter__(self) -> None:
        self._pace_before = self._pace()
        self._before = pressure()
        self._start = perf_counter(), process_time()
        if self._first is None:
            self._first = self._start[0]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end = perf_counter(), process_time()
        after = pressure()
        self.at = self._start[0] - (self._first or 0.0)
        self.last_seconds = end[0] - self._start[0]
        context = {"wall": self.last_seconds, "cpu": end[1] - self._start[1]}
        for name in _GROWING:
            grown = after.get(name, 0.0) - self._before.get(name, 0.0)
            if grown > 0:
                context[name] = grown
        context |= {name: after[name] for name in _LEVELS if name in after}
        if not measures_itself(context):
            context.pop("own_wait", None)
        context["pace_us"] = 1e6 * (self._pace_before + self._pace()) / 2
        self.context = {name: float(f"{value:.4g}") for name, value in context.items()}


def measures_itself(context: Mapping[str, float]) -> bool:
    """Whether this very process did most of what was measured, by the seconds of a reading's ``context``."""
    return context["cpu"] + context.get("own_wait", 0.0) >= MOSTLY * context["wall"]


def share_of(context: Mapping[str, float], name: str) -> float:
    """The seconds ``name`` in the ``context`` of a reading as a fraction of the whole reading, at most 1.

    The machine is sampled before and after the reading, and sampling takes longer than a short reading: so a
    wait may lie outside of it. Only ``cpu`` may be above 1, with several threads. ``wall`` must be known.
    """
    share = context.get(name, 0.0) / context["wall"]
    return share if name == "cpu" else min(share, 1.0)


_FLAGS = ("bool", "bool_")
"""The type names of flags in Python and in both major versions of numpy."""


def named_values(returned: object, default: str, goals: Collection[str] = ()) -> dict[str, float]:
    """What ``check`` or ``measure`` returned as plain numbers by name; a bare number is ``default``.

    Raises ``TypeError`` for anything that is not a number. A flag is one, for a metric with a bound, but not
    for ``default`` and the ``goals``: it says whether something went well, and would count as one second. The
    same holds for what a command prints or reports.
    """
    if isinstance(returned, (list, tuple)):  # as Optuna takes several
        what = f"{returned!r:.80} ({type(returned).__name__})"
        several = f"return several by their names, as {{{default!r}: 0.5, ...}}"
        raise TypeError(f"the metric {default!r} must be a number, not {what}: {several}")
    named = returned if isinstance(returned, Mapping) else {default: returned}
    for name, value in named.items():
        if (name == default or name in goals) and type(value).__name__ in _FLAGS:
            raise TypeError(f"the metric {name!r} must be a number, not the flag {value}")
    return {writable(str(name)): _number(value, str(name), "metric") for name, value in named.items()}


def plain_numbers(numbers: Mapping[str, float], what: str) -> dict[str, float]:
    """Numbers by name as plain ones; ``what`` each is called in a message (``"context"``).

    Raises ``TypeError`` for anything that is no number.
    """
    return {str(name): _number(value, str(name), what) for name, value in numbers.items()}


def _number(value: object, name: str, what: str) -> float:
    plain = math.nan if type(value).__name__ == _MASKED else value
    if hasattr(plain, "item"):  # a scalar of numpy, torch and their kind
        with suppress(ValueError, RuntimeError):  # an array of several: said below, with the metric's name
            plain = plain.item()
    if not isinstance(plain, (Real, Decimal)):
        raise TypeError(f"the {what} {name!r} must be a number, not {value!r:.80} ({type(value).__name__})")
    try:
        return float(plain)
    except (OverflowError, ValueError) as error:
        raise TypeError(f"the {what} {name!r} must be a number that fits a float: {error}") from error
