"""The store when its disk, its file, its neighbours or its own process fail it.

What fails is real: file systems that are full, processes that are killed, files that are overwritten.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autotune.errors import StoreError
from autotune.measure.outcome import Outcome
from autotune.status import Status
from autotune.store import connect
from autotune.store.store import Store
from tests.store.build import Bench, bench, outcome, results

ROOT = Path(__file__).parents[2]


def python(program: str, *arguments: object) -> subprocess.Popen[str]:
    """A Python process of its own, in which the helpers of these tests can be imported."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def with_noise(n: int = 50) -> Outcome:
    """An outcome with a file that cannot be compressed."""
    return outcome(n=n, artifacts={"binary": random.randbytes(20_000)})


def fill(b: Bench, first: int, at_most: int = 5000) -> tuple[list[int], StoreError]:
    """Run trials until the store refuses; the ids that finished, and what it said."""
    done: list[int] = []
    for tile in range(first, first + at_most):
        try:
            trial = b.trial(tile)
            b.store.finish(trial.id, with_noise())
            done.append(trial.id)
        except StoreError as error:
            return done, error
    raise AssertionError("the store never refused")


def finished(store: Store, b: Bench) -> list[int]:
    return [t.id for t in results(store, b.study.id)]


# -- no room -------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = os.getuid() == 0 and not _mount("-t", "tmpfs", "-o", "size=2m", "tmpfs", folder)
    if not mounted:
        pytest.skip("mounting a small tmpfs needs root and the right to mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def _mount(*arguments: object) -> int:
    return subprocess.run(["mount", *map(str, arguments)], stderr=subprocess.DEVNULL).returncode


def test_a_full_disk_says_so_and_loses_nothing(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(400_000))
    with Store.open(small_disk / "a.db") as store:
        b = bench(store)
        done, error = fill(b, 0)
        assert done
        assert "the disk is full" in str(error)
        assert "Every trial that was finished is safe" in str(error)
        assert "Make space" in str(error)
        assert finished(store, b) == done  # it can still be read

        ballast.unlink()
        more, _ = fill(b, 10_000)  # the same store goes on
        assert more
    shutil.copytree(small_disk, small_disk.parent / "copy")
    with Store.open(small_disk.parent / "copy" / "a.db") as store:
        assert finished(store, b) == done + more
        assert store.integrity() == []


def test_a_limit_on_file_sizes_says_so_and_loses_nothing(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Store.open(tmp_path / "a.db") as store:
        b = bench(store)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
        try:
            done, error = fill(b, 0)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert done
        assert "a limit on file sizes is reached" in str(error)
        assert "Every trial that was finished is safe" in str(error)
        assert finished(store, b) == done
        trial = b.trial(10_000)
        store.finish(trial.id, with_noise())
    with Store.open(tmp_path / "a.db") as store:
        assert finished(store, b) == [*done, trial.id]
        assert store.integrity() == []


def test_no_room_for_a_new_store(small_disk: Path) -> None:
    with (
        (small_disk / "ballast").open("wb", buffering=0) as ballast,
        pytest.raises(OSError, match="No space"),
    ):
        while True:
            ballast.write(bytes(4096))
    with pytest.raises(StoreError, match="disk is full"):
        Store.open(small_disk / "a.db")
    (small_disk / "ballast").unlink()
    with Store.open(small_disk / "a.db") as store:
        assert store.studies() == []


# -- no right to write ---------------------------------------------------------------------------


def test_a_read_only_disk_can_be_read(small_disk: Path) -> None:
    with Store.open(small_disk / "a.db") as store:
        b = bench(store)
        trial = b.trial(1)
        store.finish(trial.id, outcome())
    assert _mount("-o", "remount,ro", small_disk) == 0
    with Store.open(small_disk / "a.db", readonly=True) as store:
        assert finished(store, b) == [trial.id]
        assert store.integrity() == []
    with pytest.raises(StoreError, match="may not be written"):
        Store.open(small_disk / "a.db")
    with pytest.raises(StoreError, match="cannot be opened"):
        Store.open(small_disk / "folder" / "b.db")
    with pytest.raises(StoreError, match=r"c\.db cannot be opened"):  # it had named a draft of its own
        Store.open(small_disk / "c.db")


# -- not the file it should be -------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"autotune: 1\nname: gemm\n" * 200, b"x", bytes(8192)])
def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "space.yaml"
    file.write_bytes(content)
    for readonly in (False, True):
        with pytest.raises(StoreError, match="not an SQLite database"):
            Store.open(file, readonly=readonly)
    assert file.read_bytes() == content
    assert list(tmp_path.iterdir()) == [file]


def test_a_damaged_file_says_so(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    Store.open(file).close()
    schema = file.stat().st_size // 4096
    with Store.open(file) as store:
        b = bench(store)
        b.propose(*range(500))
    content = bytearray(file.read_bytes())
    for page in range(schema, len(content) // 4096):  # the schema survives, the rows do not
        content[page * 4096 : page * 4096 + 2048] = b"\xa5" * 2048
    file.write_bytes(content)
    with Store.open(file) as store:
        with pytest.raises(StoreError, match="is damaged") as caught:
            store.trials(b.study.id)
        assert ".recover" in str(caught.value)
        assert any("integrity check" in line for line in store.integrity())


@pytest.mark.parametrize(
    ("written", "altered"),
    [(b'"dtype":"float32"', b'"dtype";"float32"'), (b"CREATE TABLE studies", b"CREATE \xf8ABLE studies")],
    ids=["within a row", "within the schema"],
)
def test_a_file_in_which_bytes_have_changed_says_so(tmp_path: Path, written: bytes, altered: bytes) -> None:
    file = tmp_path / "a.db"
    with Store.open(file) as store:
        bench(store)
    content = file.read_bytes()
    assert written in content
    file.write_bytes(content.replace(written, altered))
    with pytest.raises(StoreError, match=r"a\.db is damaged.*\.recover"), Store.open(file) as store:
        store.studies()


def test_a_file_that_is_deleted_meanwhile(tmp_path: Path) -> None:
    file, elsewhere = tmp_path / "a.db", tmp_path / "b.db"
    with Store.open(file) as store:
        b = bench(store)
        trial = b.trial(1)
        file.rename(elsewhere)
        with pytest.raises(StoreError, match="moved or deleted"):
            store.finish(trial.id, outcome())
        elsewhere.rename(file)
        store.finish(trial.id, outcome())
        assert finished(store, b) == [trial.id]


# -- neighbours ----------------------------------------------------------------------------------


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


def test_many_processes_make_the_same_store(tmp_path: Path) -> None:
    program = """
        with Store.open(sys.argv[1]) as store:
            print(bench(store).trial(1).number)
    """
    for round_ in range(3):
        file = tmp_path / str(round_) / "a.db"
        written = start_together(program, [(file,)] * 6)
        assert written == ["0\n"] * 6
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
                answers = store.propose(study, session, segment, [new_trial(tile) for tile in asked])
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


# -- killed --------------------------------------------------------------------------------------

WRITER = """
    import sys
    from autotune.status import Status
    from autotune.store.store import Store
    from tests.store.build import *
    store = Store.open(sys.argv[1])
    found = store.studies()
    study = found[0].id if found else bench(store).study.id
    session = store.open_session(study, {}, "e", 1, "h")
    segment = store.open_segment(study, {}, {}, "").id
    print("ready", flush=True)
    tile = int(sys.argv[2])
    while True:
        tile += 1
        [trial] = store.propose(study, session, segment, [new_trial(tile)])
        print("proposed", trial.id, flush=True)
        store.start(trial.id, "w")
        print("finished", trial.id, store.finish(trial.id, outcome(n=30)), flush=True)
"""


def test_kill_9_at_any_moment_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    file, dice = tmp_path / "a.db", random.Random(0)
    proposed: set[int] = set()
    told: dict[int, int] = {}
    for round_ in range(12):
        process = python(WRITER, file, round_ * 100_000)
        lines = _kill_after(process, dice.randrange(1, 120), dice.random)
        for what, trial, *place in (
            line.split() for line in lines if line != "ready\n" and line.endswith("\n")
        ):
            if what == "proposed":
                proposed.add(int(trial))
            else:
                told[int(trial)] = int(place[0])
        with Store.open(file) as store:
            assert store.integrity() == []
            records = {t.id: t for t in store.trials(store.study().id)}
            assert proposed <= records.keys()
            assert {i: records[i].told for i in told} == told
            assert all(len(store.readings(i)) == 30 for i in list(told)[-5:])
            places = [t.told for t in results(store, store.study().id)]
            assert places == list(range(len(places)))
            assert [t.number for t in records.values()] == list(range(len(records)))
    assert len(told) > 100


def _kill_after(process: subprocess.Popen[str], lines: int, chance: Callable[[], float]) -> list[str]:
    """Kill -9 once it has written so many lines, and a random stretch of work later; all that it wrote."""
    assert process.stdout is not None
    read = [process.stdout.readline() for _ in range(lines)]
    busy = int(chance() * 20_000)  # a fraction of a trial's time: so that the moment has no pattern
    while busy:
        busy -= 1
    process.send_signal(signal.SIGKILL)
    read += process.stdout.readlines()
    process.stdout.close()
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait() == -signal.SIGKILL
    return read


def test_trials_of_a_killed_session_become_lost_and_are_tried_again(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    process = python(WRITER, file, 0)
    _kill_after(process, 20, lambda: 0.0)
    with Store.open(file) as store:
        study = store.study()
        unfinished = [t.id for t in store.trials(study.id) if not t.status.finished]
        [session] = [s for s in store.sessions(study.id) if s.settings == {}]
        store.close_session(session.id, "its process is gone")
        lost = store.expire(study.id, store.sessions(study.id)[-1].started_at)
        assert [t.id for t in lost] == unfinished
        for trial in lost:
            assert store.retry(trial.id) is not None
            store.finish(trial.id, outcome())
        assert {t.status for t in store.trials(study.id)} == {Status.OK}
