"""A worker as its session sees it: a process that can be killed at any moment, with all that it started."""

from __future__ import annotations

import math
import os
import select
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import UnionType
from typing import Any, TypeAlias

from autotune.errors import InputError
from autotune.measure.capture import tail_text
from autotune.measure.outcome import Outcome
from autotune.measure.workers.channel import BrokenChannel
from autotune.measure.workers.endings import KILL, SILENT
from autotune.measure.workers.guardian_link import GuardianLink
from autotune.measure.workers.messages import (
    Answer,
    Decided,
    Ready,
    Refused,
    Reported,
    Request,
    Setup,
    StoodBy,
)
from autotune.measure.workers.postmortem import Cause, Death, after_memory_kill

Said: TypeAlias = Answer | Ready | StoodBy
"""The messages that end the task of a worker."""

START_SECONDS = 120.0
"""How long an objective may take to import (torch on a cold disk takes a while)."""

STAND_BY_SECONDS = 60.0
"""How long it may stand by, before its first request (a context on a GPU takes seconds)."""

STOOD_STILL_SECONDS = 2.0
"""A process that wakes up so much later than it asked to was itself stopped (Ctrl-Z, a frozen container), and
perhaps its workers too: that time does not count towards their limits."""

LONGEST_WAIT_SECONDS = 1.0
"""The longest single wait: one until the deadline would not show that this process stood still meanwhile."""


@dataclass(frozen=True)
class _Task:
    """What a worker is doing: starting, standing by, or serving a request."""

    awaits: type[Ready] | type[StoodBy] | UnionType
    """The message that ends it; a worker that sends another one is killed."""
    seconds: float
    """Its time limit."""
    began: float = field(default_factory=time.monotonic)
    waited: float = 0.0
    """Seconds of waiting for another search by which the deadline was moved already."""
    machine_kills: int = field(default_factory=lambda: _machine_kills())
    """How many processes the kernel had killed for memory when it began."""

    @property
    def deadline(self) -> float:
        return self.began + self.seconds


class Worker:
    """A process that makes an objective and then answers requests about it, one at a time.

    Its life::

        born ──▶ starting ──Ready──▶ idle ◀──answer── busy
                    │ │               │▲└───request────▲ │
                    │ └─Ready─▶ standing by              │
                    │ Refused         │                  │
                    ▼                 ▼                  ▼
                 InputError         ended ◀── died, killed at its limit, given up, or closed

    A worker stands by while its objective does work that belongs to no trial. It takes no request then, so
    that this time counts for no trial's limit, and no trial is lost if the worker dies of it.

    There are two processes. The *guardian* runs none of the objective's code. The worker proper is its child:
    capped, pinned, in a process group of its own. It adopts the orphans among its descendants; after its
    death the guardian adopts them. When the session or the worker ends, the guardian kills and reaps
    everything below it. The owner of a Worker must close it. Only :meth:`wait` waits for the objective's
    code; all other methods return at once, or as soon as the guardian has done its work.
    """

    def __init__(
        self,
        setup: Setup,
        environment: Mapping[str, str] | None = None,
        guardian_cores: tuple[int, ...] = (),
    ) -> None:
        """Begin to start. ``environment`` is added to that of this process."""
        self.setup = setup
        self.ready: Ready | None = None
        self.output = ""
        """What it printed during its last request."""
        self.reported: list[Reported] = []
        """Reports of its present trial that nobody has taken yet."""
        self._task: _Task | None = _Task(Ready, START_SECONDS)
        self._death: Death | None = None
        self._link = GuardianLink(setup, environment or {}, guardian_cores)
        self._link.channel.send(setup)

    @property
    def name(self) -> str:
        """Host and process, as they are written down with a trial."""
        return f"{os.uname().nodename}:{self.pid}"

    @property
    def pid(self) -> int:
        """The process id of the guardian, of which all others are descendants."""
        return self._link.pid

    @property
    def alive(self) -> bool:
        return self._death is None

    @property
    def busy(self) -> bool:
        """Whether it has not answered yet; starting counts, and standing by."""
        return self._task is not None

    @property
    def standing_by(self) -> bool:
        """Whether it stands by now, or died while it did."""
        return self._task is not None and self._task.awaits is StoodBy

    @property
    def deadline(self) -> float:
        """When it will be killed if it has not answered (monotonic); infinite while it is idle."""
        return self._task.deadline if self._task is not None and self.alive else math.inf

    # -- asking and answering ------------------------------------------------------------------

    def ask(self, request: Request, seconds: float) -> None:
        """Send a request to an idle worker, to be answered within ``seconds``."""
        assert self.ready is not None and not self.busy, "a worker answers one request at a time"
        self._task = _Task(Answer, seconds)
        self._link.channel.send(request)

    def answer(self, decided: Decided) -> None:
        """Answer a report that waits."""
        if self.alive:
            self._link.channel.send(decided)

    def watch(self, poll: select.poll) -> None:
        """Register every descriptor that may have news."""
        if self.alive:
            unsent = select.POLLOUT if self._link.channel.unsent else 0
            poll.register(self._link.channel.fileno(), select.POLLIN | unsent)
            poll.register(self._link.fileno(), select.POLLIN)

    def attend(self) -> Said | Death | None:
        """What has come since the last call, if anything; never waits for the worker.

        Raises :class:`InputError` where the objective cannot be used at all.
        """
        return self._death or self._heard() or self._ended()

    def _heard(self) -> Said | Death | None:
        """What the worker itself has sent, if anything."""
        try:
            self._link.channel.flush()
            messages = self._link.channel.receive()
        except BrokenChannel:
            return self._end(Cause.SILENT, SILENT)
        self.reported += [message for message in messages if isinstance(message, Reported)]
        answers = [message for message in messages if not isinstance(message, Reported)]
        return self._take(answers) if answers else None

    def _ended(self) -> Death | None:
        """Its end, where the guardian reports one or has died itself, or the time limit is reached."""
        try:
            has_ended = self._link.hear()
        except BrokenChannel:
            return self._end(Cause.VANISHED, KILL)
        if has_ended:
            return self._end(Cause.SILENT, SILENT)
        if time.monotonic() >= self.deadline and not self._forgive_waiting():
            return self._end(Cause.LIMIT, KILL)
        return None

    def _forgive_waiting(self) -> bool:
        """Move the deadline by its waiting for another search since the last call; whether it waited."""
        assert self._task is not None, "an idle worker has no limit"
        waited = self._link.waited()
        more = waited - self._task.waited
        self._task = replace(self._task, began=self._task.began + more, waited=waited)
        return more > 0.0

    def forgive(self, seconds: float) -> None:
        """Move the deadline by so many seconds, in which nobody could have heard its answer."""
        if self._task is not None:
            self._task = replace(self._task, began=self._task.began + seconds)

    def wait(self) -> Said | Death:
        """Wait for the answer, at most until the deadline."""
        while (came := self.attend()) is None:
            wait_for_any([self])
        return came

    def _take(self, answers: list[Any]) -> Said | Death:
        """Accept the first of its answers, if it is the one awaited and nothing unexpected follows it."""
        first, *more = answers
        if isinstance(first, Refused):
            self.close()
            raise InputError(first.problems)
        awaited = self._task is not None and isinstance(first, self._task.awaits)
        if not awaited or (more and not isinstance(first, Ready)):
            return self._end(Cause.SILENT, KILL)
        said: Said = first
        self.output = self._link.output()
        self._task = None
        if isinstance(said, Ready):
            self.ready = said
            if said.stands_by:
                self._task = _Task(StoodBy, STAND_BY_SECONDS)
            if more:  # it has stood by already
                self._take(more)  # if that ends the worker, the next call says so
        return said

    # -- ending --------------------------------------------------------------------------------

    def close(self) -> None:
        """Kill it, if it is alive, with everything that it started. Nothing of it is left afterwards."""
        if self._death is None:
            self._end(Cause.ORDER, KILL)

    def completed(self, outcome: Outcome) -> Outcome:
        """What it answered, with what only this side knows: its name, what it printed, a process killed for
        memory."""
        if self.setup.cap is not None and outcome.status.failed and self.memory_kills():
            outcome = after_memory_kill(outcome, self.setup.cap.bytes)
        # A program's last words are in what its worker printed, too.
        said = "" if outcome.stderr.strip() in self.output else outcome.stderr
        printed = tail_text("\n".join(filter(None, [self.output, said])).encode())
        return replace(outcome, stderr=printed, worker=self.name)

    def memory_kills(self) -> int:
        """How many of its processes the kernel has killed at its memory cap."""
        return self.setup.cap.kills() if self.setup.cap is not None else 0

    def _end(self, cause: Cause, order: bytes) -> Death:
        now, task = time.monotonic(), self._task
        ended = self._link.end(order)
        if ended is None:
            cause = Cause.VANISHED
        elif cause in (Cause.SILENT, Cause.LIMIT) and not ended.killed:
            cause = Cause.DIED
        self.output = ended.output if ended is not None else self._link.own_errors()
        self._death = Death(
            cause=cause,
            ended=ended,
            noted=self._link.noted(now),
            cap_kills=self.memory_kills(),
            machine_kills=_machine_kills() - task.machine_kills if task is not None else 0,
            output=self.output,
            limit=task.seconds if task is not None else math.inf,
            cap=self.setup.cap.bytes if self.setup.cap is not None else None,
        )
        self._link.close()
        if self.setup.cap is not None:
            self.setup.cap.remove()  # or the next session will, where the kernel is not done with it
        return self._death


def wait_for_any(workers: Sequence[Worker], seconds: float = LONGEST_WAIT_SECONDS) -> None:
    """Wait until one of them has something to say or is past its deadline, for up to ``seconds``.

    Where this process stood still meanwhile, their deadlines are moved by that time.
    """
    poll = select.poll()
    for worker in workers:
        worker.watch(poll)
    began = time.monotonic()
    wait = max(0.0, min([began + seconds, *(worker.deadline for worker in workers)]) - began)
    poll.poll(wait * 1000 + 1)
    late = time.monotonic() - began - wait
    if late > STOOD_STILL_SECONDS:
        for worker in workers:
            worker.forgive(late)


def _machine_kills() -> int:
    """How many processes the kernel has killed for memory since the machine started."""
    with suppress(OSError, ValueError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0
