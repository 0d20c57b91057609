"""What several searches proposed at once follows from the store alone; what was altered in it does not."""

from __future__ import annotations

import random
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.provenance.environment import Environment, capture
from autotune.search.contract import Proposal
from autotune.search.registry import missing_packages, strategy_names
from autotune.session.api import search
from autotune.session.asktell import AskedTrial, AskTell
from autotune.session.reproduction.derivation import Derivation, Known, derive
from autotune.session.searches import VERIFIED
from autotune.space.configuration import Configuration
from autotune.space.reading.reader import parse_spec
from autotune.space.spec import SearchSettings, StudySpec
from autotune.status import Status
from autotune.store.records import AskRecord, NewAsk, NewTrial, Place, ResultRecord, TrialRecord
from autotune.store.store import Store
from tests.recordings import record
from tests.store.build import bench, new_trial

SPACE = """
autotune: 1
name: hills
objective: objective.py:unused
workload: {size: 12}
metrics: {time: {goal: minimize, unit: s}, error: {at_most: 100}}
knobs:
  solver: {choices: [direct, iterative], default: direct}
  x: {range: [0, HIGH], default: 0}
  y: {range: [0, 7], default: 0}
  rate: {range: [1.0e-3, 1.0], scale: log, default: 0.1, when: "solver == 'iterative'"}
  order: {permutation: [i, j, k]}
constraints: ["x + y <= size", "x <= device.cores * 100"]
budget: {trials: 60, time: 1h}
"""

EVERY = [name for name in strategy_names() if name != "auto"]
SLOW = {"optuna-gp", "skopt-gp", "skopt-forest"}
LONG = SLOW | {"structured"}
SEVERAL = [pytest.param(name, marks=pytest.mark.long) if name in LONG else name for name in EVERY]


@pytest.fixture(scope="module")
def environment() -> Environment:
    return capture()


def spec_of(folder: Path, strategy: str, high: int = 9, text: str = SPACE, **options: object) -> StudySpec:
    (folder / "objective.py").write_text("def unused(**knobs):\n    return 1.0\n")
    spec = parse_spec(text.replace("HIGH", str(high)), folder / "space.yaml", {"cores": 4})
    search = SearchSettings(strategy, seed=4, options=options)  # type: ignore[arg-type]
    return replace(spec, search=search)


class Searches:
    """Several sessions of a study, in one process and taking turns at random."""

    def __init__(self, folder: Path, environment: Environment, seed: int) -> None:
        self.file = folder / "study.db"
        self.environment = environment
        self.rng = random.Random(seed)
        self.open: list[tuple[AskTell, list[AskedTrial]]] = []

    def begin(self, spec: StudySpec) -> None:
        self.open.append((AskTell(spec, Store.open(self.file), self.environment), []))

    def end(self) -> None:
        """One of them ends; what it had in flight is lost, and tried again by whoever begins next."""
        session, _ = self.open.pop(self.rng.randrange(len(self.open)))
        session.close()

    def step(self) -> None:
        """One of them asks, or is told of one of its trials."""
        session, flying = self.rng.choice(self.open)
        if len(flying) < 4 and self.rng.random() < 0.6:
            flying += session.ask(self.rng.randint(1, 3))
        elif flying:
            self.tell(session, flying.pop(self.rng.randrange(len(flying))))

    def tell(self, session: AskTell, trial: AskedTrial) -> None:
        c = trial.configuration
        assert isinstance(c["x"], int) and isinstance(c["y"], int)
        if c["x"] == 5:
            session.tell(trial, status=Status.OUT_OF_MEMORY, message="too much", peak_memory=10**9)
            return
        time = 1.0 + (c["x"] - 6) ** 2 + (c["y"] - 3) ** 2 + (c["solver"] == "direct")
        noise = [time * self.rng.uniform(0.98, 1.02) for _ in range(3)]
        session.tell(trial, time=noise, error=200.0 if c["y"] == 6 else 1.0, seconds=time)

    def close(self) -> None:
        for session, _ in self.open:
            session.close()


@pytest.fixture
def searches(tmp_path: Path, environment: Environment) -> Iterator[Callable[[int], Searches]]:
    made: list[Searches] = []

    def make(seed: int) -> Searches:
        made.append(Searches(tmp_path, environment, seed))
        return made[-1]

    yield make
    for one in made:
        one.close()


def derived(file: Path) -> Derivation:
    with Store.open(file, readonly=True) as store:
        return derive(store, store.study())


def run(searches: Searches, spec: StudySpec, steps: int) -> None:
    """Three searches at once, one of which ends and is followed by another now and then."""
    for _ in range(3):
        searches.begin(spec)
    for number in range(steps):
        searches.step()
        if number % 17 == 16:
            searches.end()
            searches.begin(spec)


@pytest.mark.parametrize("strategy", SEVERAL)
def test_the_proposals_of_several_searches_at_once_follow(
    tmp_path: Path, searches: Callable[[int], Searches], strategy: str
) -> None:
    if missing := missing_packages(strategy):
        pytest.skip(f"{strategy} needs {', '.join(missing)}")
    options = {"initial": 3} if strategy in SLOW or strategy == "optuna-tpe" else {}
    three = searches(1)
    run(three, spec_of(tmp_path, strategy, **options), steps=12 if strategy in SLOW else 50)
    found = derived(three.file)
    assert found.departure is None, found
    assert found.compared == found.trials > 5
    assert found.unrecorded == 0
    assert found.sessions >= 2 and found.most_in_flight > 3


@pytest.mark.parametrize("seed", range(2, 5))
def test_whatever_the_order_of_things(tmp_path: Path, searches: Callable[[int], Searches], seed: int) -> None:
    three = searches(seed)
    run(three, spec_of(tmp_path, "evolution", initial=5), steps=100)
    assert derived(three.file).follows
    with Store.open(three.file) as store:
        assert any(t.attempt > 1 for t in store.trials(store.study().id)), "nothing was tried again"


@pytest.mark.parametrize("strategy", ["grid", "evolution"])
def test_what_another_search_had_proposed_a_moment_before(
    tmp_path: Path, searches: Callable[[int], Searches], strategy: str
) -> None:
    two = searches(1)
    spec = spec_of(tmp_path, strategy)
    two.begin(spec)
    two.begin(spec)
    (slow, _), (quick, _) = two.open
    ask = slow._ledger.strategy.ask

    def after_the_other(n: int = 1) -> list[Proposal]:
        if n == 3:  # not when what it proposed was refused
            quick.ask(2)  # between what the slow one heard last and what it writes
        return ask(n)

    slow._ledger.strategy.ask = after_the_other  # type: ignore[method-assign]
    for _ in range(4):
        slow.ask(3)
    with Store.open(two.file) as store:
        refused = [ask for ask in store.asks(store.study().id) if None in ask.trials]
        assert refused, "the quick one was never quicker"
    found = derived(two.file)
    assert found.follows and found.compared == found.trials, found


def test_each_search_has_the_space_that_it_had(tmp_path: Path, searches: Callable[[int], Searches]) -> None:
    three = searches(1)
    for high in (9, 12, 4):
        three.begin(spec_of(tmp_path, "evolution", high=high, initial=5))
        for _ in range(40):
            three.step()
    found = derived(three.file)
    assert found.follows and found.sessions == 3, found


def test_the_arms_of_a_bandit_follow(tmp_path: Path, searches: Callable[[int], Searches]) -> None:
    three = searches(1)
    run(three, spec_of(tmp_path, "bandit", arms="evolution,policy,random"), steps=120)
    assert derived(three.file).follows


@pytest.fixture(scope="module")
def unaltered(tmp_path_factory: pytest.TempPathFactory, environment: Environment) -> Path:
    folder = tmp_path_factory.mktemp("unaltered")
    three = Searches(folder, environment, 1)
    run(three, spec_of(folder, "evolution", initial=5), steps=120)
    three.close()
    assert derived(three.file).follows
    return three.file


class TestWhatWasAltered:
    @pytest.fixture
    def file(self, tmp_path: Path, unaltered: Path) -> Path:
        return shutil.copy(unaltered, tmp_path / "study.db")

    def alter(self, file: Path, statement: str, *values: object) -> None:
        with closing(sqlite3.connect(file)) as database, database:
            assert database.execute(statement, values).rowcount == 1

    def first(self, file: Path, condition: str) -> int:
        """The number of the first trial of which that is true."""
        with closing(sqlite3.connect(file)) as database, database:
            query = f"SELECT number FROM trials WHERE {condition} ORDER BY number LIMIT 1"
            return int(database.execute(query).fetchone()[0])

    def test_a_reason(self, file: Path) -> None:
        bred = self.first(file, "reason LIKE '%parent_metric%'")
        change = "UPDATE trials SET reason = json_set(reason, '$.parent_metric', 0.5) WHERE number = ?"
        self.alter(file, change, bred)
        found = derived(file)
        assert found.departure is not None and found.departure.trial == bred
        assert found.departure.message == "another reason follows: parent_metric"
        assert found.compared == bred + 1

    def test_a_configuration(self, file: Path) -> None:
        bred = self.first(file, "reason LIKE '%parent%' AND configuration LIKE '%\"y\":2%'")
        change = (
            """UPDATE trials SET configuration = replace(configuration, '"y":2', '"y":3') WHERE number = ?"""
        )
        self.alter(file, change, bred)
        found = derived(file)
        assert found.departure is not None and found.departure.trial == bred
        assert "another configuration follows" in found.departure.message
        assert any(f"the configuration of trial {bred} is not" in cause for cause in found.causes)

    def test_a_measurement(self, file: Path) -> None:
        best = self.first(file, "status = 'ok'")
        self.alter(
            file,
            """UPDATE trials SET metrics = json_set(metrics, '$.time.value', 0.5) WHERE number = ?""",
            best,
        )
        found = derived(file)
        assert found.departure is not None and found.departure.trial > best
        assert any(f"time of trial {best} is 0.5, but the median" in cause for cause in found.causes)

    def test_a_trial_that_was_taken_out(self, file: Path) -> None:
        gone = self.first(file, "number = 7")
        with closing(sqlite3.connect(file)) as database, database:
            database.execute(
                "DELETE FROM readings WHERE trial_id IN (SELECT id FROM trials WHERE number = ?)", (gone,)
            )
        self.alter(file, "DELETE FROM trials WHERE number = ?", gone)
        found = derived(file)
        assert found.departure is not None and found.departure.trial <= gone
        assert found.departure.message == "its row is missing" or found.departure.trial < gone

    def test_a_seed(self, file: Path) -> None:
        self.alter(
            file, "UPDATE sessions SET settings = json_set(settings, '$.search.seed', 9) WHERE id = ?", 2
        )
        found = derived(file)
        assert found.departure is not None and found.departure.session == 2
        assert found.causes == ("the record is consistent, and the software is the same: please report this",)

    def test_other_software_is_named(self, file: Path) -> None:
        bred = self.first(file, "reason LIKE '%parent_metric%'")
        self.alter(
            file, "UPDATE trials SET reason = json_set(reason, '$.parent_metric', 0.5) WHERE number = ?", bred
        )
        with closing(sqlite3.connect(file)) as database, database:
            database.execute(
                "UPDATE environments SET document = json_set(document, '$.packages.numpy', '1.0')"
            )
            database.execute("UPDATE sessions SET settings = json_set(settings, '$.engine.code', 'other')")
        causes = derived(file).causes
        assert any(cause.startswith("numpy was 1.0 and is ") for cause in causes)
        assert any("the code of autotune's strategies" in cause for cause in causes)


def test_replays_that_were_pruned_are_no_sign_of_an_edit(
    tmp_path: Path, searches: Callable[[int], Searches]
) -> None:
    three = searches(1)
    spec = spec_of(tmp_path, "random")
    run(three, spec, steps=20)
    with Store.open(three.file) as store:
        study = store.study()
        again = store.open_session(study.id, {VERIFIED: []}, three.environment.hash, 1, "here")
        segment = store.latest_segment(study.id)
        assert segment is not None
        [kept] = store.propose(Place(study.id, again, segment.id), [NewTrial(spec.space.default(), "final")])
        store.close_session(again, "verified")
        store.delete(session_ids=[again])
        run(three, spec, steps=20)
        last = store.trials(study.id)[-1].number
    assert kept is not None and kept.number < last
    with closing(sqlite3.connect(three.file)) as database, database:
        change = "UPDATE trials SET reason = json_set(reason, '$.kind', 'edited') WHERE number = ?"
        assert database.execute(change, (last,)).rowcount == 1
    found = derived(three.file)
    assert found.departure is not None and found.departure.trial == last
    assert not any("there is no trial" in cause for cause in found.causes)
    with closing(sqlite3.connect(three.file)) as database, database:
        database.execute("DELETE FROM readings WHERE trial_id = (SELECT id FROM trials WHERE number = 0)")
        database.execute("DELETE FROM trials WHERE number = 0")
    assert "the store was edited: there is no trial 0" in derived(three.file).causes


def test_a_study_of_an_older_autotune_says_so(tmp_path: Path, searches: Callable[[int], Searches]) -> None:
    three = searches(1)
    run(three, spec_of(tmp_path, "random"), steps=20)
    three.close()
    with closing(sqlite3.connect(three.file)) as database, database:
        database.execute("DELETE FROM asks")
    with pytest.raises(InputError, match="does not say what its strategy knew"):
        derived(three.file)
    three.open = []
    three.begin(spec_of(tmp_path, "random"))
    for _ in range(20):
        three.step()
    found = derived(three.file)
    assert found.follows and 0 < found.unrecorded < found.trials


def test_a_study_without_trials_follows(tmp_path: Path, searches: Callable[[int], Searches]) -> None:
    three = searches(1)
    three.begin(spec_of(tmp_path, "random"))
    assert derived(three.file).follows


REPLAY = """
autotune: 1
name: recorded
replay: recorded.json
metrics: {time: {goal: minimize, unit: s}}
knobs: {x: {values: [1, 2, 3, 4]}, y: {values: [1, 2, 3, 4]}}
measure: {finalists: 0}
budget: {trials: 8}
"""


def test_a_replay_follows_from_the_recording_that_the_store_has_kept(tmp_path: Path) -> None:
    places = [(x, y) for x in range(1, 5) for y in range(1, 5) if (x, y) != (4, 4)]
    entries = [{"x": x, "y": y, "time": float(x * y), "times": [float(x * y)]} for x, y in places]
    recording = record(tmp_path / "recorded.json", {"x": range(1, 5), "y": range(1, 5)}, entries)
    (tmp_path / "space.yaml").write_text(REPLAY)
    search(tmp_path / "space.yaml", store=tmp_path / "study.db", strategy="evolution")
    recording.unlink()
    assert derived(tmp_path / "study.db").follows


def test_what_was_known_at_each_of_ten_thousand_asks_is_found_at_once(tmp_path: Path) -> None:
    space = spec_of(tmp_path, "random").space
    ok = Status.OK
    trials = {
        n: TrialRecord(n, 1, n, 1, 1, "search", Configuration({"x": n}), str(n), ok, told=n)
        for n in range(10_000)
    }
    results = [ResultRecord(n, n, trials[n].configuration, ok, {}, {}, {}, None, {}) for n in trials]
    known = Known(trials, results)
    began = time.process_time()
    for n in range(10_000):
        assert list(known.told(n, n + 1, space)) == []  # none is in this space
        assert known.in_flight(AskRecord(n, 1, n, max(n - 3, 0), 1, (n,))) == min(n, 3)
    # Of this process alone: 0.1 s; 12 s where each ask looks at every trial.
    assert time.process_time() - began < 3.0


def test_a_search_that_says_no_settings_is_an_error(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.db") as store:
        own = bench(store)
        ask = NewAsk(0, 1, 0, 0)
        store.propose(own.place, [new_trial(1)], ask=ask)
        with pytest.raises(InputError, match="search 1 of gemm#1 does not record its settings"):
            derive(store, own.study)
