"""kill -9 of a whole search at random moments: nothing finished is lost, nothing is measured twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from ast import literal_eval
from pathlib import Path

import pytest

from autotune.session.ledger import MAX_ATTEMPTS
from autotune.session.searches import close_dead, expire
from autotune.status import Status
from autotune.store.store import Store
from tests.faults.searching import finished, integrity, start, wait_for_readings, wait_until_gone, write_study


def kill_at_random_moments(folder: Path, kills: int, seed: int) -> None:
    write_study(folder)
    rng = random.Random(seed)
    before: dict[str, tuple[str, float | None]] = {}
    for number in range(kills):
        mark = f"{seed}-{number}-{os.getpid()}"
        search = start(folder, 100_000, mark)
        # Any moment will do: every third while it starts, the others when some readings were taken.
        readings = 0 if number % 3 == 0 else rng.randrange(1, 60)
        wait_for_readings(search, folder / "ledger", readings)
        try:
            search.wait(timeout=rng.uniform(0.0, 0.3))
        except subprocess.TimeoutExpired:
            os.killpg(search.pid, signal.SIGKILL)
        _, err = search.communicate()
        assert search.returncode == -signal.SIGKILL, err.decode()
        assert wait_until_gone(mark) == []
        after = finished(folder)
        assert before.items() <= after.items(), "a finished trial was lost or changed"
        if after:
            assert integrity(folder) == "ok"
        before = after

    assert before, "no search lived long enough to finish a trial"
    (folder / "ledger").write_text("")
    search = start(folder, len(before) + 10, "last")
    _, err = search.communicate(timeout=120)
    assert search.returncode == 0, err.decode()
    measured = set((folder / "ledger").read_text().splitlines())
    assert measured, "the resumed search measured nothing"
    assert not measured & set(before), "the resumed search measured something again"
    assert before.items() <= finished(folder).items()
    assert integrity(folder) == "ok"


def test_a_search_that_is_killed_four_times(tmp_path: Path) -> None:
    kill_at_random_moments(tmp_path, kills=4, seed=1)


@pytest.mark.slow
def test_a_search_that_is_killed_twenty_times(tmp_path: Path) -> None:
    kill_at_random_moments(tmp_path, kills=20, seed=2)


DEADLY = """
import os, signal
import autotune
from autotune.session.progress import Progress
from autotune.space import OrderedValues, Space

class Notes(Progress):
    def note(self, text):
        print(text)

def deadly(x):
    if x == 3:
        os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does where memory runs out
    return 9.0 - x

space = Space([OrderedValues("x", tuple(range(6)))])
result = autotune.search(space, objective=deadly, store="study.db", progress=Notes())
print(sorted((t.configuration["x"], str(t.status), t.attempt) for t in result.trials))
"""


@pytest.mark.long
def test_a_configuration_that_kills_the_search_is_left_alone_in_the_end(tmp_path: Path) -> None:
    """It had been the first to be tried in every session that followed, for ever."""
    (tmp_path / "deadly.py").write_text(DEADLY)
    command = [sys.executable, "deadly.py"]
    done = [subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=300) for _ in range(4)]
    assert [one.returncode for one in done] == [-signal.SIGKILL] * MAX_ATTEMPTS + [0], done[-1].stderr
    assert literal_eval(done[-1].stdout.decode().splitlines()[-1]) == [
        (x, "lost" if x == 3 else "ok", MAX_ATTEMPTS if x == 3 else 1) for x in range(6)
    ]
    assert "the search was killed 3 times while it ran" in done[-1].stdout.decode()


DEADLY_FINALE = """
import itertools, os, random, signal
import autotune
from autotune.session.finale import kept_readings
from autotune.session.progress import Progress
from autotune.space import OrderedValues, Space

kept_readings.EVERY_SECONDS = 0.0
calls = itertools.count()

class Finale(Progress):
    begun = False

    def defending(self, entrants, seconds):
        self.begun = True

def deadly(x):
    if finale.begun and next(calls) == 60 and "SPARED" not in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)
    return 9.0 - x + 0.1 * rng.random()

rng = random.Random(1)
finale = Finale()
space = Space([OrderedValues("x", tuple(range(3)))])
# With time for all rounds of a finale, of which a machine that stands still takes some.
autotune.search(space, objective=deadly, store="study.db", progress=finale, time=1000)
"""


@pytest.mark.long
def test_what_a_finale_has_read_outlives_it_and_is_gone_on_with(tmp_path: Path) -> None:
    """It was written down in the end: a finale of trainings that was killed had cost an hour.

    Then it was read anew where the store had been named by ``--store``, and was now by ``AUTOTUNE_STORE``.
    """
    (tmp_path / "deadly.py").write_text(DEADLY_FINALE)
    done = subprocess.run([sys.executable, "deadly.py"], cwd=tmp_path, capture_output=True, timeout=300)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with Store.open(tmp_path / "study.db") as store:
        study = store.study()
        close_dead(store, study.id)  # as the next search does
        expire(store, study.id)
        again = [t for t in store.trials(study.id) if t.purpose != "search"]
        counts = {len({r.context["round"] for r in store.readings(t.id)}) for t in again}
        assert [(t.purpose, t.status) for t in again] == [
            ("default", Status.LOST),
            ("final", Status.LOST),
            ("final", Status.LOST),
        ]
        assert min(counts) >= 2 and not any(r.discarded == "" for t in again for r in store.readings(t.id))
        assert not store.verdicts(study.id)
        values = {t.hash: [r.value for r in store.readings(t.id)] for t in again}
    spared = {**os.environ, "SPARED": "1", "AUTOTUNE_STORE": "study.db"}
    done = subprocess.run([sys.executable, "deadly.py"], cwd=tmp_path, env=spared, capture_output=True)
    assert done.returncode == 0, done.stderr
    with Store.open(tmp_path / "study.db") as store:
        ended = [t for t in store.trials(study.id) if t.purpose != "search" and t.status is Status.OK]
        for trial in ended:
            kept, more = values[trial.hash], [r.value for r in store.readings(trial.id)]
            assert kept == more[: len(kept)] and len(more) > len(kept)
        assert len(ended) == len(again) and len(store.verdicts(study.id)) == 1


def test_two_searches_at_once_share_a_study(tmp_path: Path) -> None:
    write_study(tmp_path)
    searches = [start(tmp_path, 60, "both"), start(tmp_path, 60, "both")]
    for search in searches:
        _, err = search.communicate(timeout=120)
        assert search.returncode == 0, err.decode()
    lines = (tmp_path / "ledger").read_text().splitlines()
    done = finished(tmp_path)
    assert len(done) >= 60
    counts = {line: lines.count(line) for line in set(lines)}
    readings_and_warmup = max(counts.values())
    assert readings_and_warmup <= 4, "a configuration was measured by both"
    assert set(counts) == set(done)
