"""Progress of a search: a live display on a terminal, plain lines elsewhere, nothing if it is to be quiet."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from autotune.errors import shorten_middle
from autotune.measure.diagnostics import headline
from autotune.measure.outcome import Outcome
from autotune.report.numbers import digits_apart, say_count, say_estimate, say_seconds
from autotune.report.text import visible
from autotune.session.budget import Spent
from autotune.session.progress import Best, Opening, Progress
from autotune.space.configuration import Configuration
from autotune.status import Status

if TYPE_CHECKING:  # rich takes longer to load than most commands take
    from rich.live import Live
    from rich.text import Text

LEAST_SECONDS, MOST_SECONDS = 5.0, 60.0
"""Between two status lines if the output is not a terminal."""

MOST_OF_A_MESSAGE = 200
"""The most characters of a trial's message that are shown."""


@contextmanager
def make_progress(*, quiet: bool) -> Iterator[Progress]:
    """The progress that suits stderr, none without a stderr. A live display is cleared at the end."""
    if quiet or sys.stderr is None:
        yield Progress()
    elif sys.stderr.isatty():
        with terminal_progress() as progress:
            yield progress
    else:
        yield LineProgress()


class LineProgress(Progress):
    """Plain lines on stderr: every improvement, the first failure of each kind, and now and then a status."""

    def __init__(self) -> None:
        self.unit = ""
        self.opening: Opening | None = None
        self.best: Best | None = None
        self._best_said = ""
        """The best value, with as many digits as distinguish it from the best before it."""
        self.failures: deque[str] = deque(maxlen=3)
        self._seen: set[Status] = set()
        self._written = self._began = time.monotonic()
        self._done = 0
        self._pruned = 0
        self.last_pruned = ""

    @property
    def replayed(self) -> bool:
        return self.opening is not None and self.opening.replayed

    def write(self, text: str) -> None:
        with suppress(OSError):  # a full disk or a closed pipe does not end the search
            click.echo(text, err=True)

    def opened(self, opening: Opening) -> None:
        self.opening, self.unit = opening, visible(opening.metric.unit)
        self._began, self._done, self.best = time.monotonic(), 0, None  # a family opens one after another
        feasible = opening.feasible
        count = "" if feasible is None else f", {say_count(feasible, 'configuration')}"
        earlier = f", {say_count(opening.earlier, 'earlier trial')}" if opening.earlier else ""
        replayed = " (REPLAYED from a recording)" if self.replayed else ""
        self.write(f"study {opening.study}{replayed}: strategy {opening.strategy}{count}{earlier}")

    def note(self, text: str) -> None:
        self.write(f"note: {visible(text)}")

    def finished(
        self, number: int, configuration: Configuration, outcome: Outcome, best: Best | None
    ) -> None:
        self._done += 1
        if outcome.status.failed:
            self.failures.append(f"trial {number} {outcome.status}: {_headline(outcome.message)}")
            if outcome.status not in self._seen:
                self._seen.add(outcome.status)
                self.write(self.failures[-1])
        if outcome.status is Status.PRUNED:
            self._pruned += 1
            self.last_pruned = f"trial {number} pruned: {_headline(outcome.message)}"
            if self._pruned == 1:
                self.write(self.last_pruned)
        if best is not None and (self.best is None or best.trial != self.best.trial):
            before = best if self.best is None else self.best
            digits = digits_apart(before.estimate.value, best.estimate.value)
            self._best_said = say_estimate(best.estimate, self.unit, digits)
            self.best = best
            self.write(f"trial {best.trial}: best so far {self._best_said}")

    def tick(self, spent: Spent, running: int) -> None:
        now = time.monotonic()
        if now - self._written >= seconds_between(now - self._began):
            self._written = now
            self.write(self.status(spent, running))

    def status(self, spent: Spent, running: int) -> str:
        """``42/200 trials, 4 in flight, best 4.1 ms, 0.8 trials/s, 2 min left``.

        The 42 are finished trials; the rate counts those that this session has finished. Trials that wait at
        a rung are ``paused``: a bracket of 27 has no finished one for a long time.
        """
        budget = self.opening.budget if self.opening else None
        of = budget.trials if budget else None
        parts = [f"{spent.finished}/{of} trials" if of else say_count(spent.finished, "trial")]
        if running:
            parts.append(f"{running} in flight")
        if spent.paused:
            parts.append(f"{spent.paused} paused")
        if self.best:
            parts.append(f"best {self._best_said}")
        if self._pruned:
            parts.append(f"{self._pruned} pruned")
        rate = self._done / max(time.monotonic() - self._began, 1e-9)
        if self._done:
            parts.append(f"{rate:.2g} trials/s")
        if left := self.left(spent, running, rate):
            parts.append(left)
        return ", ".join(parts)

    def left(self, spent: Spent, running: int, rate: float) -> str:
        """``2 min left``, by the limit of the budget that is reached first; empty while nothing is known.

        Trials in flight count as spent, so the time that they still need is added.
        """
        budget = self.opening.budget if self.opening else None
        ends: list[float] = []
        if budget is not None and budget.time is not None:
            ends.append(budget.time - spent.seconds)
        if budget is not None and budget.trials is not None and rate > 0:
            ends.append((max(budget.trials - spent.trials, 0) + running) / rate)
        if not ends:
            return ""
        return f"{say_seconds(round(min(ends)))} left" if min(ends) > 0 else "finishing"

    def defending(self, entrants: tuple[str, ...], seconds: float) -> None:
        if self.replayed:  # nothing is measured, and it takes no time worth naming
            self.write(f"comparing the recorded readings of {', '.join(entrants)}")
            return
        known = f"about {say_seconds(seconds)}, or longer if readings are slow or noisy"
        self.write(f"measuring again, interleaved: {', '.join(entrants)} ({known})")

    def confirming(self, entrants: tuple[str, ...], runs: int, seconds: float) -> None:
        known = f"up to {say_count(runs, 'run')}, {say_seconds(seconds)}"
        self.write(f"and in fresh processes: {', '.join(entrants)} ({known})")

    def defended(self, rounds: int) -> None:
        self.write(f"{say_count(rounds, 'round')} {'compared' if self.replayed else 'measured'}")


def seconds_between(elapsed: float) -> float:
    """Seconds between two status lines: a log of a night is to be read, and had 5,000 of them."""
    return min(max(LEAST_SECONDS, elapsed / 20), MOST_SECONDS)


class TerminalProgress(LineProgress):
    """The same lines, above a few at the bottom of the terminal that are updated in place."""

    def __init__(self, live: Live) -> None:
        super().__init__()
        self._live = live

    def write(self, text: str) -> None:
        from rich.text import Text

        with suppress(OSError):
            self._live.console.print(Text(text))

    def tick(self, spent: Spent, running: int) -> None:
        from rich.console import Group
        from rich.text import Text

        lines = [Text(self.status(spent, running), style="bold")]
        lines += [Text(f"  {told}", style="dim") for told in (*self.failures, self.last_pruned) if told]
        self._live.update(Group(*lines))

    def defending(self, entrants: tuple[str, ...], seconds: float) -> None:
        self._live.update(_Elapsed(seconds), refresh=True)
        super().defending(entrants, seconds)

    def confirming(self, entrants: tuple[str, ...], runs: int, seconds: float) -> None:
        self._live.update(_Elapsed(seconds), refresh=True)
        super().confirming(entrants, runs, seconds)

    def defended(self, rounds: int) -> None:
        self._live.update("", refresh=True)
        super().defended(rounds)


class _Elapsed:
    """How long the finale has taken, computed at each redraw, since ``tick`` is not called meanwhile."""

    def __init__(self, expected: float) -> None:
        self._expected, self._began = expected, time.monotonic()

    def __rich__(self) -> Text:
        from rich.text import Text

        taken = say_seconds(round(time.monotonic() - self._began))
        return Text(f"{taken} of about {say_seconds(self._expected)}", style="bold")


@contextmanager
def terminal_progress() -> Iterator[Progress]:
    """A live display, for as long as the block runs."""
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, highlight=False)
    with Live(console=console, transient=True, refresh_per_second=4) as live:
        yield TerminalProgress(live)


def _headline(message: str) -> str:
    """The headline of a program's message, shortened, with control characters escaped."""
    return visible(shorten_middle(headline(message), MOST_OF_A_MESSAGE)) or "no message"
