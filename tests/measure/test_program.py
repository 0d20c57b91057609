"""How a program is run: what counts as its time, and how it is ended."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from autotune.measure.program import run_program
from tests.processes import alive


class Busy:
    """Whenever it is called it takes as long as all has taken so far."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.called = 0.0
        """When it was called last, in seconds since it was made."""
        self._read, self._write = os.pipe()

    def fileno(self) -> int:
        return self._read

    def timeout(self) -> float | None:
        return None

    def attend(self) -> None:
        self.called = time.perf_counter() - self.began
        while time.perf_counter() - self.began < 2 * self.called:
            pass

    def close(self) -> None:
        os.close(self._read)
        os.close(self._write)


def test_what_is_done_once_a_program_has_ended_is_none_of_its_time(tmp_path: Path) -> None:
    """The last messages of a training, say: to take them had counted for its wall clock."""
    busy = Busy()
    ended = run_program(["true"], tmp_path, os.environ, attendant=busy)
    busy.close()
    assert ended.succeeded and 0.0 < ended.seconds <= busy.called


class EnoughError(Exception):
    """Raised while a program runs."""


class Ending:
    """Ends a program once it has made a file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._read, self._write = os.pipe()

    def fileno(self) -> int:
        return self._read

    def timeout(self) -> float | None:
        return 0.005

    def attend(self) -> None:
        if self.file.exists():
            os.close(self._read)
            os.close(self._write)
            raise EnoughError


CLEANS_UP = "trap 'yes | head -c 200000; rm lock; exit 1' TERM; touch lock; sleep 1000 & wait"
"""What it says meanwhile is more than a pipe holds."""


@pytest.mark.parametrize("grace", [60.0, 0.0])
def test_what_a_program_does_when_it_is_asked_to_end(tmp_path: Path, grace: float) -> None:
    attendant = Ending(tmp_path / "lock")
    with pytest.raises(EnoughError):
        run_program(["sh", "-c", CLEANS_UP], tmp_path, os.environ, attendant=attendant, grace=grace)
    assert attendant.file.exists() == (not grace)


def test_a_program_that_does_not_end_is_killed_with_what_it_started(tmp_path: Path) -> None:
    deaf = "trap '' TERM; sleep 1000 & echo $! > pid; touch lock; wait"
    with pytest.raises(EnoughError):
        run_program(["sh", "-c", deaf], tmp_path, os.environ, attendant=Ending(tmp_path / "lock"), grace=0.05)
    pid = (tmp_path / "pid").read_text().strip()
    while alive(int(pid)):
        pass
