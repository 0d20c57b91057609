"""A plan in time: parts that share what is left of some minutes, each of which may fail by itself."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Document = Mapping[str, Any]
"""A JSON object."""


@dataclass(frozen=True)
class Part:
    """One thing to do, in about the seconds that it is given."""

    name: str
    weight: float
    """Its share of the time beside the other parts'."""
    run: Callable[[float], Document]
    least: float = 0.0
    """With fewer seconds it is not begun."""


@dataclass(frozen=True)
class Done:
    """What came of a part: ``result``, or why there is none."""

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
) -> list[Done]:
    """Run one part after the other; ``after`` is called with all that is done so far behind each.

    A part that needs less than its share leaves the rest to those behind it, and one that needs more
    takes it from them. What a part raises is written down, an interrupt ends the plan.
    """
    end = clock() + seconds
    done: list[Done] = []
    for index, part in enumerate(parts):
        began = clock()
        share = (end - began) * part.weight / sum(p.weight for p in parts[index:])
        if share < part.least:
            problem = f"left out: {max(share, 0):.0f} s were left for it, and it takes {part.least:.0f}"
            done.append(Done(part.name, max(share, 0.0), 0.0, None, problem))
        else:
            result, problem = _attempt(part, share)
            done.append(Done(part.name, max(share, 0.0), clock() - began, result, problem))
        after(done)
    return done


def _attempt(part: Part, share: float) -> tuple[Document | None, str]:
    try:
        return part.run(share), ""
    except Exception as error:  # noqa: BLE001 - whatever it is, the other parts go on
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{last.filename.rsplit('/', 1)[-1]}:{last.lineno}"
        return None, f"{type(error).__name__}: {error} ({where})"
