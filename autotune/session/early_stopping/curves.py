"""The reports of the trials of a study, as they are in the store."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from autotune.measure.outcome import Report
from autotune.session.early_stopping.rules import Board
from autotune.store.store import Store


class Curves:
    """Writes the reports of this session's trials to the store, and reads those of all sessions.

    No rule learns of a report before it is in the store, so that a resumed search learns the same.
    """

    def __init__(self, store: Store, study_id: int, metric: str, rungs: tuple[int, ...]) -> None:
        """``metric`` is the metric that the curves are of; reports without it are ignored."""
        self._store = store
        self._study_id = study_id
        self._metric = metric
        self._unwritten: list[tuple[int, Report]] = []
        self._seen = 0
        """The id of the last report that was read from the store."""
        self._board = Board(rungs)
        self._last: dict[int, Report] = {}
        """The last report of each trial, by the trial's number."""

    def add(self, trial_id: int, report: Report) -> None:
        """Take a report, which the next :meth:`write` writes to the store."""
        self._unwritten.append((trial_id, report))

    def write(self) -> None:
        """Write down what was reported since the last time."""
        for trial_id, own in groupby(list(self._unwritten), key=lambda pair: pair[0]):
            made = [report for _, report in own]
            self._store.report(trial_id, made)
            del self._unwritten[: len(made)]  # only now: if the store fails, they are written the next time

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
        """The rungs that a trial has passed, with its value at each, in the metric's own direction."""
        return [(rung, there[number]) for rung, there in self._board.values.items() if number in there]
