"""Why a measurement may differ from an earlier one: the state of the machine in each, and what has changed.

Nothing here is proof. The most telling known differences come first: the state of the machine while the
readings were taken (their contexts), whether the default has changed as well, then the source and the
environment.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotune.measure.outcome import Reading
from autotune.measure.readings import share_of
from autotune.provenance.environment import compare
from autotune.session.reproduction.replicates import Interval, apart

SHARES = {
    "cpu": "its process had {} of a core",
    "cpu_stall": "tasks waited for a processor {} of the time",
    "memory_stall": "tasks waited for memory {} of the time",
    "io_stall": "tasks waited for input or output {} of the time",
    "steal": "the hypervisor gave {} of the time to others",
}
"""Entries of a reading's context in seconds, which are used as shares of its wall time, with their texts."""

LEVELS = {
    "pace_us": ("its core took {} us for a fixed piece of work", 0.05),
    "frequency_mhz": ("the processor's clock was {} MHz", 0.03),
    "sm_clock_mhz": ("the GPU's clock was {} MHz", 0.03),
    "memory_clock_mhz": ("the clock of the GPU's memory was {} MHz", 0.03),
    "temperature_c": ("the GPU had {} degrees", 0.1),
    "power_watts": ("the GPU drew {} W", 0.1),
}
"""Entries that are levels, with their texts and the relative change from which on they are reported."""

LEAST_SHARE = 0.05
"""A share that changed by less is not reported."""

MOST_SHARE = 0.9
"""The most of the time that a busy machine is assumed to take: a time ten times as long has another cause."""

HALF = 0.5
"""A process with less than this share of a core was waiting (for a program, say): its share says little."""


@dataclass(frozen=True)
class State:
    """The state of the machine while a trial's readings were taken: medians over their contexts."""

    shares: Mapping[str, float]
    levels: Mapping[str, float]


IDLE = State({name: 0.0 for name in SHARES if name != "cpu"}, {})
"""The state of a machine on which nothing else runs; the process's share of a core is not known for it."""


def state_of(readings: Sequence[Reading]) -> State:
    """The state over the readings that have a context and were not discarded."""
    contexts = [r.context for r in readings if r.context and not r.discarded]
    timed = [c for c in contexts if c.get("wall", 0.0) > 0.0]
    shares = {name: statistics.median(share_of(c, name) for c in timed) for name in SHARES if timed}
    levels = {name: [c[name] for c in contexts if name in c] for name in LEVELS}
    return State(shares, {name: statistics.median(values) for name, values in levels.items() if values})


def pressures(then: State, now: State) -> Iterator[str]:
    """How the states of the machine differ, a text for each difference."""
    for name, before, after in _moved_shares(then, now):
        yield _say_share(name, before, after)
    for name, (text, least) in LEVELS.items():
        if name in then.levels and name in now.levels:
            before, after = then.levels[name], now.levels[name]
            if abs(after - before) > least * max(abs(before), abs(after)):
                yield f"{text.format(f'{after:.4g}')}, and {before:.4g} then"


def busier(then: State | None, now: State) -> tuple[float, str]:
    """The largest share of the time that others took now and not then, and a text on it.

    0 and an empty text if the machine is no busier. If the state then is unknown, the machine is assumed to
    have been idle.
    """
    known = then if then is not None and then.shares else None
    taken = {
        before - after if name == "cpu" else after - before: _say_share(
            name, before if known else None, after
        )
        for name, before, after in _moved_shares(known or IDLE, now)
    }
    most = max(taken, default=0.0)
    return (min(most, MOST_SHARE), taken[most]) if most > 0.0 else (0.0, "")


def _moved_shares(then: State, now: State) -> Iterator[tuple[str, float, float]]:
    """The shares that have changed, each with its values then and now."""
    for name in SHARES:
        if name not in then.shares or name not in now.shares:
            continue
        before, after = then.shares[name], now.shares[name]
        if name == "cpu" and max(before, after) < HALF:
            continue
        if abs(after - before) >= LEAST_SHARE:
            yield name, before, after


def _say_share(name: str, before: float | None, after: float) -> str:
    said = "it is not known how it was then" if before is None else f"{before:.0%} then"
    return f"{SHARES[name].format(f'{after:.0%}')}, and {said}"


def common_shift(
    then: Mapping[str, Interval], now: Mapping[str, Interval], precision: float, *, edited: bool
) -> Iterator[str]:
    """Where the metric changed, whether the default did as well: then the cause is the machine and not the
    configuration.

    Where the source was ``edited``, it may be that: the default is made of it, too.
    """
    names = ("metric", "default")
    if not all(name in side for name in names for side in (then, now)):
        return
    own, default = (now[name][0] / then[name][0] if then[name][0] else 0.0 for name in names)
    if own <= 0.0 or default <= 0.0 or not apart(then["metric"], now["metric"], precision):
        return
    if not apart(then["default"], now["default"], precision):
        yield "the default is as it was, so it is not the machine as a whole"
    elif (own > 1.0) == (default > 1.0):
        both = "the machine as a whole did" + (", or the edited source is the cause" if edited else "")
        yield f"the default moved as well, to {default:.3g} times what it was: {both}"


def environments(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """How the documents of two environments differ, a text for each; none if the first is unknown."""
    return [str(difference) for difference in compare(before, now)] if before else []
