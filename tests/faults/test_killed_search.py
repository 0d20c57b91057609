"""kill -9 of a whole search at random moments: nothing finished is lost, nothing is measured twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from pathlib import Path

import pytest

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
