"""Searches on one machine measure on different cores, or in turns; what a dead one held is free."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.measure.cores.pinning import allowed_here, choose_cores, siblings_here
from autotune.measure.cores.turns import VARIABLE, FileLock, Turn, find_place, locks_folder, shared_folder

HOLD = """
import json, sys
from dataclasses import asdict
from pathlib import Path
from autotune.measure.cores.turns import find_place
place = find_place(1, Path(sys.argv[1]))
assert place.turn.begin()
print(json.dumps(asdict(place.cores)), flush=True)
sys.stdin.read()
"""


@contextmanager
def another_search(folder: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, list[int]]]]:
    """A process that has found its place, and is measuring there."""
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


def test_a_search_takes_other_cores_than_the_one_before_as_long_as_there_are_some(tmp_path: Path) -> None:
    siblings = {cpu: siblings_here(cpu) for cpu in allowed_here()}
    with another_search(tmp_path) as (_, cores):
        taken = frozenset().union(*(siblings[cpu] for cpu in cores["measuring"]))
        place = find_place(1, tmp_path)
        assert place.cores == choose_cores(1, allowed_here(), siblings, taken)
        assert place.cores.shared or not taken & set(place.cores.measuring)
        assert bool(place.remark) == place.cores.shared
        place.close()


def test_all_users_look_for_locks_in_the_same_folder(tmp_path: Path) -> None:
    """Root as well, who may write to any."""
    modes = {"own": 0o755, "group": 0o1775, "open": 0o777, "shared": 0o1777, "later": 0o1777}
    for name, mode in modes.items():
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    places = [tmp_path / name for name in ("none", *modes)]
    assert shared_folder(places) == tmp_path / "shared"
    assert shared_folder(places[:4]) is None


def test_a_folder_that_the_user_names_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one that is not there nothing is locked: two searches had measured on the same cores."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "for" / "locks"))
    with another_search(locks_folder()) as (_, cores):
        place = find_place(1)
        mine, theirs = place.cores.measuring, cores["measuring"]
        assert place.cores.shared or not set(mine) & set(theirs)
        place.close()
    assert locks_folder().stat().st_mode & 0o7777 == 0o1777
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(VARIABLE, "~/locks")
    assert locks_folder() == tmp_path / "locks", "and no folder whose name is ~, another one in each folder"
    (tmp_path / "file").touch()
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file"))
    with pytest.raises(InputError, match=r"AUTOTUNE_LOCKS names '.*file', which is not a folder"):
        find_place(1)


def test_a_link_or_a_pipe_in_the_place_of_a_lock_harms_nobody(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    os.mkfifo(tmp_path / "pipe")
    victim = FileLock(tmp_path / "victim")
    assert victim.take()
    for name in ("link", "pipe"):
        lock = FileLock(tmp_path / name)
        assert lock.take()
        lock.close()
    victim.close()


def test_where_there_are_no_locks_all_may_pass(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    lock.close()
    lock._file = os.open(tmp_path / "lock", os.O_PATH)  # cannot be locked, as on such a file system
    assert lock.take() and lock.take(wait=True)
    lock.release()
    lock.close()


def test_what_a_killed_search_held_is_free(tmp_path: Path) -> None:
    with another_search(tmp_path) as (process, cores):
        (core,) = cores["measuring"]
        turn = Turn(tmp_path, [min(siblings_here(core))])
        assert not turn.begin()
        process.kill()
        process.wait()
        assert turn.begin()
        turn.close()
        place = find_place(1, tmp_path)
        assert list(place.cores.measuring) == [core] and not place.cores.shared
        place.close()


def test_whoever_has_measured_comes_after_those_who_wait(tmp_path: Path) -> None:
    one, other = Turn(tmp_path, [3, 5]), Turn(tmp_path, [5])
    assert one.begin() and one.held and not other.begin()
    one.end()
    assert not one.held and not one.begin(), "it came before the one that waits"
    assert other.begin() and not one.begin()
    other.end()
    assert one.begin() and not other.begin()
    other.end()  # leaves the queue
    one.end()
    assert one.begin()


def test_without_cores_there_is_nothing_to_wait_for(tmp_path: Path) -> None:
    places = [find_place(0, tmp_path) for _ in range(3)]
    assert all(place.turn.held and place.turn.begin() and not place.remark for place in places)
    assert not any(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_keeps_nobody_out(tmp_path: Path) -> None:
    locks = [FileLock(tmp_path / "absent" / "lock") for _ in range(2)]
    assert all(lock.take() for lock in locks)
    for lock in locks:
        lock.release()
        lock.close()


OBJECTIVE = """
import os, time
from pathlib import Path
import autotune

HERE = Path(__file__).parent
NAME, MODE = os.environ["SEARCH"].split(":")

class Timed(autotune.Objective):
    def prepare(self, configuration):
        met = HERE / f"{NAME}.met"
        if configuration["x"] == 0 and not met.exists():  # the default, which is the first
            open(HERE / "meeting", MODE).close()  # waits until both searches are here
            met.touch()
        return configuration["x"]

    def measure(self, loaded, rng):
        began = time.monotonic()
        while time.monotonic() < began + 0.002:
            pass
        with open(HERE / "log", "a") as log:
            log.write(f"{began} {time.monotonic()} {NAME}\\n")
        return {"time": 1.0 + loaded}
"""

SPACE = """
autotune: 1
name: turns
objective: objective.py:Timed
metrics: {time: {goal: minimize, unit: s}}
knobs: {x: {range: [0, 7]}}
measure: {min_readings: 3, max_readings: 3, finalists: 1, warmup: 0}
budget: {trials: 8}
"""


@pytest.mark.long
@pytest.mark.skipif(len(allowed_here()) < 2, reason="needs a core to prepare on")
def test_two_searches_that_share_a_core_never_measure_at_once(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "objective.py").write_text(OBJECTIVE)
    os.mkfifo(tmp_path / "meeting")
    two = set(allowed_here()[-2:])
    searches = []
    for name, mode in (("one", "r"), ("other", "w")):
        command = ["-m", "autotune", "search", "space.yaml", "--strategy", "grid", "--store", f"{name}.db"]
        searches.append(
            subprocess.Popen(
                [sys.executable, *command],
                cwd=tmp_path,
                env={**os.environ, VARIABLE: str(tmp_path), "SEARCH": f"{name}:{mode}"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                preexec_fn=lambda: os.sched_setaffinity(0, two),
            )
        )
    said = [search.communicate()[0] for search in searches]
    assert [search.returncode for search in searches] == [0, 0], said
    assert sum("takes turns" in text for text in said) == 1, said
    lines = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    readings = sorted((float(began), float(ended), name) for began, ended, name in lines)
    assert all(ended <= begins for (_, ended, _), (begins, _, _) in pairwise(readings))
    assert sum(one[2] != other[2] for one, other in pairwise(readings)) > 2, "they did not take turns"


def test_readings_that_follow_each_other_share_a_turn_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (Turn(tmp_path, (0,)) for _ in range(2))
    with one.kept():
        with one.taken():
            assert not other.begin()
        assert not other.begin(), "it is kept for the next reading"
        with one.taken():
            pass
        monkeypatch.setattr("autotune.measure.cores.turns.SLICE_SECONDS", -1.0)
        with one.taken():
            pass
        assert other.begin(), "it had lasted long enough"
        other.end()
        monkeypatch.undo()
        with one.taken():
            pass
    assert other.begin(), "what is kept ends with the block"
    other.end()
    with one.taken():
        pass
    assert other.begin(), "without such a block each reading has a turn of its own"
    for turn in (one, other):
        turn.close()
