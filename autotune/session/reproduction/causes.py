"""Why a measurement may differ from an earlier one: what the machine did in each, and what has changed.

Nothing here is proof. It says what is known to be different, the most telling first: the state of the machine
while the readings were taken (their contexts), whether the default has moved as well, then the source and
the environment.
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
"""Parts of a reading's context in seconds, which are shares of its wall time, and how they are said."""

LEVELS = {
    "pace_us": ("its core took {} us for a fixed piece of work", 0.05),
    "frequency_mhz": ("the processor's clock was {} MHz", 0.03),
    "sm_clock_mhz": ("the GPU's clock was {} MHz", 0.03),
    "memory_clock_mhz": ("the clock of the GPU's memory was {} MHz", 0.03),
    "temperature_c": ("the GPU had {} degrees", 0.1),
    "power_watts": ("the GPU drew {} W", 0.1),
}
"""Parts that are levels, how they are said, and from which relative change on they are worth a word."""

LEAST_SHARE = 0.05
"""A share that changed by less is not worth a word."""

MOST_SHARE = 0.9
"""What a busy machine is believed to take at most: a result that is ten times as long has another cause."""

HALF = 0.5
"""Of a core: a process that had less waits for others (for a program, say), so its share tells little."""


@dataclass(frozen=True)
class State:
    """What the machine did while a trial's readings were taken: medians of what each of them says."""

    shares: Mapping[str, float]
    levels: Mapping[str, float]


IDLE = State({name: 0.0 for name in SHARES if name != "cpu"}, {})
"""Of a machine on which nothing else runs; how much of a core a process has there, is its own affair."""


def state_of(readings: Sequence[Reading]) -> State:
    """The state over the readings that have a context and were not discarded."""
    contexts = [r.context for r in readings if r.context and not r.discarded]
    timed = [c for c in contexts if c.get("wall", 0.0) > 0.0]
    shares = {name: statistics.median(share_of(c, name) for c in timed) for name in SHARES if timed}
    levels = {name: [c[name] for c in contexts if name in c] for name in LEVELS}
    return State(shares, {name: statistics.median(values) for name, values in levels.items() if values})


def pressures(then: State, now: State) -> Iterator[str]:
    """What the machine did otherwise, in words."""
    for name, before, after in _moved_shares(then, now):
        yield _say_share(name, before, after)
    for name, (text, least) in LEVELS.items():
        if name in then.levels and name in now.levels:
            before, after = then.levels[name], now.levels[name]
            if abs(after - before) > least * max(abs(before), abs(after)):
                yield f"{text.format(f'{after:.4g}')}, and {before:.4g} then"


def busier(then: State | None, now: State) -> tuple[float, str]:
    """The part of the time that others took from the readings now and not then, at most, and how it shows.

    0 and an empty text where the machine was no busier. Where nothing is known of then, what others take now
    counts whole: they may have taken nothing then.
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
    """Which shares are not as they were: each with that of then and that of now."""
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
    then: Mapping[str, Interval], now: Mapping[str, Interval], precision: float
) -> Iterator[str]:
    """Whether the default changed as well: then the machine changed, and not the configuration alone."""
    names = ("metric", "default")
    if not all(name in side for name in names for side in (then, now)):
        return
    own, default = (now[name][0] / then[name][0] if then[name][0] else 0.0 for name in names)
    if own <= 0.0 or default <= 0.0:
        return
    if not apart(then["default"], now["default"], precision):
        yield "the default is as it was, so it is not the machine as a whole"
    elif (own > 1.0) == (default > 1.0):
        yield f"the default moved as well, to {default:.3g} times what it was: the machine as a whole did"


def environments(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What of two environments' documents differs, in words; nothing where the first is not known."""
    return [str(difference) for difference in compare(before, now)] if before else []
