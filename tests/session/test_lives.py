"""The life of a study: searched, interrupted, killed, edited and moved, in any order hypothesis can think of.

After each step the promises hold: nothing measured is lost, nothing is measured twice, every proposal follows
from the record, and the answer is the best of what still counts.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from autotune.errors import InputError, NothingFeasibleError
from autotune.interop.archives.importing import import_archive
from autotune.interop.archives.writing import write_archive
from autotune.session.answers import load_answer, load_best, load_result
from autotune.session.asktell import AskedTrial, AskTell
from autotune.session.execution.choosing import make_executor
from autotune.session.progress import Progress
from autotune.session.reproduction.derivation import derive
from autotune.session.result import Result
from autotune.session.session import Session
from autotune.space.from_document import space_from_document
from autotune.space.space import Space
from autotune.space.spec import StudySpec
from autotune.status import Status
from autotune.store.records import StudyRecord, TrialRecord
from autotune.store.store import Store
from tests.session.lives import At, File, copy, environment, interrupt, let_die

RANGES = st.tuples(st.integers(0, 2), st.integers(3, 7), st.integers(0, 7))
VALUES = st.sampled_from([(1, 2, 4), (4,), (4, 8), (1, 2, 4, 8)])
CONSTRAINTS = st.sampled_from(["x >= 0", "x != 3", "x < 3", "x > 99"])
POLICIES = st.sampled_from(["", "", "asha", "hyperband"])
STRATEGIES = st.sampled_from(["random", "grid", "evolution"])
ENDS = st.sampled_from([s for s in Status if s.finished or s is Status.LOST])
TIMES = st.sampled_from([-1.0, 0.0, 2.0, [1.0, 2.0], float("inf"), float("nan")])


@dataclass
class Opened:
    """A session of ask and tell that is open, and what it was given and has not told."""

    session: AskTell
    spec: StudySpec
    asked: list[AskedTrial] = field(default_factory=list)


class Lives(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.stores = 0
        self.store = self.folder / "0.db"
        self.file = File()
        self.opened: list[Opened] = []
        self.spaces: dict[str, Space] = {}
        """All that were searched, by hash."""
        self.kept: dict[int, TrialRecord] = {}
        """Finished trials by id, as they were seen first."""
        self.sound()

    def teardown(self) -> None:
        try:
            for one in self.opened:
                one.session.close()
            self.follows_from_the_record()
        finally:
            shutil.rmtree(self.folder)

    # -- edits ---------------------------------------------------------------------------------

    @rule(bounds=RANGES, values=VALUES, second=st.sampled_from("yyyw"), constraint=CONSTRAINTS)
    def edit_space(
        self, bounds: tuple[int, int, int], values: tuple[int, ...], second: str, constraint: str
    ) -> None:
        low, high, default = bounds
        changed = replace(self.file, low=low, high=high, default=default, values=values)
        self.file = replace(changed, second=second, constraint=constraint)

    @rule(edit=st.integers(0, 1), bound=st.sampled_from([20.0, 10.0]), policy=POLICIES)
    def edit_study(self, edit: int, bound: float, policy: str) -> None:
        self.file = replace(self.file, edit=edit, bound=bound, policy=policy)

    def spec(self, strategy: str, seed: int) -> StudySpec:
        spec = self.file.spec(self.folder)
        self.spaces[spec.space.hash] = spec.space
        return replace(spec, search=replace(spec.search, strategy=strategy, seed=seed))

    # -- searches ------------------------------------------------------------------------------

    @rule(strategy=STRATEGIES, seed=st.integers(0, 1), trials=st.integers(1, 20), fresh=st.booleans())
    def search(self, strategy: str, seed: int, trials: int, fresh: bool) -> None:
        spec = self.bounded(self.spec(strategy, seed), trials)
        found = self.searched(spec, fresh=fresh)
        if found is not None and not self.opened:
            inside = [trial for trial in found.trials if trial.configuration in spec.space]
            assert found.reason and all(trial.status.finished for trial in inside)

    @rule(strategy=STRATEGIES, trials=st.integers(1, 20), when=st.integers(0, 40))
    def interrupted(self, strategy: str, trials: int, when: int) -> None:
        self.searched(self.bounded(self.spec(strategy, 0), trials), At(when, interrupt))

    @rule(strategy=STRATEGIES, trials=st.integers(1, 20), when=st.integers(0, 40))
    def killed(self, strategy: str, trials: int, when: int) -> None:
        """What it has written after that moment is taken back, and its process is gone."""
        with Store.open(self.store) as store:
            last = max((s.id for study in store.studies() for s in store.sessions(study.id)), default=0)
        then = self.folder / "then.db"
        self.searched(self.bounded(self.spec(strategy, 0), trials), At(when, partial(copy, self.store, then)))
        if then.exists():
            copy(then, self.store)
            then.unlink()
            let_die(self.store, after=last)

    @rule(strategy=STRATEGIES, trials=st.integers(1, 20), when=st.integers(0, 40))
    def at_once(self, strategy: str, trials: int, when: int) -> None:
        """Two searches of the same study: one begins and ends while the other runs."""
        spec = self.bounded(self.spec(strategy, 0), trials)
        self.searched(spec, At(when, partial(self.searched, spec)))

    def bounded(self, spec: StudySpec, trials: int) -> StudySpec:
        return replace(spec, budget=replace(spec.budget, trials=trials))

    def searched(
        self, spec: StudySpec, progress: Progress | None = None, fresh: bool = False
    ) -> Result | None:
        """The result; ``None`` if nothing is feasible. No more than the budget is tried."""
        with Store.open(self.store) as store:
            before = {t.id for study in store.studies() for t in store.trials(study.id)}
            executor = make_executor(spec, self.file.objective)
            session = Session(spec, store, executor, environment(), fresh, progress=progress or Progress())
            try:
                result = session.run()
            except NothingFeasibleError:
                assert not spec.space.feasible
                return None
            inside = [t for t in store.trials(result.study.id, "search") if t.configuration in spec.space]
        new = [trial for trial in inside if trial.id not in before]
        assert not new or len(inside) <= (spec.budget.trials or 0)
        return result

    # -- ask and tell --------------------------------------------------------------------------

    @precondition(lambda self: len(self.opened) < 3)
    @rule(strategy=STRATEGIES, seed=st.integers(0, 1))
    def begin(self, strategy: str, seed: int) -> None:
        spec = self.spec(strategy, seed)
        try:
            session = AskTell(spec, Store.open(self.store), environment())
        except InputError:
            assert self.file.policy == "hyperband" or not spec.space.feasible
        else:
            self.opened.append(Opened(session, spec))

    @precondition(lambda self: self.opened)
    @rule(which=st.integers(0, 2), n=st.integers(0, 9))
    def ask(self, which: int, n: int) -> None:
        one = self.opened[which % len(self.opened)]
        trials = one.session.ask(n)
        assert len(trials) <= n and all(trial.configuration in one.spec.space for trial in trials)
        assert not {trial.id for trial in trials} & {trial.id for trial in one.asked}
        one.asked += trials

    @precondition(lambda self: any(one.asked for one in self.opened))
    @rule(which=st.integers(0, 2), place=st.integers(0, 4), time=TIMES, end=st.none() | ENDS)
    def tell(self, which: int, place: int, time: Any, end: Status | None) -> None:
        asking = [one for one in self.opened if one.asked]
        one = asking[which % len(asking)]
        trial = one.asked.pop(place % len(one.asked))
        with Store.open(self.store) as store:
            before = store.trial(trial.id)
            outcome = one.session.tell(trial, {"time": time, "error": 1.0}, status=end or Status.OK)
            after = store.trial(trial.id)
        if before.status.finished:  # another session, which took it for lost, was first
            assert after == before
        elif outcome.status.finished:
            assert (after.status, repr(after.metrics)) == (outcome.status, repr(outcome.metrics))
        with pytest.raises(InputError):
            one.session.tell(trial, time=1.0)

    @precondition(lambda self: self.opened)
    @rule(which=st.integers(0, 2))
    def fall_silent(self, which: int) -> None:
        """As though a minute had passed in which nothing was asked or told."""
        with Store.open(self.store) as store:
            store.renew([t.id for t in self.opened[which % len(self.opened)].asked], lease_seconds=-1.0)

    @precondition(lambda self: self.opened)
    @rule(which=st.integers(0, 2))
    def close(self, which: int) -> None:
        self.opened.pop(which % len(self.opened)).session.close()

    # -- the whole store -----------------------------------------------------------------------

    @precondition(lambda self: not self.opened)
    @rule(which=st.integers(0, 2))
    def move(self, which: int) -> None:
        """Go on in another store, with one of the studies."""
        archive, before = self.folder / "study.zip", self.store
        with Store.open(before) as store:
            studies = store.studies()
            if not studies:
                return
            study = studies[which % len(studies)]
            digest = write_archive(store, study, archive).digest
            said = answer(store, study)
        self.stores, self.kept = self.stores + 1, {}
        self.store = self.folder / f"{self.stores}.db"
        assert import_archive(archive, str(self.store)).new
        assert not import_archive(archive, str(before)).new
        with Store.open(self.store) as store:
            [moved] = store.studies()
            assert write_archive(store, moved, archive).digest == digest
            assert answer(store, moved) == said

    @rule()
    def follows_from_the_record(self) -> None:
        with Store.open(self.store) as store:
            for study in store.studies():
                if store.count_trials(study.id):
                    found = derive(store, study)
                    assert found.follows and not found.unrecorded, found.departure

    # -- promises ------------------------------------------------------------------------------

    @invariant()
    def sound(self) -> None:
        with Store.open(self.store) as store:
            assert store.integrity() == []
            for study in store.studies():
                self.nothing_is_lost(store.trials(study.id))
                self.nothing_is_tried_twice(store, study)
                the_answer_is_the_best(store, study)

    def nothing_is_lost(self, trials: list[TrialRecord]) -> None:
        assert sorted(trial.number for trial in trials) == [*range(len(trials))]
        for trial in trials:
            if trial.status.finished:
                assert repr(self.kept.setdefault(trial.id, trial)) == repr(trial)

    def nothing_is_tried_twice(self, store: Store, study: StudyRecord) -> None:
        trials = store.trials(study.id, "search")
        assert len({trial.hash for trial in trials}) == len(trials)
        searched = {session.id: session.settings["space"] for session in store.sessions(study.id)}
        assert all(trial.configuration in self.spaces[searched[trial.session_id]] for trial in trials)


def the_answer_is_the_best(store: Store, study: StudyRecord) -> None:
    """Of the trials that the space still contains; or the winner of a finale that it still contains."""
    space, found = space_from_document(study.document["space"]), load_answer(store, study)
    if found.defended:
        assert found.best in space
        return
    good = [t for t in store.trials(study.id, "search", Status.OK) if t.configuration in space]
    best = min(good, key=lambda t: (t.metrics["time"].value, t.number), default=None)
    assert found.trial == (None if best is None else best.number)


def answer(store: Store, study: StudyRecord) -> tuple[object, ...]:
    """What a study says, by each of the two ways to read it."""
    whole, brief = load_result(store, study), load_best(store, study, front=True)
    said = [(r.best, r.trial, r.defended, r.remark, r.statuses, repr(r.metrics)) for r in (whole, brief)]
    assert said[0] == said[1]
    return said[0]


class LongLives(Lives):
    """The same, for as long as somebody has time."""


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=2, stateful_step_count=10, deadline=None, derandomize=True)
TestLongLives = pytest.mark.slow(pytest.mark.timeout(3600)(LongLives.TestCase))
TestLongLives.settings = settings(max_examples=25, stateful_step_count=50, deadline=None)
