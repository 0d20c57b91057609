"""Disturbed readings, during which another program had the core although what was measured was ready to run.

On a machine that others use, a reading of some milliseconds takes half as long again if the scheduler runs
another program in the middle of it. The kernel counts for each thread how long it waited for a core. So a
finale need not average such readings: one that was disturbed does not count, and is taken again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from autotune.measure.outcome import Reading
from autotune.measure.readings import measures_itself, share_of
from autotune.space.spec import MetricSpec, is_speed

DISTURBED = "disturbed"
"""The mark of a reading that does not count because it was disturbed and taken again."""

TOLERATED = 0.02
"""The fraction of a reading's time that it may wait for a core and still count as undisturbed."""

SHORT = 0.25
"""In seconds. A longer reading is not taken again: the next one would be disturbed about as much."""

MOST_TRIES = 4
"""How often one reading is taken. If all are disturbed, the machine has more work than cores all the time."""

BUSY = 0.05
"""If the median reading of one that is compared waited for more of its time, the user is told."""

SHORT_OF_PROCESSORS = 0.25
"""The same for the time in which any task of the machine waited for a processor, measured or not."""


def waited(readings: Sequence[Reading]) -> float:
    """The largest fraction of the time of a reading that counts in which its thread waited for a core.

    0 if that is unknown: for programs and ranks, in replays, and if the kernel does not count it.
    """
    contexts = (r.context for r in readings if not r.discarded)
    timed = (c for c in contexts if c.get("wall", 0.0) > 0.0)
    return max((share_of(c, "own_wait") for c in timed), default=0.0)


def undisturbed(
    read: Callable[[], tuple[Reading, ...]], may_go_on: Callable[[], bool]
) -> tuple[Reading, ...]:
    """Call ``read`` until it is undisturbed, while ``may_go_on()``; returns the readings of all tries.

    Only those of the try that waited least count; the others are marked as discarded.
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
    """Whether another try may be less disturbed; false if this one failed or is long."""
    seconds = max((r.context.get("wall", 0.0) for r in tried if not r.discarded), default=0.0)
    return waited(tried) > TOLERATED and seconds < SHORT


def scattered(readings: Sequence[Reading], metric: MetricSpec) -> tuple[Reading, ...]:
    """The readings of ``metric`` if waiting for a core may have changed them.

    None if the metric is no speed (a loss, say), or if all readings that count are equal.
    """
    if not is_speed(metric.goal, metric.unit):
        return ()
    own = tuple(reading for reading in readings if reading.metric == metric.name)
    return own if len({reading.value for reading in own if not reading.discarded}) > 1 else ()


def usual_wait(readings: Iterable[Reading]) -> float:
    """The median, over the readings that count, of the fraction waited for a core; 0 without readings."""
    shares = sorted(waited([reading]) for reading in readings if not reading.discarded)
    return shares[len(shares) // 2] if shares else 0.0


def usual_stall(readings: Iterable[Reading]) -> float:
    """The fraction of the median reading in which some task of the machine waited for a processor.

    0 if it is known how long what was measured has waited, and for readings of a GPU, which needs none.
    """
    contexts = [reading.context for reading in readings if not reading.discarded]
    timed = [c for c in contexts if c.get("wall", 0.0) > 0.0 and "cpu" in c]
    elsewhere = [c for c in timed if "sm_clock_mhz" not in c and not measures_itself(c)]
    shares = sorted(share_of(context, "cpu_stall") for context in elsewhere)
    return shares[len(shares) // 2] if shares else 0.0


def say_busy(waited: float, stalled: float) -> str:
    """A remark on a finale in which the median reading of the winner, of the default or of the strongest
    baseline waited for, or was stalled in, these fractions of its time, whichever is most.

    Empty if both are small. A load does not fall on all alike: what sleeps often, for a disk say, waits for
    its core each time that it wakes up. SQLite's default read as 31 times as slow as a winner, and alone as
    5 times as slow.
    """
    if waited > BUSY:
        return (
            f"other programs had the core for {_at_least(waited)} in half of the readings of one that was"
            " compared: on an idle machine the intervals are narrower, and the speed-up may be another"
        )
    if stalled > SHORT_OF_PROCESSORS:
        return (
            f"tasks of this machine waited for a processor for {_at_least(stalled)} in half of the readings"
            " of one that was compared: if others are at work here, on an idle machine the intervals are"
            " narrower, and the speed-up may be another"
        )
    return ""


def _at_least(share: float) -> str:
    said = f"{share:.0%}"
    return f"{said} of the time or more" if said != "100%" else "practically all of the time"
