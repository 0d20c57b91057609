"""One search over several workloads: a study for each, one budget, and a cross measurement at the end.

::

    open a study a workload ─▶ slices of tries, by `budget` ─▶ a finale each ─▶ all winners on all

Each slice is an ordinary session of its workload's study: it resumes, learns from the studies of the other
workloads (:mod:`autotune.session.opening.sources`) and writes down all it does. What comes next depends on
the store, so an interrupted family goes on where it stood.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from autotune.errors import AutotuneError, StoreError
from autotune.provenance.environment import Environment
from autotune.session.answers import is_settled, load_result
from autotune.session.budget import Spent, limit_reached
from autotune.session.execution.executor import Executor
from autotune.session.families.budget import Slice, Standing, next_slice, order_of
from autotune.session.families.cross import Candidate, candidates, is_current, measure_across, own_verdict
from autotune.session.families.matrix import load_matrix
from autotune.session.families.member import Member
from autotune.session.families.progress import SharedProgress
from autotune.session.families.result import ManyResult
from autotune.session.finale.finale import defend
from autotune.session.ledger import Ledger
from autotune.session.opening.opening import check_feasible, is_begun, open_study
from autotune.session.progress import Progress
from autotune.session.remarks.remarks import Remarks
from autotune.session.result import EXHAUSTED, INTERRUPTED
from autotune.session.same_failure import MISTAKEN
from autotune.session.session import Session
from autotune.space.spec import Budget, Family, SearchSettings, StudySpec
from autotune.status import Status
from autotune.store.statements.room import Room
from autotune.store.store import Store


@dataclass
class ManySession:
    """One run over a family. Call :meth:`run` once; ``stop()`` may be called from a signal handler.

    ``make_executor`` is called for each slice. A workload for which it fails, or whose workers do not
    start, is given up, and the user is told; if that happens to all that are searched, the error is raised.
    """

    family: Family
    store: Store
    environment: Environment
    make_executor: Callable[[StudySpec], Executor]
    fresh: bool = False
    progress: Progress = field(default_factory=Progress)
    _stops: int = 0
    measuring_again: bool = field(default=False, init=False)
    """As in :class:`Session`."""
    _session: Session | None = None
    _starting: float = 0.0
    """Seconds that workers took to start for the last slice."""
    _members: list[Member] = field(init=False)
    _remarks: Remarks = field(default_factory=Remarks)
    _said: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._members = Member.all_of(self.family)

    def run(self) -> ManyResult:
        """Search until the budget is spent, then a finale for each workload, then all winners on all."""
        with self.store.waiting(self.progress.note):
            return self._run()

    def _run(self) -> ManyResult:
        self._require_some()
        self._open()
        try:
            reason = self._search()
            self.measuring_again = True
            for member in self._searched:
                self._defend(member)
            wanted = candidates(self.store, [member.study for member in self._searched])
            for member in self._members:
                self._measure_across(member, wanted)
        except KeyboardInterrupt:
            reason = INTERRUPTED
        first = self._searched[0].failure
        if first is not None and all(member.failure for member in self._searched):
            raise first
        return self._result(reason)

    def stop(self) -> None:
        """End the search soon, then measure the finalists; called a second time, end at once."""
        self._stops += 1
        if self._session is not None:
            self._session.stop()

    @property
    def stopped(self) -> bool:
        return self._stops > 0

    @property
    def asking(self) -> bool:
        """As in :class:`Session`."""
        return self._session is not None and self._session.asking

    # -- searching -----------------------------------------------------------------------------

    @property
    def _searched(self) -> list[Member]:
        """The members that are searched, that is, not held out."""
        return [member for member in self._members if not member.held_out]

    def _require_some(self) -> None:
        """Raise if no workload can be searched, before studies are opened that would never have a trial."""
        feasible = [member for member in self._searched if member.spec.space.feasible]
        if not feasible:
            check_feasible(self._searched[0].spec)
        begun = (is_begun(member.spec, self.store, self.environment) for member in feasible)
        if not self.fresh and all(begun):
            return
        for member in feasible:
            with self._may_fail(member):
                self.make_executor(member.spec).close()
                return
        failure = feasible[0].failure
        assert failure is not None, "none of them could be used"
        raise failure

    def _open(self) -> None:
        """Open all studies before the first try, so that the store knows the whole family from then on."""
        for member in self._members:
            notes = member.open(self.store, self.environment, fresh=self.fresh)
            # Notes of the others would say that their workload differs, as it should.
            for text in notes if member.place == 0 else ():
                self._note(text)

    def _search(self) -> str:
        """Search until the budget is spent, and say why the search ended."""
        budget, searched = self.family.specs[0].budget, self._searched
        order = [searched[i] for i in order_of([member.spec.workload for member in searched])]
        for member in order:
            self._finish_begun(member)
        while not self.stopped:
            self._follow_edits()
            standings = {member.place: member.standing for member in searched}
            alive = [member.place for member in order if member.failure is None]
            given = self._next_slice(standings, alive)
            if given is None:
                return _why(budget, standings, [member.closed for member in searched])
            self._give(given, standings)
        return INTERRUPTED

    def _follow_edits(self) -> None:
        """Go over to the studies of the objective's source as it is now, if it was edited since.

        A slice would open them in any case, but its tries would not be counted, and nothing would be won.
        """
        for member in self._members:
            if member.failure is None and member.is_edited(self.store, self.environment):
                with self._may_fail(member):
                    for text in member.open(self.store, self.environment, goes_on=True):
                        self._note(text)

    def _next_slice(self, standings: Mapping[int, Standing], alive: Sequence[int]) -> Slice | None:
        budget = self.family.specs[0].budget
        return next_slice(standings, alive, budget.trials, budget.time, self._starting) if alive else None

    def _room(self) -> Room | None:
        """What is left of the budget of trials over all workloads; ``None`` if there is no such budget."""
        limit = self.family.specs[0].budget.trials
        if limit is None:
            return None
        tries, counted = zip(*(member.count() for member in self._searched), strict=True)
        return Room(limit - sum(tries), counted)

    def _finish_begun(self, member: Member) -> None:
        """Try the trials again that were lost with an earlier session, even if the budget is spent."""
        trials = member.tried(self.store)
        if any(not trial.status.finished for trial in trials):
            self._search_one(member, Budget(trials=len(trials)), Spent())

    def _give(self, given: Slice, standings: Mapping[int, Standing]) -> None:
        member, own = self._members[given.workload], standings[given.workload]
        others = [standing for place, standing in standings.items() if place != given.workload]
        budget = Budget(
            trials=own.tries + given.tries,
            time=None if given.seconds is None else own.seconds + given.seconds,
            patience=member.spec.budget.patience,
            target=member.spec.budget.target,
        )
        spent = Spent(sum(o.tries for o in others), sum(o.seconds for o in others))
        reason = self._search_one(member, budget, spent)
        if member.standing.tries == own.tries or reason in (MISTAKEN, EXHAUSTED):
            member.closed = reason

    def _search_one(self, member: Member, budget: Budget, others: Spent) -> str:
        """Search one workload until ``budget``, which is for its study, is spent; the finale comes later.

        Returns why it ended; an empty text if the workload had to be given up.
        """
        reason = ""
        spec = member.spec
        spec = replace(spec, budget=budget, measure=replace(spec.measure, finalists=0))
        with self._may_fail(member):
            progress = SharedProgress(self.progress, member.label, member.spec.budget, others, self._said)
            executor = self.make_executor(spec)
            self._starting = executor.starting
            self._session = Session(
                spec,
                self.store,
                executor,
                self.environment,
                part=True,
                shared=self._room,
                progress=progress,
                remarks=self._remarks,
            )
            if self.stopped:  # between two sessions, or while the executor was made
                self._session.stop()
            reason = self._session.run().reason
        self._session = None
        return reason

    # -- measuring again -----------------------------------------------------------------------

    def _defend(self, member: Member) -> None:
        """The finale of one workload, unless it has no new results since the last one."""
        trials = member.tried(self.store)
        told = sum(trial.status.finished for trial in trials)
        verdict = own_verdict(self.store, member.study)
        works = any(trial.status is Status.OK for trial in trials)
        stands = (
            verdict is not None
            and verdict.document.get("told") == told
            and is_settled(self.store, verdict, member.spec.space)
        )
        if not works or not member.spec.measure.finalists or stands:
            return

        def finale(executor: Executor, ledger: Ledger, progress: Progress) -> None:
            if ledger.best is not None:
                defend(executor, ledger, progress, "the search of all workloads ended", of_several=True)

        self._measure(member, finale, "the finalists")

    def _measure_across(self, member: Member, wanted: Sequence[Candidate]) -> None:
        """Measure the winners of all workloads on one of them, unless that was done already."""
        if wanted and not is_current(self.store, member.study, member.spec.space, wanted):
            self._measure(member, partial(measure_across, wanted=wanted), "the winners of all workloads")

    def _measure(
        self, member: Member, finale: Callable[[Executor, Ledger, Progress], None], who: str
    ) -> None:
        """Run ``finale`` for one workload; ``who`` says who is measured.

        Nothing is proposed, so the strategy does not matter and needs no earlier studies.
        """
        if member.failure is None and member.is_edited(self.store, self.environment):
            self._note(
                f"{member.label}: {who} are not measured again, since the objective's source has changed;"
                " the same command searches with the new one"
            )
            return
        spec = member.spec
        time = spec.budget.time and spec.budget.time / len(self._searched)
        early = spec.search.early_stopping
        search = SearchSettings("random", spec.search.seed, transfer=False, early_stopping=early)
        spec = replace(spec, search=search, budget=Budget(time=time))
        progress = SharedProgress(self.progress, member.label, spec.budget, Spent(), self._said, who)
        with self._may_fail(member), closing(self.make_executor(spec)) as executor, executor.aside():
            ledger = Ledger(
                spec,
                self.store,
                open_study(spec, self.store, self.environment, goes_on=True),
                self.environment,
                starting=executor.starting,
            )
            reason = INTERRUPTED
            try:
                finale(executor, ledger, progress)
                reason = "measured again"
            finally:
                ledger.close(reason)

    # -- what goes wrong, and what is said -----------------------------------------------------

    @contextmanager
    def _may_fail(self, member: Member) -> Iterator[None]:
        """If the objective of a workload cannot be used, give it up instead of ending the whole search."""
        if self._stops > 1:
            raise KeyboardInterrupt
        try:
            yield
        except StoreError:
            raise
        except AutotuneError as error:
            known = str(error) in [str(other.failure) for other in self._members if other is not member]
            member.failure = error
            why = "for the same reason" if known else str(error)
            self._note(f"{member.label} is given up: {why}")
        if self._stops > 1:  # the session has caught the interrupt and returned
            raise KeyboardInterrupt

    def _note(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self.progress.note(text)

    def _result(self, reason: str) -> ManyResult:
        studies = [self.store.study(member.study.id) for member in self._members]
        # The store only knows which were not searched, which may be due to an interrupt.
        matrix = replace(load_matrix(self.store, studies), held_out=self.family.held_out)
        return ManyResult(
            name=self.family.name,
            results=tuple(load_result(self.store, study, reason) for study in studies),
            matrix=matrix,
            failures={member.label: str(member.failure) for member in self._members if member.failure},
            reason=reason,
        )


def _why(budget: Budget, standings: Mapping[int, Standing], closed: Sequence[str]) -> str:
    """Why no workload gets another slice; ``closed``: why each by itself does not, or an empty text."""
    if set(closed) == {MISTAKEN}:
        return MISTAKEN
    tries, seconds = sum(s.tries for s in standings.values()), sum(s.seconds for s in standings.values())
    spent = limit_reached(budget, Spent(tries, seconds, finished=tries))
    return spent or "; ".join(dict.fromkeys(filter(None, closed))) or "nothing more to try"
