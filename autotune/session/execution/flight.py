"""A trial on its way through the workers, and what its earlier stages have found."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from autotune.measure.capture import tail_text
from autotune.measure.facts import TIMELINE
from autotune.measure.outcome import Estimate, Outcome, added
from autotune.measure.workers.messages import Check, Measure, Prepare
from autotune.session.execution.executor import Ticket
from autotune.session.execution.slot import PREPARE
from autotune.session.same_code import SameCode

CHECK = "check"
"""The stage in which a preparing worker checks; other stages have the name of the worker's role."""


@dataclass
class Flight:
    """A trial on its way."""

    ticket: Ticket
    preparation: Outcome | None = None
    """How preparing it ended; ``None`` if it is not prepared, or not yet."""
    prepared: bytes | None = None
    check: Outcome | None = None
    """What its check found ahead of its turn; ``None`` if it is checked when it is measured."""
    same_code: SameCode[Flight] | None = None
    """The book of what has the same code, as the source was when it was prepared; ``None`` before that."""
    timeline: dict[str, list[float]] = field(default_factory=dict)
    """As :data:`autotune.measure.facts.TIMELINE` says."""

    @property
    def prepare_request(self) -> Prepare:
        return Prepare(self.ticket.configuration)

    @property
    def check_request(self) -> Check:
        assert self.prepared is not None
        return Check(self.ticket.configuration, self.prepared, self.ticket.seed)

    def measure_request(self, seconds: float, incumbent: Estimate | None, preparers: int) -> Measure:
        """``preparers``: how many prepare side by side; each trial costs the search its part of that time."""
        ticket, checked = self.ticket, None if self.check is None else self.check.readings
        spent = self.preparation.phases.get("prepare", 0.0) if self.preparation else 0.0
        return Measure(
            ticket.configuration,
            self.prepared,
            ticket.seed,
            seconds,
            incumbent,
            ticket.curve,
            checked,
            spent / max(preparers, 1),
        )

    def note(self, role: str, began: float, ended: float, lane: int) -> None:
        """Note that a worker of this role had it, from ``began`` to ``ended`` in seconds since the epoch."""
        stage = CHECK if role == PREPARE and PREPARE in self.timeline else role
        self.timeline[stage] = [round(began, 4), round(ended, 4), lane]

    def whole(self, last: Outcome) -> Outcome:
        """The outcome of the last stage, joined with phases, output and facts of the stages before."""
        for before in (self.check, self.preparation):
            if before is not None:
                last = _joined(before, last)
        return last

    def with_timeline(self, outcome: Outcome) -> Outcome:
        return (
            replace(outcome, facts={**outcome.facts, TIMELINE: self.timeline}) if self.timeline else outcome
        )


def _joined(before: Outcome, outcome: Outcome) -> Outcome:
    return replace(
        outcome,
        phases=added(before.phases, outcome.phases),
        stderr=tail_text("\n".join(filter(None, [before.stderr, outcome.stderr])).encode()),
        facts={**before.facts, **outcome.facts},
    )
