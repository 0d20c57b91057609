"""Who runs the trials: the contract.

::

    session ──submit(ticket)──▶ executor        prepare ▸ load ▸ check ▸ measure
            ◀──poll()── Started, Finished

An executor keeps several trials in flight: while one is measured, the next are prepared. Trials end in
whatever order they do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import MappingProxyType

from autotune.measure.objective import Baseline
from autotune.measure.outcome import Estimate, Outcome, Reading, Report
from autotune.measure.reports import Curve
from autotune.session.same_code import Known
from autotune.space.configuration import Configuration


@dataclass(frozen=True)
class Ticket:
    """A trial to run."""

    trial_id: int
    configuration: Configuration
    seed: int
    """The trial's number in its study, which makes its random inputs."""
    curve: Curve | None = None
    """How to follow its one run; ``None``: it is read until it is known well enough."""


@dataclass(frozen=True)
class Started:
    """A trial has begun, on ``worker``."""

    trial_id: int
    worker: str


@dataclass(frozen=True)
class Finished:
    """A trial has ended."""

    trial_id: int
    outcome: Outcome


Event = Started | Finished

Listener = Callable[[int, Report, bool], str]
"""Takes a trial's id, its report, and whether its run waits for an answer; returns why it has to end, or an
empty text."""


def unheard(trial_id: int, report: Report, waits: bool) -> str:
    """The listener where nobody listens: every run goes on."""
    return ""


class Entrant(ABC):
    """A configuration or baseline that is ready to be read at any time, in turns with others."""

    failure: Outcome | None = None
    """Why it cannot be read (any more); ``None`` while it can."""

    checked: Mapping[str, Estimate] = MappingProxyType({})
    """The metrics that its check has returned."""

    most_readings: int | None = None
    """How many different readings there are (in a recording); ``None``: any number."""

    @abstractmethod
    def read(self, seed: int) -> tuple[Reading, ...]:
        """One reading of each metric on fresh inputs, preceded by a discarded one where caches matter.

        Empty where it fails; :attr:`failure` then says how.
        """

    @abstractmethod
    def close(self) -> None:
        """Give back what it holds. May be called again."""


class Executor(ABC):
    """Runs trials. Used by one thread; close it in the end, whatever happened."""

    capacity: int = 1
    """How many trials are worth having in flight."""

    remark: str = ""
    """What the user should know about where trials run; empty where nothing is unusual."""

    long_lived: bool = False
    """Whether all readings of an entrant are made in one process of its own."""

    starting: float = 0.0
    """Seconds that passed before it could take its first trial: its workers had to start."""

    incumbent: Estimate | None = None
    """The best so far, set by the session. It is looked at when a measurement begins, so that a hopeless one
    can be stopped early."""

    listener: Listener = staticmethod(unheard)
    """Called in :meth:`poll` for each report of a ticket that has a curve, in the order of reporting."""

    @property
    def edited(self) -> bool:
        """Whether the objective's files have changed since before any process loaded them, or since the last
        :meth:`reload`. What starts now loads the new ones."""
        return False

    def remember(self, known: Mapping[str, Known]) -> None:  # noqa: B027 - not all compile
        """Learn which code was measured before, by its fingerprint: it is not measured again."""

    def aside(self) -> AbstractContextManager[None]:
        """Inside the block the calling thread, which is about to compute, stays off the measuring cores."""
        return nullcontext()

    def together(self) -> AbstractContextManager[None]:
        """Inside the block, for as long as is fair, no other search measures between readings of entrants."""
        return nullcontext()

    @abstractmethod
    def submit(self, ticket: Ticket) -> None:
        """Take a trial on. Returns at once."""

    @abstractmethod
    def poll(self, timeout: float) -> list[Event]:
        """What has happened, waiting up to ``timeout`` seconds for it; empty if nothing is in flight.

        Raises :class:`autotune.errors.AutotuneError` if no trial can be run at all any more.
        """

    @abstractmethod
    def cancel(self) -> None:
        """Give up what is in flight: it ends as ``lost`` in the next :meth:`poll`."""

    @abstractmethod
    def tidy(self, configuration: Configuration) -> None:
        """Its trial has ended for good: remove what it has built and its checkpoints."""

    @abstractmethod
    def entrants(self, wanted: Sequence[Configuration | Baseline], run: int = 0) -> list[Entrant]:
        """Prepare, load and check each, perhaps side by side; a failure is noted in the entrant.

        Where each has a process of its own, what a process draws at random when it starts (Python's hash
        seed) is the same for all of one ``run``, and different in another run.
        """

    @abstractmethod
    def baselines(self) -> tuple[Baseline, ...]:
        """What the objective can be held against on this machine."""

    def reload(self) -> None:  # noqa: B027 - an executor without source has nothing to reload
        """The objective's source has changed: trials that have not begun to be measured end as
        ``lost``, and all that follow use the new one."""

    @abstractmethod
    def close(self) -> None:
        """End all that is in flight and leave nothing behind. May be called again."""


def nothing() -> None:
    """Do nothing: the default for what to call while a worker starts."""
