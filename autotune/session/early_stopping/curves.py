"""What the trials of a study have reported while they ran, as it stands in the store."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from autotune.measure.outcome import Report
from autotune.session.early_stopping.rules import Board
from autotune.store.store import Store


class Curves:
    """Writes down what this session's trials report, and reads what those of all sessions have.

    Nobody learns from a report before it is in the store, so that a resumed search learns the same.
    """

    def __init__(self, store: Store, study_id: int, metric: str, rungs: tuple[int, ...]) -> None:
        """``metric``: whose curves these are; a report without it says nothing here."""
        self._store = store
        self._study_id = study_id
        self._metric = metric
        self._unwritten: list[tuple[int, Report]] = []
        self._seen = 0
        """The last report of the store that was read."""
        self._board = Board(rungs)
        self._last: dict[int, Report] = {}
        """By number."""

    def add(self, trial_id: int, report: Report) -> None:
        """To be written down with the next :meth:`write`."""
        self._unwritten.append((trial_id, report))

    def write(self) -> None:
        """Write down what was reported since the last time."""
        for trial_id, own in groupby(list(self._unwritten), key=lambda pair: pair[0]):
            made = [report for _, report in own]
            self._store.report(trial_id, made)
            del self._unwritten[: len(made)]  # now they stand in the store, and not before

    def news(self) -> Iterator[tuple[int, int, float]]:
        """Number, step and value of each report since the last time, in the order of the store."""
        for record in self._store.reports(self._study_id, self._seen):
            self._seen = record.id
            number, report = record.number, record.report
            if self._metric in report.metrics:
                value = report.metrics[self._metric]
                self._last[number] = report
                self._board.heard(number, report.step, value)
                yield number, report.step, value

    def last(self, number: int) -> Report | None:
        """The latest report of a trial that was read."""
        return self._last.get(number)

    def of(self, number: int) -> list[tuple[int, float]]:
        """The rungs that a trial has passed, with its value there, in the metric's own direction."""
        return [(rung, there[number]) for rung, there in self._board.values.items() if number in there]
