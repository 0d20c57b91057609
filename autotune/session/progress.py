"""What a search reports while it runs. The command line shows it; a library call is silent by default."""

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
    """The facts of a search when its loop begins."""

    study: str
    metric: MetricSpec
    strategy: str
    budget: Budget
    """Its number of trials is at most the number of configurations, and that number if it has no limit."""
    feasible: int | None
    """How many configurations there are; ``None`` if they are not counted."""
    earlier: int
    """How many trials the study had already."""
    replayed: bool


class Progress:
    """Receives what happens in a search, in the caller's thread. Every method does nothing by default."""

    def opened(self, opening: Opening) -> None:
        """The study is open and the loop begins."""

    def note(self, text: str) -> None:
        """Something the user should know: a new study and why, a changed source, a lost trial."""

    def finished(
        self, number: int, configuration: Configuration, outcome: Outcome, best: Best | None
    ) -> None:
        """Trial ``number`` of the study ended."""

    def tick(self, spent: Spent, running: int) -> None:
        """Called a few times a second while trials run."""

    def defending(self, entrants: tuple[str, ...], seconds: float) -> None:
        """The loop is over; ``entrants`` are measured again, which takes about ``seconds``.

        It may take longer: a minimum of rounds is read however long one takes, and more of them where the
        readings are noisy.
        """

    def confirming(self, entrants: tuple[str, ...], runs: int, seconds: float) -> None:
        """A finalist has won: ``entrants`` are read in up to ``runs`` runs of fresh processes.

        That takes about ``seconds``.
        """

    def defended(self, rounds: int) -> None:
        """The finale is over, after ``rounds`` rounds."""


def heard_by(progress: object) -> Progress:
    """``progress``, or a silent one for ``None``. Raises :class:`InputError` for any other object."""
    if progress is None:
        return Progress()
    if not isinstance(progress, Progress):
        expected = "an autotune.Progress, such as autotune.LineProgress()"
        raise InputError(Problem(f"progress is {progress!r:.60}", expected=expected))
    return progress
