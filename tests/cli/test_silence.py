"""A word where something takes long, and none where it does not."""

from __future__ import annotations

import io
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from autotune.cli import silence
from autotune.cli.silence import said_if_long
from autotune.cli.verbs import cli


def until(came: Callable[[], object]) -> None:
    """Go on: handlers run between two steps of Python, on a busy machine some while after the timer has."""
    end = time.monotonic() + 60.0
    while not came():
        assert time.monotonic() < end, "no alarm came"


def test_what_takes_long_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(silence, "LONG", 1e-3)
    with said_if_long("counting"):
        until(lambda: stderr.getvalue().endswith("\n"))
    assert stderr.getvalue() == "counting\n"


def test_what_is_quick_is_not_said_and_leaves_nothing_behind(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silence, "LONG", 100.0)
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(ZeroDivisionError), said_if_long("counting"):
        raise ZeroDivisionError
    assert capsys.readouterr().err == "" and signal.getsignal(signal.SIGALRM) is before


def test_an_alarm_of_somebody_else_still_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "LONG", 100.0)
    came: list[int] = []
    handler = signal.signal(signal.SIGALRM, lambda number, frame: came.append(number))
    left, interval = signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with said_if_long("counting"):
            assert signal.getitimer(signal.ITIMER_REAL)[0] > 1.0
        until(lambda: came)
        assert came == [signal.SIGALRM]
    finally:
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, left, interval)


WORK = [
    ("check {of}/space.yaml", "reading the space"),
    ("derive", "asking the strategy"),
    ("diff small:0 small:1", "reading what was measured"),
    ("export --to {to}/rows.csv", "reading the trials and writing"),
    ("export --to {to}/small.zip", "reading the trials and writing"),
    ("importance", "a forest learns"),
    ("prune", "looking for what refers"),
    ("report -o {to}/small.html", "drawing what they say"),
    ("spend", "reading the trials"),
    ("why small:3", "all that was known"),
]


@pytest.mark.parametrize(("words", "said"), WORK)
def test_verbs_that_read_a_whole_study_say_so_once_it_takes_long(
    words: str, said: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silence, "LONG", 1e-4)
    arguments = [*words.format(to=tmp_path, of=folder).split(), "--store", str(folder / "study.db")]
    assert said in CliRunner().invoke(cli, arguments, standalone_mode=False).stderr
    done = CliRunner().invoke(cli, [*arguments, "--json"], standalone_mode=False)
    assert done.exception is None and done.stderr == ""
