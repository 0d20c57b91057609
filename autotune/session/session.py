"""The loop: ask the strategy, write down, execute, write down, tell; then defend the winner.

An interrupt ends the loop, and the finalists are still measured again; a second one ends everything at
once. All trials that have ended are in the store either way.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace

from autotune.measure.outcome import Outcome
from autotune.provenance.environment import Environment
from autotune.session.answers import is_settled, load_result
from autotune.session.budget import limit_reached, out_of_time, overdue
from autotune.session.early_stopping.stopping import Stopping, make_stopping
from autotune.session.execution.executor import Executor, Finished, Started, Ticket
from autotune.session.finale.finale import defend
from autotune.session.ledger import MAX_ATTEMPTS, Ledger
from autotune.session.opening.opening import check_feasible, next_segment, open_study
from autotune.session.progress import Opening, Progress
from autotune.session.remarks.remarks import Remarks
from autotune.session.result import EXHAUSTED, INTERRUPTED, Result
from autotune.session.same_failure import MISTAKEN
from autotune.space.spec import Budget, StudySpec
from autotune.status import Status
from autotune.store.records import TrialRecord
from autotune.store.statements.room import Room
from autotune.store.store import Store

POLL_SECONDS = 0.25
"""How long the loop waits for events of workers before it checks the budget and renews the leases."""


TIME_UP = "the time was up before the rest of its bracket was there"
LEFT_TO_ANOTHER = "the rest of the time was left to another, so that one would be complete"
"""Why a paused trial goes no further."""


class AskInterrupted(KeyboardInterrupt):
    """Raised by a signal handler while a strategy is choosing: none of its proposals is written yet."""


@dataclass
class Session:
    """One run of the loop over a study. Call :meth:`run` once.

    The session closes ``executor``. ``stop()`` may be called from a signal handler: the trials in flight are
    given up, the loop ends, and the finalists are measured again.
    """

    spec: StudySpec
    store: Store
    executor: Executor
    environment: Environment
    fresh: bool = False
    part: bool = False
    """Whether this session is a slice of a larger search, which goes on after its budget is spent."""
    shared: Callable[[], Room | None] | None = None
    """Gives what is left of a budget that is shared with other studies."""
    progress: Progress = field(default_factory=Progress)
    remarks: Remarks = field(default_factory=Remarks)
    measuring_again: bool = field(default=False, init=False)
    """Whether the search is over and the finalists are being measured: an interrupt ends that at once."""
    _stopped: str = ""
    _giving_up: bool = False
    """Whether trials in flight are given up; the next session will try them again."""
    _ledger: Ledger | None = None
    _stopping: Stopping | None = None
    """Early stopping, if the study asks for it."""

    def run(self) -> Result:
        """Search until the budget is spent or the space is exhausted, then measure the finalists again."""
        with closing(self.executor), self.executor.aside(), self.store.waiting(self.progress.note):
            if not self.part:
                check_feasible(self.spec)
            study = open_study(self.spec, self.store, self.environment, fresh=self.fresh, goes_on=self.part)
            self._ledger = ledger = Ledger(
                self.spec,
                self.store,
                study,
                self.environment,
                part=self.part,
                starting=self.executor.starting,
            )
            reason = "crashed"
            try:
                self._stopping = make_stopping(self.spec, self.store, study.record.id, ledger.session_id)
                if self._stopping is not None:
                    self.executor.listener = self._stopping.hear
                self.executor.remember(ledger.known_codes())
                self._announce(ledger)
                reason = self._search(ledger)
                if self._stopped:
                    self.executor.cancel()
                if self._worth_defending(ledger):
                    self.measuring_again = True
                    self._follow_source(ledger)
                    defend(self.executor, ledger, self.progress, reason)
            except KeyboardInterrupt:
                reason = INTERRUPTED
            finally:
                ledger.close(reason)
            return load_result(self.store, study.record, reason, ledger.session_id)

    def stop(self, why: str = INTERRUPTED) -> None:
        """End the loop soon and cleanly. Safe to call from a signal handler."""
        self._stopped = why
        self._giving_up = True

    @property
    def stopped(self) -> bool:
        return bool(self._stopped)

    @property
    def asking(self) -> bool:
        """Whether a strategy is choosing, which may take long.

        If so, a signal handler may raise :class:`AskInterrupted`; the search then ends as after :meth:`stop`.
        """
        return self._ledger is not None and self._ledger.asking

    # -- the loop ------------------------------------------------------------------------------

    def _search(self, ledger: Ledger) -> str:
        exhausted = False
        while not self._stopped:
            self._complete_one(ledger)
            why = self._enough(ledger)
            self._advance(ledger, closed=bool(why) or exhausted)
            wanted = self._wanted(ledger, new=not (why or exhausted))
            free = min(self.executor.capacity - self._running(ledger), wanted)
            if free > 0:
                self._follow_source(ledger)
                if not self._submit(ledger, free) and not ledger.full:
                    exhausted = True
            if ledger.in_flight == 0 and (why or exhausted) and not self._takes_over(ledger, why):
                return EXHAUSTED if exhausted or self._all_tried(ledger) else why
            if why and overdue(self.spec.budget, ledger.spent):
                self._giving_up = True
                self.executor.cancel()
            self._collect(ledger)
        return self._stopped

    def _takes_over(self, ledger: Ledger, why: str) -> bool:
        """Whether a search beside this one has left trials to it, which it has time for."""
        return why != MISTAKEN and not out_of_time(self.spec.budget, ledger.spent) and ledger.take_over()

    def _enough(self, ledger: Ledger) -> str:
        """Why no new trial may begin; an empty text if the search goes on."""
        if ledger.failure.mistake:
            return MISTAKEN
        if self._stopping is not None and self._stopping.finishing:
            return f"{self.spec.budget.time:g} s of searching"
        reached = limit_reached(self.spec.budget, ledger.spent)
        return reached or ("other searches have spent the budget" if ledger.full else "")

    def _wanted(self, ledger: Ledger, new: bool) -> int:
        """How many more trials may begin; without ``new``, only lost ones.

        Lost trials are part of the budget already: they are tried again even if no new trial may begin.
        """
        lost = 0 if out_of_time(self.spec.budget, ledger.spent) else ledger.lost
        return max(self._left(ledger), lost) if new else lost

    def _submit(self, ledger: Ledger, n: int) -> bool:
        """Hand the next trials to the executor; returns whether there were any."""
        try:
            trials = ledger.propose(n, limit=self.spec.budget.trials, shared=self.shared and self.shared())
        except AskInterrupted:
            return True  # there may be more, so the space does not count as exhausted
        for trial in trials:
            if self._stopping is None or self._stopping.give(trial):
                self._run(trial)
            else:
                ledger.pause(trial.id, *self._stopping.standing(trial.id))
        return bool(trials)

    def _run(self, trial: TrialRecord) -> None:
        curve = self._stopping.curve(trial) if self._stopping is not None else None
        self.executor.submit(Ticket(trial.id, trial.configuration, seed=trial.number, curve=curve))

    def _running(self, ledger: Ledger) -> int:
        return ledger.in_flight - self._paused

    @property
    def _paused(self) -> int:
        return self._stopping.paused if self._stopping is not None else 0

    def _complete_one(self, ledger: Ledger) -> None:
        """Leave the rest of the time to a paused trial, if otherwise none would be complete."""
        whole = self.spec.budget.time
        if self._stopping is None or self.part or whole is None:
            return
        left = whole - ledger.spent.seconds
        trial = self._stopping.finish(left, whole) if left > 0 else None
        if trial is not None:
            self.progress.note(f"trial {trial.number} is the best so far, and gets the rest of the time")
            self._run(trial)

    def _advance(self, ledger: Ledger, closed: bool) -> None:
        """End or resume the paused trials that are decided upon. ``closed``: no new trial will begin."""
        if self._stopping is None or not self._paused:
            return
        if out_of_time(self.spec.budget, ledger.spent):
            ended = self._stopping.abandon(TIME_UP)
        elif self._stopping.finishing:
            ended = self._stopping.abandon(LEFT_TO_ANOTHER)
        else:
            ended = self._stopping.stopped(closed)
        ended += self._stopping.outdated(ledger.study.segment.id)
        for trial_id, outcome in ended:
            self._record(ledger, trial_id, outcome)
        for trial in self._stopping.promoted(closed):
            self._run(trial)

    def _collect(self, ledger: Ledger) -> None:
        # With several goals, a trial that is certainly slower may still be on the front.
        alone = len(self.spec.goals) == 1
        self.executor.incumbent = ledger.best.estimate if ledger.best and alone else None
        for event in self.executor.poll(POLL_SECONDS):
            if isinstance(event, Started):
                ledger.started(event.trial_id, event.worker)
            elif isinstance(event, Finished):
                self._finish(ledger, event.trial_id, event.outcome)
        if self._stopping is not None:
            self._stopping.write()
        ledger.renew()
        self.progress.tick(replace(ledger.spent, paused=self._paused), self._running(ledger))

    def _finish(self, ledger: Ledger, trial_id: int, outcome: Outcome) -> None:
        """Record the outcome of a run that has ended, or that its trial is paused."""
        if self._stopping is None:
            self._record(ledger, trial_id, outcome)
        elif (settled := self._stopping.settle(trial_id, outcome)) is not None:
            self._record(ledger, trial_id, settled)
        else:
            ledger.pause(trial_id, *self._stopping.standing(trial_id))

    def _record(self, ledger: Ledger, trial_id: int, outcome: Outcome) -> None:
        doubted = bool(ledger.failure.doubt)
        trial = ledger.finish(trial_id, outcome)
        self.executor.tidy(trial.configuration)
        self.progress.finished(trial.number, trial.configuration, outcome, ledger.best)
        is_default = trial.configuration == self.spec.space.feasible_default()
        for text in self.remarks.on(trial.number, outcome, self.spec, is_default=is_default):
            self.progress.note(text)
        if ledger.failure.doubt and not doubted and not ledger.failure.mistake:
            self.progress.note(ledger.failure.doubt)
        if outcome.status is Status.LOST:
            self._lose(ledger, trial, outcome)

    def _lose(self, ledger: Ledger, trial: TrialRecord, outcome: Outcome) -> None:
        """Put a lost trial back, unless it was tried too often or the search ends."""
        if not self._giving_up and trial.attempt < MAX_ATTEMPTS:
            self.progress.note(f"trial {trial.number} was lost ({outcome.message}): it will be tried again")
            if ledger.retry(trial.id, counts=bool(outcome.worker)):  # without a worker it had not begun
                return
        if self._stopping is not None:
            self._stopping.lost(trial)

    def _left(self, ledger: Ledger) -> int:
        limit = self.spec.budget.trials
        return self.executor.capacity if limit is None else max(limit - ledger.spent.trials, 1)

    def _all_tried(self, ledger: Ledger) -> bool:
        return self._size is not None and ledger.spent.trials >= self._size

    @property
    def _size(self) -> int | None:
        """How many configurations there are; ``None`` if they are not counted."""
        return None if self.spec.space.continuous else self.spec.space.feasible.size

    def _follow_source(self, ledger: Ledger) -> None:
        """If the objective's files were edited, begin a segment: all that follows uses the new source."""
        if self.executor.edited:
            self.executor.reload()  # first: an edit after this is noticed the next time
            ledger.study = next_segment(self.spec, self.store, ledger.study)
            for text in ledger.study.notes:
                self.progress.note(text)

    # -- before and after ----------------------------------------------------------------------

    def _announce(self, ledger: Ledger) -> None:
        size, budget = self._size, self.spec.budget
        if size is not None and (budget.trials is not None or budget == Budget()):
            budget = replace(budget, trials=min(budget.trials or size, size))  # without a limit it tries all
        self.progress.opened(
            Opening(
                study=self.spec.name,
                metric=ledger.metric,
                strategy=ledger.strategy.name,
                budget=budget,
                feasible=size,
                earlier=ledger.earlier,
                replayed=ledger.study.record.replayed,
            )
        )
        for text in filter(None, (*ledger.notes, self.executor.remark)):
            self.progress.note(text)

    def _worth_defending(self, ledger: Ledger) -> bool:
        """Whether to measure finalists: a trial succeeded, and no verdict on all results is settled."""
        if ledger.best is None or self.spec.measure.finalists == 0:
            return False
        verdicts = self.store.verdicts(ledger.study.record.id)
        if not verdicts or verdicts[-1].document.get("told") != len(ledger.strategy.told):
            return True
        return not is_settled(self.store, verdicts[-1], self.spec.space)
