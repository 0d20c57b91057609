"""Progress of a family: what its sessions report, with the family's numbers instead of each session's."""

from __future__ import annotations

from dataclasses import replace

from autotune.measure.outcome import Outcome
from autotune.session.budget import Spent
from autotune.session.progress import Best, Opening, Progress
from autotune.space.configuration import Configuration
from autotune.space.spec import Budget


class SharedProgress(Progress):
    """Passes on to ``progress`` what one session of a family reports.

    ``label`` names the workload, ``others`` is what the other workloads have spent, and ``again`` says who is
    measured again. The same note is passed on once for each workload; ``said`` has those passed on already.
    """

    def __init__(
        self,
        progress: Progress,
        label: str,
        budget: Budget,
        others: Spent,
        said: set[str],
        again: str = "the finalists",
    ) -> None:
        self._progress = progress
        self._again = again
        self._label = label
        self._budget = budget
        self._others = others
        self._said = said

    def opened(self, opening: Opening) -> None:
        study = f"{opening.study} ({self._label})"
        self._progress.opened(replace(opening, study=study, budget=self._budget))

    def note(self, text: str) -> None:
        if (key := f"{self._label}: {text}") not in self._said:
            self._said.add(key)
            self._progress.note(text)

    def finished(
        self, number: int, configuration: Configuration, outcome: Outcome, best: Best | None
    ) -> None:
        self._progress.finished(number, configuration, outcome, best)

    def tick(self, spent: Spent, running: int) -> None:
        others = self._others
        family = replace(
            spent,
            trials=others.trials + spent.trials,
            seconds=others.seconds + spent.seconds,
            finished=others.trials + spent.finished,  # nothing is in flight for the others
        )
        self._progress.tick(family, running)

    def defending(self, entrants: tuple[str, ...], seconds: float) -> None:
        self._progress.note(f"{self._label}: {self._again}")
        self._progress.defending(entrants, seconds)

    def confirming(self, entrants: tuple[str, ...], runs: int, seconds: float) -> None:
        self._progress.confirming(entrants, runs, seconds)

    def defended(self, rounds: int) -> None:
        self._progress.defended(rounds)
