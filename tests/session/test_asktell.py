"""Ask and tell beside other sessions, with trials that take long, and with a store that fails."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import autotune
from autotune.cli.why import say
from autotune.errors import InputError, StoreError
from autotune.report.words.story import tell
from autotune.session import asktell
from autotune.session.asktell import AskedTrial
from autotune.session.reproduction.derivation import derive
from autotune.status import Status
from autotune.store.store import Store

SPACE = """
autotune: 1
name: trained
objective: objective.py:unused
metrics: {loss: {goal: minimize}}
knobs:
  x: {range: [0, 99]}
search: {strategy: random, seed: 3}
"""
EARLY = SPACE.replace("seed: 3", "seed: 3, early_stopping: {policy: asha, resource: epochs, max: 27}")


def opened(folder: Path, space: str = SPACE) -> autotune.AskTell:
    (folder / "objective.py").write_text("def unused(x):\n    return 1.0\n")
    (folder / "space.yaml").write_text(space)
    return autotune.ask_tell(folder / "space.yaml", store=folder / "study.db")


def leases_run_out(folder: Path) -> None:
    """As though a long time had passed without a sign of life."""
    with Store.open(folder / "study.db") as store:
        store.renew([trial.id for trial in store.trials(store.study().id)], lease_seconds=-1.0)


# -- trials that take long -----------------------------------------------------------------------

OTHER = """
import sys, autotune
with autotune.ask_tell("space.yaml", store="study.db") as session:
    (trial,) = session.ask()
    print(trial.number, flush=True)
    sys.stdin.readline()
    session.tell(trial, loss=1.0)
"""


def test_what_a_living_process_is_at_stays_with_it(tmp_path: Path) -> None:
    opened(tmp_path).close()
    command = [sys.executable, "-c", OTHER]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "0\n"
        leases_run_out(tmp_path)
        with opened(tmp_path) as session:
            assert [trial.number for trial in session.ask(2)] == [1, 2]
        other.communicate("\n")
    assert other.returncode == 0
    with Store.open(tmp_path / "study.db") as store:
        first = store.trials(store.study().id)[0]
    assert (first.status, first.attempt) == (Status.OK, 1)


def test_a_session_is_shown_by_its_study(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        assert repr(session) == f"AskTell({session.result().study.label!r})"


def test_what_a_session_of_this_process_forgot_is_tried_again(tmp_path: Path) -> None:
    dropped = opened(tmp_path)
    (trial,) = dropped.ask()
    leases_run_out(tmp_path)
    with opened(tmp_path) as session:
        assert [again.id for again in session.ask()] == [trial.id]


def test_what_is_in_flight_is_not_handed_out_again(tmp_path: Path) -> None:
    """Another session had taken it for lost and left it, and the space had nothing else: it came twice."""
    with opened(tmp_path, SPACE.replace("99", "1")) as session:
        first, second = session.ask(2)
        leases_run_out(tmp_path)
        opened(tmp_path, SPACE.replace("99", "1")).close()
        assert session.ask() == []
        session.tell(first, loss=1.0)
        session.tell(second, loss=2.0)
        assert session.result().statuses == {"ok": 2}


SIGNS: dict[str, Callable[[autotune.AskTell, AskedTrial], object]] = {
    "ask": lambda session, other: session.ask(),
    "report": lambda session, other: session.report(other, 1, loss=1.0),
    "tell": lambda session, other: session.tell(other, loss=1.0),
}


@pytest.mark.parametrize("space", [SPACE, EARLY], ids=["whole", "early"])
@pytest.mark.parametrize("sign", SIGNS)
def test_whatever_is_said_is_a_sign_of_life_for_all_trials(tmp_path: Path, sign: str, space: str) -> None:
    with opened(tmp_path, space) as session:
        trial, other = session.ask(2)
        leases_run_out(tmp_path)
        SIGNS[sign](session, other)
        with Store.open(tmp_path / "study.db") as store:
            assert store.trial(trial.id).lease_until > time.time()


def test_a_clock_that_is_set_spends_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as session:
        later = time.time() + 3600
        monkeypatch.setattr(time, "time", lambda: later)
        assert session._ledger.spent.seconds < 3600


# -- a store that fails --------------------------------------------------------------------------


def test_what_the_store_refused_can_be_said_again(tmp_path: Path) -> None:
    file, away = tmp_path / "study.db", tmp_path / "elsewhere.db"
    with opened(tmp_path, EARLY) as session:
        (trial,) = session.ask()
        session.report(trial, 1, loss=3.0)
        session.report(trial, 2, loss=2.5)  # nothing is decided here, and it is not yet in the store
        for step, loss in ((3, 2.0), (9, 1.0)):
            file.rename(away)
            with pytest.raises(StoreError, match="moved"):
                session.report(trial, step, loss=loss)
            away.rename(file)
            assert session.report(trial, step, loss=loss) is None
        session.report(trial, 10, loss=0.5)
        for _ in range(2):
            file.rename(away)
            with pytest.raises(StoreError, match="moved"):
                session.tell(trial, loss=0.5)
            away.rename(file)
            session._stopping.write()  # type: ignore[union-attr]  # what fails next is the trial's own end
        told = session.tell(trial, loss=0.5)
        with pytest.raises(autotune.InputError, match="is not in flight in this session"):
            session.tell(trial, loss=0.5)
    with Store.open(file) as store:
        kept = store.trial(trial.id)
        assert [r.report.step for r in store.reports_of(trial.id)] == [1, 2, 3, 9, 10]
    assert kept.status is Status.OK and kept.facts == told.facts
    assert kept.facts["curve"] == [[1, 3.0], [3, 2.0], [9, 1.0]] and kept.facts["step"] == 10


# -- threads -------------------------------------------------------------------------------------


def test_threads_may_share_a_session(tmp_path: Path) -> None:
    """As a pool of threads runs trials: before, one asked while another taught the strategy."""
    space = SPACE.replace("search: {strategy: random, seed: 3}", "  y: {range: [0, 99]}")
    with opened(tmp_path, space) as session, ThreadPoolExecutor(4) as pool:

        def work(_: int) -> list[int]:
            numbers = []
            for trial in session.ask():
                knobs = trial.configuration
                session.tell(trial, loss=1.0 + abs(knobs["x"] - 40) + abs(knobs["y"] - 60))
                numbers.append(trial.number)
            return numbers

        numbers = [number for some in pool.map(work, range(60)) for number in some]
        assert sorted(numbers) == list(range(60))
        assert session.result().statuses == {"ok": 60}


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[Store]:
    """The stores that were closed."""
    stores: list[Store] = []
    close = Store.close
    monkeypatch.setattr(Store, "close", lambda store: (stores.append(store), close(store))[1])
    return stores


def test_what_begins_and_fails_leaves_neither_store_nor_session_open(
    tmp_path: Path, closed: list[Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise StoreError("the reports cannot be read")

    monkeypatch.setattr(asktell, "make_stopping", broken)
    with pytest.raises(StoreError, match="cannot be read"):
        opened(tmp_path)
    assert len(closed) == 1
    with Store.open(tmp_path / "study.db") as store:
        (session,) = store.sessions(store.study().id)
    assert session.finished_at is not None


def test_a_session_whose_end_cannot_be_written_closes_its_store(tmp_path: Path, closed: list[Store]) -> None:
    file, away = tmp_path / "study.db", tmp_path / "elsewhere.db"
    session = opened(tmp_path)
    file.rename(away)
    with pytest.raises(StoreError, match="moved"):
        session.close()
    assert len(closed) == 1


@pytest.mark.parametrize("space", [SPACE, EARLY])
def test_a_trial_that_is_told_as_lost_is_asked_for_again(space: str, tmp_path: Path) -> None:
    """Nothing could be told of a node that had gone: the trial stayed in flight until the next session."""
    with opened(tmp_path, space) as session:
        (trial,) = session.ask()
        for _ in range(2):
            session.report(trial, 1, loss=1.0)
            assert session.tell(trial, status="lost", message="its node has gone").status is Status.LOST
            (again,) = session.ask()
            assert again.number == trial.number and again.configuration == trial.configuration
        session.tell(again, status="lost")
        assert session.ask()[0].number != trial.number, "three times are enough"
        assert session.result().failures == {}
    with opened(tmp_path, space) as session:
        assert trial.number in [one.number for one in session.ask(2)]


# -- what the caller wants tried next ------------------------------------------------------------

BOUND = SPACE + 'constraints: ["x != 13"]\n'


def values(trials: list[AskedTrial]) -> list[object]:
    return [trial.configuration["x"] for trial in trials]


def test_what_the_caller_enqueues_is_asked_for_next_and_follows_from_the_record(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        begun = session.ask(2)
        assert session.enqueue(x=42) and session.enqueue({"x": 7})
        third, *others = session.ask(4)
        assert values([third, *others])[:2] == [42, 7] and len(others) == 3
        for trial in [*begun, third, *others]:
            session.tell(trial, loss=1.0)
        assert session.enqueue(x=8)
        assert session.ask(1)[0].reason == {"strategy": "random", "kind": "enqueued"}
    with Store.open(tmp_path / "study.db", readonly=True) as store:
        found = derive(store, store.study())
        assert found.follows and (found.trials, found.compared, found.unrecorded) == (7, 4, 0)
        story = say(tell(store, store.trials(store.study().id)[2]))
    assert "named by the caller" in story and "0 results, and 2 trials in flight (search 1)\n" in story


def test_what_is_enqueued_and_not_asked_for_comes_first_in_the_next_session(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        session.enqueue(x=42)
    with opened(tmp_path) as session:
        assert values(session.ask(2)) == [42, 0]
    with Store.open(tmp_path / "study.db") as store:
        assert [trial.attempt for trial in store.trials(store.study().id)] == [1, 1]


def test_what_waits_to_be_asked_for_is_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as session:
        session.enqueue(x=42)
        leases_run_out(tmp_path)
        monkeypatch.setattr("autotune.session.ledger.LEASE_SECONDS", -1.0)
        session.enqueue(x=42)
        with opened(tmp_path) as other:
            assert values(other.ask(1)) == [0]


def test_nothing_is_enqueued_that_was_tried_or_cannot_be(tmp_path: Path) -> None:
    with opened(tmp_path, BOUND) as session:
        session.ask(1)
        assert not session.enqueue() and not session.enqueue(x=0)  # the default, which is in flight
        assert session.enqueue(x=1) and not session.enqueue(x=1)
        for wrong, said in [({"y": 1}, "no knob 'y'"), ({"x": 100}, "100"), ({"x": 13}, "x != 13")]:
            with pytest.raises(InputError, match=said):
                session.enqueue(wrong)
        assert len(session.result().trials) == 2
