"""What a search says while it runs. The shell draws it; a library caller hears nothing."""

from __future__ import annotations

from dataclasses import dataclass

from autotune.errors import InputError, Problem
from autotune.measure.outcome import Estimate, Outcome
from autotune.session.budget import Spent
from autotune.space.configuration import Configuration
from autotune.space.spec import Budget, MetricSpec


@dataclass(frozen=True)
class Best:
    """The best configuration seen so far, before it is defended."""

    trial: int
    configuration: Configuration
    estimate: Estimate


@dataclass(frozen=True)
class Opening:
    """What is known when the loop begins."""

    study: str
    metric: MetricSpec
    strategy: str
    budget: Budget
    """With no more trials than there are configurations."""
    feasible: int | None
    """How many configurations there are; ``None`` where they are not counted."""
    earlier: int
    """Trials of this study that were there already."""
    replayed: bool


class Progress:
    """Receives what happens, in the caller's thread. Every method does nothing by default."""

    def opened(self, opening: Opening) -> None:
        """The study stands and the loop begins."""

    def note(self, text: str) -> None:
        """Something the user should know: a new study and why, a changed source, a lost trial."""

    def finished(
        self, number: int, configuration: Configuration, outcome: Outcome, best: Best | None
    ) -> None:
        """Trial ``number`` of the study ended."""

    def tick(self, spent: Spent, running: int) -> None:
        """Called a few times a second while trials run."""

    def defending(self, entrants: tuple[str, ...], seconds: float) -> None:
        """The loop is over; the finalists are measured again, which takes about ``seconds``.

        That is no limit: the fewest rounds are read however long one takes.
        """

    def confirming(self, entrants: tuple[str, ...], runs: int, seconds: float) -> None:
        """A finalist has won: ``entrants`` are read in ``runs`` of fresh processes, ``seconds`` at most."""

    def defended(self, rounds: int) -> None:
        """The re-measurement is over."""


def heard_by(progress: object) -> Progress:
    """``progress`` itself, one that says nothing for ``None``; :class:`InputError` for what is none."""
    if progress is None:
        return Progress()
    if not isinstance(progress, Progress):
        expected = "an autotune.Progress, such as autotune.LineProgress()"
        raise InputError(Problem(f"progress is {progress!r:.60}", expected=expected))
    return progress
