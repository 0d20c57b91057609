"""What happens to a study over weeks: its file and its objective are edited, its searches are cut short."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import autotune
from autotune.measure.loading.callables import describe_callable
from autotune.measure.outcome import Outcome
from autotune.measure.reports import Reporter
from autotune.provenance.environment import Environment, capture
from autotune.session.budget import Spent
from autotune.session.progress import Best, Opening, Progress
from autotune.space.configuration import Configuration
from autotune.space.reading.reader import parse_spec
from autotune.space.spec import StudySpec

NOBODY = 4_194_304
"""The id of no process: Linux gives lower ones."""


@cache
def environment() -> Environment:
    """That of all studies: to capture it takes longer than most of what happens to them."""
    return capture(None)


# -- what is searched ----------------------------------------------------------------------------


def cost(edit: int, x: int, **second: int) -> dict[str, float]:
    """The objective after so many edits. Some configurations fail, each in a way of its own."""
    [y] = second.values()
    match (7 * x + 3 * y + edit) % 11:
        case 3:
            raise autotune.Infeasible("there is no such kernel")
        case 5:
            raise MemoryError
        case 8:
            raise ValueError("it broke")
    return {"time": 1.0 + abs(x - 3) + y / 2 + edit, "error": float(x * y)}


def training(edit: int, report: Reporter, x: int, **second: int) -> dict[str, float]:
    """The same with a curve."""
    end = cost(edit, x, **second)
    for epoch in range(1, 10):
        report(epoch, time=end["time"] + 1 / epoch, error=end["error"])
    return {**end, "time": end["time"] + 1 / 9}


@dataclass(frozen=True)
class File:
    """What the space file and the objective say at the moment."""

    low: int = 0
    high: int = 6
    default: int = 3
    second: str = "y"
    """The name of the second knob."""
    values: tuple[int, ...] = (1, 2, 4)
    constraint: str = "x >= 0"
    bound: float = 20.0
    edit: int = 0
    policy: str = ""
    """Of early stopping."""

    @property
    def objective(self) -> Callable[..., dict[str, float]]:
        return partial(training if self.policy else cost, self.edit)

    def spec(self, folder: Path) -> StudySpec:
        """What a search reads."""
        early = f"early_stopping: {{policy: {self.policy}, resource: epochs, max: 9}}" if self.policy else ""
        text = f"""
autotune: 1
name: life
objective: objective.py:unused
metrics: {{time: {{goal: minimize}}, error: {{at_most: {self.bound}}}}}
knobs:
  x: {{range: [{self.low}, {self.high}], default: {min(max(self.default, self.low), self.high)}}}
  {self.second}: {{values: {list(self.values)}}}
constraints: ["{self.constraint}"]
search: {{{early}}}
measure: {{min_readings: 2, max_readings: 2, finalists: 2}}
"""
        (folder / "objective.py").write_text("def unused(**knobs):\n    return 1.0\n")
        spec = parse_spec(text, folder / "space.yaml", {})
        return replace(spec, objective=describe_callable(self.objective))


# -- how a search ends ---------------------------------------------------------------------------


class At(Progress):
    """Calls ``what`` at the ``when``-th event of a search, if it has so many."""

    def __init__(self, when: int, what: Callable[[], object]) -> None:
        self._left, self._what = when, what

    def opened(self, opening: Opening) -> None:
        self._event()

    def finished(self, number: int, tried: Configuration, outcome: Outcome, best: Best | None) -> None:
        self._event()

    def tick(self, spent: Spent, running: int) -> None:
        self._event()

    def defending(self, entrants: tuple[str, ...], seconds: float) -> None:
        self._event()

    def defended(self, rounds: int) -> None:
        self._event()

    def _event(self) -> None:
        self._left -= 1
        if self._left == -1:
            self._what()


def interrupt() -> None:
    raise KeyboardInterrupt


def copy(store: Path, to: Path) -> None:
    """The store as it is now, though others have it open."""
    with closing(sqlite3.connect(store)) as one, closing(sqlite3.connect(to)) as other:
        one.backup(other)


def let_die(store: Path, after: int) -> None:
    """The processes of the open sessions that began after session ``after`` are gone."""
    with closing(sqlite3.connect(store)) as database, database:
        database.execute("UPDATE sessions SET pid = ? WHERE id > ? AND finished_at IS NULL", (NOBODY, after))
