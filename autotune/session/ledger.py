"""The ledger of a running search: it keeps the store and the strategy in step.

Both loops write through it, the one that drives an executor (:mod:`autotune.session.session`) and
the one that a caller drives by ask and tell (:mod:`autotune.session.asktell`). Each trial is on disk
before it runs and after, and the strategy learns only what is on disk, in the order in which it was
written. With each proposal, the ledger writes down what the strategy knew when it was asked, so that
:mod:`autotune.session.reproduction.derivation` can ask it again.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from autotune.measure.clocks import monotonic
from autotune.measure.outcome import Outcome
from autotune.provenance.environment import Environment
from autotune.search.contract import Problem, Source
from autotune.search.registry import make_strategy
from autotune.session.budget import Spent
from autotune.session.engine import engine
from autotune.session.incumbent import Incumbent
from autotune.session.liveness import identity, lives
from autotune.session.observing import observe_record
from autotune.session.opening.opening import OpenedStudy, take_source
from autotune.session.opening.sources import lessons
from autotune.session.progress import Best
from autotune.session.remarks.changed_environment import say_changed
from autotune.session.remarks.raised_limits import failed_lower, say_raised
from autotune.session.same_code import Known, known_codes
from autotune.session.same_failure import SameFailure
from autotune.session.searches import close_dead, expire, seconds_searched
from autotune.space.configuration import Configuration
from autotune.space.first_tries import first_tries, passed_over
from autotune.space.spec import StudySpec
from autotune.status import Status
from autotune.store.records import NO_ASK, NewAsk, NewTrial, Place, ResultRecord, TrialRecord
from autotune.store.statements.room import Counted, Room
from autotune.store.store import LEASE_SECONDS, Store

MAX_ATTEMPTS = 3
"""How often a configuration is tried that loses its worker, or kills the whole search."""


class Ledger:
    """Keeps one session's books. Open it with the study, close it with the reason for the end."""

    def __init__(
        self,
        spec: StudySpec,
        store: Store,
        study: OpenedStudy,
        environment: Environment,
        *,
        part: bool = False,
        starting: float = 0.0,
    ) -> None:
        """``part``: the session is a slice of a larger search; its budget is not shown to the strategy.

        ``starting``: the seconds before it in which workers started, for who asks where the time went.
        """
        self.spec = spec
        self.store = store
        self.study = study
        self.metric = spec.goals[0]
        self.failure = SameFailure(spec.space.feasible_default())
        self.earlier = 0
        self.full = False
        """Whether other sessions have used up the budget."""
        self.asking = False
        """Whether the strategy is choosing."""
        self._broken_off = False
        """Whether an ask was interrupted; the strategy's predictions may then be incomplete."""
        self._environment = environment
        self._incumbent = Incumbent(spec)
        self._finished = 0
        self._counted: set[int] = set()
        """Numbers of the trials that count for the budget, of this session and of others."""
        self._trials_known = 0
        self._results_known = 0
        """How many proposals, and how many results, the study had when the store was read last."""
        self._renewed = 0.0
        self._running: dict[int, TrialRecord] = {}
        self._to_retry: list[TrialRecord] = []
        """Those to be handed out next: lost ones, and those that the user asked for."""
        learned = lessons(spec, store, study.record)
        raised = say_raised(store, study.record.id, spec.measure)
        untried = passed_over(spec.space, spec.search.first)
        self.notes = (*study.notes, *learned.notes, *([raised] if raised else []), *untried)
        """Texts to show to the user when the search begins."""
        problem = _problem(spec, learned.sources, part)
        self.strategy = make_strategy(spec.search.strategy, problem, spec.search.seed)
        close_dead(store, study.record.id)
        self._searched_before = seconds_searched(store, study.record.id)
        self._began = monotonic()  # not time(): the wall clock may be set meanwhile
        self.session_id = self._open_session(part, {"starting": starting, **learned.settings})
        try:
            self._restore()
        except BaseException:
            self.close("crashed")  # or else it would count as running for as long as this process lives
            raise

    def _open_session(self, part: bool, known: Mapping[str, object]) -> int:
        """Store that a session begins, with its settings, on which its proposals depend; returns its id."""
        settings = {
            "search": asdict(self.spec.search),
            "measure": asdict(self.spec.measure),
            "budget": asdict(self.spec.budget),
            "part": part,
            "space": self.spec.space.hash,
            "engine": engine(),
            "process": identity(),
            **known,
        }
        return self.store.open_session(
            self.study.record.id,
            settings,
            self.environment_hash,
            os.getpid(),
            socket.gethostname(),
            self._environment.to_document(),
        )

    @property
    def environment_hash(self) -> str:
        """What describes the machine and the software of this session in the store."""
        return self._environment.hash

    # -- proposing -----------------------------------------------------------------------------

    def propose(
        self,
        n: int = 1,
        *,
        worker: str | None = None,
        limit: int | None = None,
        shared: Room | None = None,
    ) -> list[TrialRecord]:
        """The next ``n`` trials, or fewer at the end: lost ones and those that the user asked for come first,
        then what the strategy proposes.

        They are ``waiting``, or ``running`` if a ``worker`` is named, which begins with them at once.
        ``limit`` is the most trials that the study may have, those of other sessions included; ``shared``
        is the budget that it shares with other studies. If these leave no room for a proposal, the ledger
        is :attr:`full` from then on.
        """
        chosen = [self._to_retry.pop(0) for _ in range(min(n, len(self._to_retry)))]
        try:
            if worker is not None:
                for trial in chosen:
                    self.started(trial.id, worker)
            while len(chosen) < n and not self.full:
                own = self._ask_strategy(n - len(chosen), worker, limit, shared)
                if own is None:
                    break
                chosen += own
        except BaseException:
            self._to_retry = chosen + self._to_retry  # they are stored as this session's: hand them out next
            raise
        self._running.update((trial.id, trial) for trial in chosen)
        return chosen

    def _ask_strategy(
        self, wanted: int, worker: str | None, limit: int | None, shared: Room | None
    ) -> list[TrialRecord] | None:
        """Trials that the strategy proposes and no other session has; ``None`` if it proposes nothing."""
        self.catch_up()  # what the strategy knows and what was counted must be up to date
        rooms = [] if shared is None else [shared]
        if limit is not None:
            counted = Counted(self.study.record.id, self._trials_known, self.spec.space.__contains__)
            rooms.append(Room(limit - len(self._counted), (counted,)))
        ask = NewAsk(self.strategy.asks, wanted, self._trials_known, self._results_known)
        knew = len(self.strategy.told)
        self.asking = self._broken_off = True
        try:
            proposals = self.strategy.ask(wanted)
            self._broken_off = False
        finally:
            self.asking = False
        if not proposals:
            return None
        new = [
            NewTrial(
                configuration=p.configuration,
                purpose="search",
                strategy=str(p.reason.get("strategy", self.strategy.name)),
                reason=p.reason,
                ask=ask.number,
                knew=knew,
            )
            for p in proposals
        ]
        place = Place(self.study.record.id, self.session_id, self.study.segment.id)
        written = self.store.propose(place, new, ask=ask, rooms=rooms, worker=worker)
        if len(written) < len(new):
            self.full = True
            self.catch_up()
        # None stands for a configuration that another session proposed first; catch_up() will find it.
        own = [trial for trial in written if trial is not None]
        self._counted.update(trial.number for trial in own)
        if own and own[0].number == self._trials_known:  # otherwise catch_up() must read another session's
            self._trials_known = own[-1].number + 1
        return own

    def enqueue(self, configuration: Configuration) -> bool:
        """Write down a trial that the user asks for, to be handed out before anything new is proposed.

        Returns whether it is new: nothing is written if the study has a trial of that configuration.
        """
        own = self.strategy
        reason = {"strategy": own.name, "kind": "enqueued"}
        new = NewTrial(configuration, "search", own.name, reason, ask=NO_ASK, knew=len(own.told))
        place = Place(self.study.record.id, self.session_id, self.study.segment.id)
        [trial] = self.store.propose(place, [new])
        if trial is not None:
            self._to_retry.append(trial)
        return trial is not None

    def expected(self) -> Mapping[str, float]:
        """The strategy's expectations of tried configurations, by hash; empty if it was interrupted."""
        return {} if self._broken_off else self.strategy.expected()

    def started(self, trial_id: int, worker: str) -> None:
        self.store.start(trial_id, worker)

    def renew(self) -> None:
        """Renew the leases of trials that are in flight or to be handed out; cheap, to be called often."""
        now = monotonic()
        held = [*self._running, *(trial.id for trial in self._to_retry)]
        if held and now - self._renewed > LEASE_SECONDS / 4:
            self._renewed = now
            self.store.renew(held)

    # -- finishing -----------------------------------------------------------------------------

    def runs(self, trial_id: int) -> bool:
        """Whether this session has the trial in flight."""
        return trial_id in self._running

    def finish(self, trial_id: int, outcome: Outcome) -> TrialRecord:
        """Write the outcome down, then tell the strategy; a lost trial can be put back by :meth:`retry`."""
        trial = self._running[trial_id]
        self.store.finish(trial_id, outcome, self.environment_hash)
        if outcome.status.finished and trial.segment_id == self.study.segment.id:
            self.take_source()
        self.catch_up()
        del self._running[trial_id]  # only now: if anything failed before, the trial can be told again
        return trial

    def take_source(self) -> None:
        """Note that something was measured of the source as it is now."""
        self.study = take_source(self.store, self.study)

    def pause(self, trial_id: int, step: int, outcome: Outcome) -> None:
        """Write down what is known of a trial that stays in flight after ``step``, and tell the strategy."""
        self.store.pause(trial_id, step, outcome)
        self.catch_up()

    def retry(self, trial_id: int, counts: bool = True) -> bool:
        """Take a lost trial over, to be handed out before anything new; returns whether it could be.

        ``counts``: whether the lost attempt counts, since the trial may have caused the loss itself.
        """
        segment = self.study.segment.id
        trial = self.store.retry(trial_id, session_id=self.session_id, segment_id=segment, counts=counts)
        if trial is not None:  # None: another session was quicker, or its late result came
            self._to_retry.append(trial)
        return trial is not None

    def take_over(self) -> bool:
        """Take over what searches that have died or ended since this one began have lost.

        Not what this one has in flight: another search may have taken that for lost, and ended. Returns
        whether there is anything to be handed out again. To be called when nothing else is left to try: a
        trial that kills the whole search, as that one may have done, then comes last.
        """
        study_id = self.study.record.id
        close_dead(self.store, study_id)
        expire(self.store, study_id)
        open_here = {s.id for s in self.store.sessions(study_id) if s.finished_at is None and lives(s)}
        lost = self.store.trials(study_id, purpose="search", status=Status.LOST)
        left = [t for t in lost if t.session_id not in open_here and t.id not in self._running]
        mine = [t for t in left if t.configuration in self.spec.space]
        self._retry_lost(mine)
        return bool(self._to_retry)

    def catch_up(self) -> None:
        """Tell the strategy what all sessions have proposed and finished since the last call.

        It is told in the order of the store, so that two numbers say what a strategy knows.
        """
        study_id, space = self.study.record.id, self.spec.space
        self._trials_known, proposed = self.store.proposed_from(study_id, self._trials_known)
        inside_of = [(number, configuration) for number, configuration in proposed if configuration in space]
        self.strategy.reserve(configuration for _, configuration in inside_of)
        self._counted.update(number for number, _ in inside_of)  # other sessions' trials count while they run
        self._results_known, results = self.store.results_from(study_id, self._results_known)
        inside = [result for result in results if result.configuration in space]
        if inside:
            self.strategy.tell([observe_record(result) for result in inside])
        self._counted.update(result.number for result in inside)
        self._note(inside)

    @property
    def best(self) -> Best | None:
        """The best trial so far by :attr:`metric`, of any session."""
        return self._incumbent.best

    @property
    def spent(self) -> Spent:
        seconds = self._searched_before + monotonic() - self._began
        return Spent(
            len(self._counted),
            seconds,
            self._incumbent.since,
            self._finished,
            self._incumbent.reached,
        )

    @property
    def in_flight(self) -> int:
        return len(self._running)

    @property
    def lost(self) -> int:
        """How many lost trials wait for their next attempt."""
        return len(self._to_retry)

    def close(self, reason: str) -> None:
        """End the session; what is still in flight becomes lost and is tried again by the next one."""
        self.store.close_session(self.session_id, reason)
        expire(self.store, self.study.record.id)

    def known_codes(self) -> dict[str, Known]:
        """The outcomes of code that earlier sessions measured with the present source and limits."""
        study = self.study.record.id
        # Code that failed at a limit that was raised since may succeed now.
        _, failed = failed_lower(self.store, study, self.spec.measure)
        passed_over = {trial.id for trial in failed}
        trials = [t for t in self.store.trials(study, purpose="search") if t.id not in passed_over]
        return known_codes(trials, self.study.segment.id)

    # -- standing where the last session stood -------------------------------------------------

    def _restore(self) -> None:
        study_id = self.study.record.id
        expire(self.store, study_id)
        trials = self.store.trials(study_id, purpose="search")
        inside = [t for t in trials if t.configuration in self.spec.space]
        self.notes += self._retry_lost([t for t in inside if t.status is Status.LOST])
        if not self.study.record.replayed and (changed := say_changed(self.store, inside, self._environment)):
            self.notes += (changed,)
        self._results_known, results = self.store.results_from(study_id, 0)
        told = [result for result in results if result.configuration in self.spec.space]
        self.strategy.restore(
            asks=1 + max((t.ask for t in trials), default=-1),
            proposed=[t.configuration for t in inside],
            told=[observe_record(result) for result in told],
        )
        self.earlier = len(trials)
        self._counted = {t.number for t in inside}
        self._trials_known = 1 + max((t.number for t in trials), default=-1)
        self._note(told)

    def _retry_lost(self, lost: Sequence[TrialRecord]) -> tuple[str, ...]:
        """Take over the trials that other sessions lost, except those that seem to kill the search.

        Returns what is to be said of those.

        A trial that kills the whole search, by using up the machine's memory, say, would otherwise end every
        session of the study. From the second death on the order is reversed, so that trials that only ran
        beside it are done before its turn comes.
        """
        died = {t.id for t in lost if t.started_at is not None and t.finished_at is None}
        fatal = [t for t in lost if t.id in died and t.attempt >= MAX_ATTEMPTS]
        again = [t for t in lost if t not in fatal]
        if any(t.id in died and t.attempt > 1 for t in again):
            again.reverse()
        for trial in again:
            self.retry(trial.id, counts=trial.id in died)
        if not fatal:
            return ()
        which = ", ".join(str(trial.number) for trial in fatal)
        text = f"the search was killed {MAX_ATTEMPTS} times while it ran, so it is not tried again"
        return (f"trial {which}: {text}",)

    def _note(self, results: Iterable[ResultRecord]) -> None:
        for result in results:
            if not result.paused:
                self._finished += 1
                self.failure.hear(result)
                self._incumbent.hear(result)


def _problem(spec: StudySpec, sources: tuple[Source, ...], part: bool) -> Problem:
    """What the strategy is told before it hears of any trial."""
    early = spec.search.early_stopping
    return Problem(
        spec.space,
        spec.metrics,
        None if part else spec.budget.trials,
        spec.search.options,
        sources=sources,
        seconds=None if part else spec.budget.time,
        memory=spec.measure.memory,
        first=first_tries(spec.space, spec.search.first),
        judged="" if early is None else early.metric,
    )
