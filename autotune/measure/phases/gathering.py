"""What is gathered about one configuration while it goes through its phases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from autotune.measure.clocks import perf_counter
from autotune.measure.facts import MISTAKE, SURE, given_facts
from autotune.measure.forked import forks_end_here
from autotune.measure.outcome import Estimate, Outcome, Reading
from autotune.measure.phases.raised import Failed, failed
from autotune.measure.readings import MOST_DISCARDED, Sample
from autotune.measure.rules.statistics import estimates
from autotune.status import Status


class Notes(Protocol):
    """Where it is written down how far a trial has come, in case its process dies."""

    def phase(self, name: str) -> None: ...

    def reading(self, reading: Reading) -> None: ...

    def facts(self, facts: Mapping[str, object]) -> None: ...

    def waiting(self) -> AbstractContextManager[None]: ...


class NoNotes:
    """For a runner whose process is not expected to die."""

    def phase(self, name: str) -> None:
        return

    def reading(self, reading: Reading) -> None:
        return

    def facts(self, facts: Mapping[str, object]) -> None:
        return

    def waiting(self) -> AbstractContextManager[None]:
        return nullcontext()


@dataclass
class Trial:
    """What is gathered about one configuration while it goes through its phases."""

    notes: Notes
    own_process: bool
    phases: dict[str, float] = field(default_factory=dict)
    readings: list[Reading] = field(default_factory=list)
    checked: dict[str, Estimate] = field(default_factory=dict)
    facts: dict[str, object] = field(default_factory=dict)
    discarded: dict[str, int] = field(default_factory=dict)
    """How many readings the objective said not to count, and why."""
    phase: str = ""

    @contextmanager
    def during(self, phase: str) -> Iterator[None]:
        """Times a phase; an exception of the objective in it becomes :class:`Failed`."""
        self.phase = phase
        self.notes.phase(phase)
        start = perf_counter()
        try:
            with forks_end_here():
                yield
        except Failed:
            raise
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and not self.own_process:
                raise  # the user's
            raise failed(error) from error
        finally:
            self.phases[phase] = self.phases.get(phase, 0.0) + perf_counter() - start

    def add(self, reading: Reading) -> None:
        self.readings.append(reading)
        self.notes.reading(reading)

    def take_checked(self, checked: Iterable[Reading]) -> None:
        """Keep the metrics that a check returned, here or in the worker that prepared."""
        for reading in checked:
            self.add(reading)
            self.checked[reading.metric] = Estimate.of_one(reading.value)

    def keep(self, sample: Sample, at: float, discarded: str = "") -> bool:
        """Keep a reading of each metric, and return whether it counts.

        ``discarded``: why it does not count, whatever the objective says; empty: the objective decides.
        """
        if sample.discarded and not discarded:
            self.discarded[sample.discarded] = self.discarded.get(sample.discarded, 0) + 1
            self.facts |= {"discarded": dict(self.discarded)}
        self.facts |= sample.facts
        why = discarded or sample.discarded
        for name, value in sample.values.items():
            self.add(Reading(name, value, at, why, sample.context))
        return not why

    def set_aside(self, first: int, why: str, until: int | None = None) -> None:
        """Discard readings that were kept before: those from ``first`` on, and before ``until`` if given."""
        aside = slice(first, until)
        self.readings[aside] = [replace(r, discarded=r.discarded or why) for r in self.readings[aside]]

    @property
    def spoilt(self) -> str:
        """How many readings the objective discarded, and why, in words; empty if none."""
        count = sum(self.discarded.values())
        which = "1 reading was" if count == 1 else f"{count} readings were"
        return f"{which} discarded as {' and '.join(self.discarded)}" if count else ""

    @property
    def stays_spoilt(self) -> str:
        """Why reading on is useless, since too many readings were discarded; empty if it is not."""
        return self.spoilt if sum(self.discarded.values()) >= MOST_DISCARDED else ""

    def note(self, facts: Mapping[str, object]) -> None:
        """Keep facts that are given before the trial has ended, however it ends. Raises as given_facts."""
        given = given_facts(facts)
        self.facts |= given
        self.notes.facts(given)

    def must_go_on(self, late: bool = False) -> None:
        """End the trial as ``lost`` if no reading of it will ever count.

        The device is at fault for that, and not the configuration, which is tried again later.
        """
        if spoilt := self.stays_spoilt:
            raise Failed(Status.LOST, f"nothing of it counts: {spoilt}")
        if late and (spoilt := self.spoilt):
            raise Failed(Status.LOST, f"nothing of it counts: {spoilt}; the time limit allows no more")

    def values(self, metric: str) -> list[float]:
        return [r.value for r in self.readings if r.metric == metric and not r.discarded]

    def estimates(self, confidence: float) -> dict[str, Estimate]:
        return estimates(self.readings, confidence)

    def typed(self, run: Callable[[], Outcome]) -> Outcome:
        """What ``run`` returns, or how the trial ends if a phase of it has failed."""
        try:
            return run()
        except Failed as failure:
            stood = {name: Estimate.of_one(value) for name, value in failure.metrics.items()}
            if failure.mistake:
                self.facts |= {MISTAKE: failure.mistake, **({SURE: True} if failure.sure else {})}
            return self.outcome(
                failure.status,
                failure.message,
                metrics=self.checked | stood if failure.status is Status.WRONG else {},
                stderr=failure.stderr,
                exit_code=failure.exit_code,
                signal=failure.signal,
            )

    def outcome(self, status: Status, message: str = "", **more: Any) -> Outcome:
        return Outcome(
            status,
            readings=tuple(self.readings),
            phases=dict(self.phases),
            message=message,
            phase=self.phase if status.failed else "",
            facts=dict(self.facts),
            **more,
        )
