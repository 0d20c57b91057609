"""Leases, results and late results against a model of a few lines, in any order hypothesis can think of."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from autotune.measure.outcome import Reading
from autotune.status import Status
from autotune.store.store import LEASE_SECONDS, Store
from tests.store.build import Clock, bench, new_trial, outcome, results

OPEN = (Status.WAITING, Status.RUNNING)


@dataclass
class Model:
    """What one trial must look like."""

    tile: int
    """Below 0 for a replicate."""
    number: int
    session: int
    lease: float
    status: Status = Status.WAITING
    attempt: int = 1
    told: int | None = None
    readings: tuple[Reading, ...] = ()


class Leases(RuleBasedStateMachine):
    trials = Bundle("trials")
    sessions = Bundle("sessions")

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.store = Store.open("sqlite://", clock=self.clock)
        self.bench = bench(self.store)
        self.study = self.bench.study.id
        self.models: dict[int, Model] = {}
        self.finished = 0

    def teardown(self) -> None:
        self.store.close()

    @rule(target=sessions)
    def open_session(self) -> int:
        return self.store.open_session(self.study, {}, "e", 1, "h")

    @rule(
        target=trials, session=sessions, tiles=st.lists(st.integers(0, 12), max_size=4), search=st.booleans()
    )
    def propose(self, session: int, tiles: list[int], search: bool) -> object:
        purpose = "search" if search else "final"
        new = [new_trial(tile, purpose) for tile in tiles]
        answers = self.store.propose(replace(self.bench.place, session=session), new)
        made = []
        for tile, answer in zip(tiles, answers, strict=True):
            key = -1 - len(self.models) if purpose == "final" else tile  # a replicate clashes with nothing
            if any(model.tile == key for model in self.models.values()):
                assert answer is None
                continue
            assert answer is not None
            lease = self.clock.now + LEASE_SECONDS
            self.models[answer.id] = Model(key, len(self.models), session, lease)
            made.append(answer.id)
        return multiple(*made)

    @rule(trial=trials, lease=st.integers(1, 100))
    def start(self, trial: int, lease: int) -> None:
        self.store.start(trial, "w", lease)
        model = self.models[trial]
        if model.status in (*OPEN, Status.LOST):
            model.status, model.lease = Status.RUNNING, self.clock.now + lease

    @rule(some=st.lists(trials, max_size=4), lease=st.integers(1, 100))
    def renew(self, some: list[int], lease: int) -> None:
        self.store.renew(some, lease)
        for trial in some:
            if self.models[trial].status in OPEN:
                self.models[trial].lease = self.clock.now + lease

    @rule(trial=trials, status=st.sampled_from([s for s in Status if s not in OPEN]), n=st.integers(0, 3))
    def finish(self, trial: int, status: Status, n: int) -> None:
        done, model = outcome(status, n=n), self.models[trial]
        told = self.store.finish(trial, done)
        if model.status.finished:
            assert told == model.told
            return
        before, model.status = model.status, status
        if status is Status.LOST:
            assert told == -1
            model.readings += tuple(
                Reading(r.metric, r.value, r.at, "lost", r.context) for r in done.readings
            )
            return
        assert told == self.finished
        if before is Status.LOST and model.tile < 0:  # of a replicate, the result was made of them as well
            model.readings = tuple(replace(r, discarded="") for r in model.readings)
        model.told, model.readings = told, model.readings + done.readings
        self.finished += 1

    @rule(seconds=st.integers(0, 80))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule()
    def expire(self) -> None:
        expected = {i for i, m in self.models.items() if m.status in OPEN and m.lease <= self.clock.now}
        assert {t.id for t in self.store.expire(self.study, self.clock.now)} == expected
        for trial in expected:
            self.models[trial].status = Status.LOST

    @rule(session=consumes(sessions))
    def close_session(self, session: int) -> None:
        self.store.close_session(session, "done")
        for model in self.models.values():
            if model.session == session and model.status in OPEN:
                model.lease = 0.0

    @rule(trial=trials, session=sessions)
    def retry(self, trial: int, session: int) -> None:
        again, model = self.store.retry(trial, session_id=session), self.models[trial]
        assert (again is not None) == (model.status is Status.LOST)
        if again is not None:
            model.status, model.session = Status.WAITING, session
            model.attempt, model.lease = model.attempt + 1, self.clock.now + LEASE_SECONDS

    @invariant()
    def agrees(self) -> None:
        found = {t.id: t for t in self.store.trials(self.study)}
        assert found.keys() == self.models.keys()
        for i, model in self.models.items():
            trial = found[i]
            assert (trial.number, trial.status, trial.attempt) == (model.number, model.status, model.attempt)
            assert (trial.told, trial.session_id) == (model.told, model.session)
            assert trial.reading_count == len(model.readings)
            assert model.status not in OPEN or trial.lease_until == model.lease
        told = [t.told for t in results(self.store, self.study)]
        assert told == list(range(self.finished))

    @invariant()
    def keeps_every_reading(self) -> None:
        kept = dict(self.store.readings_of(self.study))
        assert kept == {i: m.readings for i, m in self.models.items() if m.readings}


TestLeases = Leases.TestCase
TestLeases.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
