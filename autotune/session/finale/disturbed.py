"""Readings while which another program had the core, though what was measured was ready to run.

On a machine that others use, a reading of some milliseconds is longer by a half when the scheduler lets
another program run in its midst, or not at all. The kernel counts that time for each thread, so a finale need
not average it away: a reading that was disturbed does not count, and is taken again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from autotune.measure.outcome import Reading
from autotune.measure.readings import measures_itself, share_of
from autotune.space.spec import MetricSpec, is_speed

DISTURBED = "disturbed"
"""Why a reading does not count in whose midst another program had the core: another one was taken."""

TOLERATED = 0.02
"""The part of a reading for which it may wait for a core and count as undisturbed."""

SHORT = 0.25
"""Seconds. A longer reading meets others about as often as the next one does, and costs more."""

MOST_TRIES = 4
"""Of one reading. Where none of them is undisturbed, the machine has more work than cores at all times."""

BUSY = 0.05
"""The part of half of the readings from which on it is said that others had the core."""

SHORT_OF_PROCESSORS = 0.25
"""The same of tasks that waited for one anywhere on the machine, be it those that are measured or others."""


def waited(readings: Sequence[Reading]) -> float:
    """The part of what counts of the readings for which its thread was ready to run, and had no core.

    0 where that is not known: of programs and ranks, in replays, and where the kernel does not count it.
    """
    contexts = (r.context for r in readings if not r.discarded)
    timed = (c for c in contexts if c.get("wall", 0.0) > 0.0)
    return max((share_of(c, "own_wait") for c in timed), default=0.0)


def undisturbed(
    read: Callable[[], tuple[Reading, ...]], may_go_on: Callable[[], bool]
) -> tuple[Reading, ...]:
    """All that was ``read`` until a reading was undisturbed; of several tries that one counts which waited
    least. Another is taken only while one ``may_go_on``.
    """
    tries = [read()]
    while _may_be_better(tries[-1]) and len(tries) < MOST_TRIES and may_go_on():
        tries.append(read())
    best = min((one for one in tries if one), key=waited, default=())
    return tuple(
        reading if one is best else replace(reading, discarded=reading.discarded or DISTURBED)
        for one in tries
        for reading in one
    )


def _may_be_better(tried: Sequence[Reading]) -> bool:
    """Whether another try of what was ``tried`` may be less disturbed; not where it failed."""
    seconds = max((r.context.get("wall", 0.0) for r in tried if not r.discarded), default=0.0)
    return waited(tried) > TOLERATED and seconds < SHORT


def scattered(readings: Sequence[Reading], metric: MetricSpec) -> tuple[Reading, ...]:
    """The readings of ``metric``; none where no wait has changed them: it is no speed, as a loss, or all that
    count are one number."""
    if not is_speed(metric.goal, metric.unit):
        return ()
    own = tuple(reading for reading in readings if reading.metric == metric.name)
    return own if len({reading.value for reading in own if not reading.discarded}) > 1 else ()


def usual_wait(readings: Iterable[Reading]) -> float:
    """The part for which the middle one of the readings that count has waited; 0 where there are none."""
    shares = sorted(waited([reading]) for reading in readings if not reading.discarded)
    return shares[len(shares) // 2] if shares else 0.0


def usual_stall(readings: Iterable[Reading]) -> float:
    """The part of the middle reading that counts for which some task of the machine waited for a processor.

    0 where it is known how long what was measured has waited, and of readings of a GPU, which needs none.
    """
    contexts = [reading.context for reading in readings if not reading.discarded]
    timed = [c for c in contexts if c.get("wall", 0.0) > 0.0 and "cpu" in c]
    elsewhere = [c for c in timed if "sm_clock_mhz" not in c and not measures_itself(c)]
    shares = sorted(share_of(context, "cpu_stall") for context in elsewhere)
    return shares[len(shares) // 2] if shares else 0.0


def say_busy(waited: float, stalled: float) -> str:
    """A remark on a finale whose readings waited so long as usual, or while which something else did; empty
    where neither is worth a word.
    """
    if waited > BUSY:
        return (
            f"other programs had the core for {waited:.0%} of a reading, or more of it, in half of them: on"
            " an idle machine the intervals are narrower"
        )
    if stalled > SHORT_OF_PROCESSORS:
        return (
            f"tasks of this machine waited for a processor for {stalled:.0%} of a reading, or more of it, in"
            " half of them: if others are at work here, the intervals are narrower on an idle machine"
        )
    return ""
