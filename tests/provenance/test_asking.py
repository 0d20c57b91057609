"""A program that is asked answers, or is ended in time with all that it started."""

from __future__ import annotations

import signal
import subprocess
import time
from types import FrameType

import pytest

from autotune.provenance import asking


def test_what_it_says_comes_back_with_how_it_ended() -> None:
    done = asking.answer(asking.start(["sh", "-c", "echo out; echo err >&2; exit 3"]), 60.0)
    assert done is not None and (done.stdout, done.stderr, done.returncode) == ("out\n", "err\n", 3)
    both = asking.start(["sh", "-c", "echo \"$A\"; printf '\\377' >&2"], errors_too=True, env={"A": "set"})
    done = asking.answer(both, 60.0)
    assert done is not None and done.stdout == "set\n\ufffd"


@pytest.mark.parametrize("script", ["exec sleep 60", "sleep 60; echo done", "sleep 60 & wait"])
def test_nothing_that_it_started_is_waited_for(script: str) -> None:
    begun = time.monotonic()
    assert asking.answer(asking.start(["sh", "-c", script]), 0.2) is None
    assert time.monotonic() - begun < 30


def test_nothing_is_left_where_whoever_asks_is_interrupted() -> None:
    def interrupt(number: int, frame: FrameType | None) -> None:
        while frame is not None and frame.f_code is not subprocess.Popen.communicate.__code__:
            frame = frame.f_back
        if frame is not None:  # else it has not come to that yet: the timer goes on
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            raise KeyboardInterrupt

    process = asking.start(["sleep", "600"])
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            asking.answer(process, 600.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert process.poll() == -signal.SIGKILL


def test_what_is_not_there_cannot_be_asked() -> None:
    with pytest.raises(OSError, match="no-such-program"):
        asking.start(["/no-such-program"])
