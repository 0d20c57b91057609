"""How a program is run: what counts as its time."""

from __future__ import annotations

import os
import time
from pathlib import Path

from autotune.measure.program import run_program


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
