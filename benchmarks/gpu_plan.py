"""A plan in time: parts that share what is left of some minutes, each of which may fail by itself."""

from __future__ import annotations

import math
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

Document = Mapping[str, Any]
"""A JSON object."""

OVER = 60.0
"""Seconds that a part may take beyond its share, where there are as many: what is cut off shows little."""

GRACE = 20.0
"""Seconds that the last part may take beyond the end. A machine that is lent for ten minutes ends what runs
then, and whatever was not written down by then is lost."""

AGAIN = 15.0
"""Seconds after which a part that has not ended is told so again."""

UNFINISHED = "not done yet"


class OutOfTime(KeyboardInterrupt):
    """Ends a part as an interrupt would: a search ends with what it has measured, and gives that back."""


class Findings(dict[str, Any]):
    """What a part has found so far. When it fails that stays, and :meth:`keep` has it written before."""

    def __init__(self, write: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._write = write
        self.over = False
        """Whether the part was told to end. A search that was, just returns."""

    def keep(self, **found: Any) -> None:
        """Add what was found, and have it written down now. Raises :class:`OutOfTime` where it is over."""
        self.update(found)
        self._write()
        if self.over:
            raise OutOfTime


@dataclass(frozen=True)
class Part:
    """One thing to do, in about the seconds that it is given."""

    name: str
    weight: float
    """Its share of the time beside the other parts'."""
    run: Callable[[float, Findings], None]
    least: float = 0.0
    """It is given so many seconds at least. Where fewer are left it is not begun."""


@dataclass(frozen=True)
class Done:
    """What came of a part: ``result``, as far as there is one, and what went wrong."""

    name: str
    given: float
    """Seconds."""
    took: float
    result: Document | None = None
    problem: str = ""

    def to_document(self) -> dict[str, Any]:
        return {
            "part": self.name,
            "given": round(self.given, 1),
            "took": round(self.took, 1),
            "problem": self.problem,
            "result": self.result,
        }


def carry_out(
    parts: Sequence[Part],
    seconds: float,
    after: Callable[[Sequence[Done]], None],
    clock: Callable[[], float] = time.monotonic,
    grace: float = GRACE,
) -> list[Done]:
    """Run one part after the other; ``after`` is called with all that is done so far behind each.

    It is called within a part as well, whenever that keeps what it has found. A part that needs less than its
    share leaves the rest to those behind it. One that needs more takes it from them: up to :data:`OVER`, and
    to ``grace`` seconds behind the end (infinite: however long), then it is ended. What a part raises is
    written down beside what it had found; an interrupt ends the plan.
    """
    end = clock() + seconds
    done: list[Done] = []
    for index, part in enumerate(parts):
        left = max(end - clock(), 0.0)
        share = max(left * part.weight / sum(p.weight for p in parts[index:]), min(part.least, left))
        if share < part.least:
            problem = f"left out: {left:.0f} s were left for it, and it takes {part.least:.0f}"
            done.append(Done(part.name, share, 0.0, None, problem))
        else:
            limit = min(share + OVER, left) + grace
            done.append(_carried_out(part, share, limit, clock, lambda one: after([*done, one])))
        after(done)
    return done


def _carried_out(
    part: Part, share: float, limit: float, clock: Callable[[], float], write: Callable[[Done], None]
) -> Done:
    began = clock()

    def so_far(problem: str) -> Done:
        return Done(part.name, share, clock() - began, dict(found) or None, problem)

    def end() -> None:
        found.over = True
        raise OutOfTime

    found = Findings(lambda: write(so_far(UNFINISHED)))
    ended = f"ended: it was given {share:.0f} s, and was not done after {limit:.0f}"
    try:
        with limited(limit, end):
            part.run(share, found)
    except OutOfTime:
        return so_far(ended)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other parts go on
        return so_far(told(error))
    return so_far(ended if found.over else "")


def told(error: Exception) -> str:
    """An exception in a line: what it is, and where it was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({last.filename.rsplit('/', 1)[-1]}:{last.lineno})"


@contextmanager
def limited(seconds: float, end: Callable[[], None]) -> Iterator[None]:
    """Call ``end`` within the block after so many seconds, and again where that did not end it.

    Only the main thread can be interrupted so; elsewhere nothing is limited.
    """
    if not math.isfinite(seconds) or threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGALRM, lambda number, frame: end())
    earlier = signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.01), AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *earlier)
        signal.signal(signal.SIGALRM, handler)
