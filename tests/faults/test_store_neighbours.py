"""The store when others hold it, or make and fill it at the same time. They are real processes."""

from __future__ import annotations

import json
import sqlite3
import textwrap
import time
from pathlib import Path

import pytest

from autotune.errors import StoreError
from autotune.store.databases import connect
from autotune.store.store import Store
from tests.faults.storing import finished, python
from tests.store.build import bench, outcome, results


def test_a_lock_that_is_never_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "BUSY_SECONDS", 0.05)
    with Store.open(tmp_path / "a.db") as store:
        b = bench(store)
        trial = b.trial(1)
        other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert store.trial(trial.id) == trial  # a writer does not hold up readers
        with pytest.raises(StoreError, match="held by another program"):
            store.finish(trial.id, outcome())
        other.execute("COMMIT")
        other.close()
        assert store.finish(trial.id, outcome()) == 0


def test_a_writer_naps_until_it_has_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 5:
            other.execute("COMMIT")

    with Store.open(tmp_path / "a.db") as store:
        b = bench(store)
        trial = b.trial(1)
        other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr(time, "sleep", nap)
        assert store.finish(trial.id, outcome()) == 0
        other.close()
    assert len(naps) == 5
    assert naps[0] <= connect.NAP_SECONDS < naps[-1] <= connect.LONGEST_NAP_SECONDS


def test_readers_do_not_hold_up_writers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "BUSY_SECONDS", 0.05)
    with Store.open(tmp_path / "a.db") as store, Store.open(tmp_path / "a.db", readonly=True) as reader:
        b = bench(store)
        trial = b.trial(1)
        store.finish(trial.id, outcome())
        with reader._database.read() as connection:  # a reader in the middle of its work
            connection.exec_driver_sql("SELECT * FROM trials").fetchone()
            second = b.trial(2)
            store.finish(second.id, outcome())
            assert connection.exec_driver_sql("SELECT count(*) FROM trials").scalar() == 1
        assert finished(reader, b) == [trial.id, second.id]


def test_a_forked_child_is_told_to_open_its_own(tmp_path: Path) -> None:
    program = """
        import os, sys
        from autotune.errors import StoreError
        from autotune.store.store import Store
        store = Store.open(sys.argv[1])
        child = os.fork()
        if child == 0:
            try:
                store.studies()
            except StoreError as error:
                os.write(1, str(error).encode())
            store.close()
            os._exit(0)
        os.waitpid(child, 0)
        store.load((), {"e": {"still": "works"}}, ())
    """
    process = python(program, tmp_path / "a.db")
    said, _ = process.communicate()
    assert process.returncode == 0
    assert "open it again after a fork" in said


START_TOGETHER = """
import json, sys
from autotune.store.store import Store
from tests.store.build import *

def meet():
    print("here", flush=True)
    sys.stdin.readline()

meet()
"""


def start_together(program: str, arguments: list[tuple[object, ...]], meetings: int = 1) -> list[str]:
    """Run processes of which none goes on before all have come to ``meet()``; what each wrote after the last.

    They meet once when all have started, and wherever the program says so. Between meetings one may be
    done before another has begun.
    """
    processes = [python(START_TOGETHER + textwrap.dedent(program), *a) for a in arguments]
    for _ in range(meetings):
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "here\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
    written = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return written


@pytest.mark.long
def test_many_processes_make_the_same_store(tmp_path: Path) -> None:
    program = """
        made = []
        for number, file in enumerate(sys.argv[1:]):
            if number:
                meet()
            with Store.open(file) as store:
                made.append(bench(store).trial(1).number)
        print(*made)
    """
    files = [tmp_path / str(number) / "a.db" for number in range(6)]
    assert start_together(program, [tuple(files)] * 6, meetings=len(files)) == ["0 0 0 0 0 0\n"] * 6
    for file in files:
        with Store.open(file) as store:
            assert len(store.studies()) == 6
            assert store.integrity() == []


def test_two_searches_never_get_the_same_configuration(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    with Store.open(file) as store:
        b = bench(store)
    program = """
        import random
        with Store.open(sys.argv[1]) as store:
            study, session, segment, seed = map(int, sys.argv[2:])
            tiles = list(range(400))
            random.Random(seed).shuffle(tiles)
            mine = []
            while tiles:
                asked, tiles = tiles[:3], tiles[3:]
                answers = store.propose(Place(study, session, segment), [new_trial(tile) for tile in asked])
                mine += [(t.number, t.configuration["tile"]) for t in answers if t]
                for trial in filter(None, answers):
                    store.finish(trial.id, outcome())
                if len(tiles) == 397:
                    meet()
            print(json.dumps(mine))
    """
    arguments = [(file, b.study.id, b.session, b.segment, seed) for seed in range(2)]
    first, second = (json.loads(text) for text in start_together(program, arguments, meetings=2))
    assert len(first) > 0 < len(second)
    assert sorted(number for number, _ in first + second) == list(range(400))
    assert sorted(tile for _, tile in first + second) == list(range(400))
    with Store.open(file) as store:
        assert [t.told for t in results(store, b.study.id)] == list(range(400))
        assert store.integrity() == []


def test_a_lost_trial_goes_to_one_of_many(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    with Store.open(file) as store:
        b = bench(store)
        b.propose(*range(100))
        store.close_session(b.session, "crashed")
    program = """
        import time
        with Store.open(sys.argv[1]) as store:
            study, session = map(int, sys.argv[2:])
            lost = [t.id for t in store.expire(study, time.time())]
            again = [store.retry(t.id, session_id=session) for t in store.trials(study, status="lost")]
            print(json.dumps([lost, [t.id for t in again if t]]))
    """
    written = start_together(program, [(file, b.study.id, b.session)] * 4)
    answers = [json.loads(text) for text in written]
    assert sorted(trial for lost, _ in answers for trial in lost) == list(range(1, 101))
    assert sorted(trial for _, again in answers for trial in again) == list(range(1, 101))
