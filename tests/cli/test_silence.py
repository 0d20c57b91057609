"""A word where something takes long, and none where it does not."""

from __future__ import annotations

import io
import signal
import sys
import time
from collections.abc import Callable

import pytest

from autotune.cli.silence import said_if_long


def until(came: Callable[[], object]) -> None:
    """Go on: handlers run between two steps of Python, on a busy machine some while after the timer has."""
    end = time.monotonic() + 60.0
    while not came():
        assert time.monotonic() < end, "no alarm came"


def test_what_takes_long_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    with said_if_long("counting", after=1e-3):
        until(lambda: stderr.getvalue().endswith("\n"))
    assert stderr.getvalue() == "counting\n"


def test_what_is_quick_is_not_said_and_leaves_nothing_behind(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(ZeroDivisionError), said_if_long("counting", after=100.0):
        raise ZeroDivisionError
    assert capsys.readouterr().err == "" and signal.getsignal(signal.SIGALRM) is before


def test_an_alarm_of_somebody_else_still_comes() -> None:
    came: list[int] = []
    handler = signal.signal(signal.SIGALRM, lambda number, frame: came.append(number))
    left, interval = signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with said_if_long("counting", after=100.0):
            assert signal.getitimer(signal.ITIMER_REAL)[0] > 1.0
        until(lambda: came)
        assert came == [signal.SIGALRM]
    finally:
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, left, interval)
