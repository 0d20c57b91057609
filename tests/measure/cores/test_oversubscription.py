"""How many threads of a program are ready to run: real processes, counted while they run."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Set
from contextlib import contextmanager

import pytest

from autotune.measure.cores import oversubscription
from autotune.measure.cores.oversubscription import (
    FEWEST_LOOKS,
    LONGEST_SECONDS,
    MOST_LOOKS,
    ReadyThreads,
    ready_by_process,
)
from autotune.measure.facts import READY_THREADS

ALL = frozenset(range(os.cpu_count() or 1))

SPIN = "(n=0; while [ ! -e enough ] && [ $n -lt 20000000 ]; do n=$((n + 1)); done) & "
"""Busy until it has been seen, or for half a minute: what is left of a test that fails ends by itself."""


@contextmanager
def running(script: str) -> Iterator[int]:
    process = subprocess.Popen(["sh", "-c", script], start_new_session=True, stdin=subprocess.PIPE)
    try:
        yield process.pid
    finally:
        os.killpg(process.pid, 9)
        process.wait()


def settle(pid: int, wanted: int, cores: Set[int] = ALL, below: int = 0) -> int:
    """The count as soon as it is as wanted: a process needs a moment to become what it is to be."""
    deadline = time.monotonic() + 30
    while (
        found := sum(ready_by_process(pid, cores, below).values())
    ) != wanted and time.monotonic() < deadline:
        os.sched_yield()
    return found


def test_what_waits_needs_no_core_and_children_count() -> None:
    with running("read wait") as waiting:
        assert settle(waiting, 0) == 0
    with running(f"{SPIN} {SPIN} {SPIN} read wait") as busy:
        assert settle(busy, 3) == 3


def test_threads_that_chose_other_cores_do_not_wait_for_these() -> None:
    usual = os.sched_getaffinity(0)
    if len(usual) < 2:
        pytest.skip("there are no other cores")
    with running(f"{SPIN} {SPIN} read wait") as busy:
        assert settle(busy, 2) == 2
        assert not any(ready_by_process(busy, {min(usual)}).values())


def test_generations_that_are_not_the_programs_own_do_not_count() -> None:
    with running(f"{SPIN} {SPIN} wait") as busy:
        assert [settle(busy, wanted, below=below) for below, wanted in enumerate((2, 2, 0, 0))] == [
            2,
            2,
            0,
            0,
        ]


def test_a_process_that_is_gone_has_none() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert not any(ready_by_process(gone.pid, {0}).values())


def said_of(looks: list[dict[int, int]], cores: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """What is said of a trial on so many cores that was seen with these ready threads by process."""
    monkeypatch.setattr(oversubscription, "ready_by_process", lambda *_: looks.pop(0))
    monkeypatch.setattr(ReadyThreads, "timeout", lambda self: 0.0)  # it is never early
    seen = ReadyThreads(range(cores))
    while looks:
        seen.look(1)
    return int(str(seen.facts.get(READY_THREADS, 0)))


def said(counts: list[int], cores: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """The same of a single process."""
    return said_of([{1: count} for count in counts], cores, monkeypatch)


def test_what_was_ready_most_of_the_time_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said([1, 4, 4, 4, 4], 1, monkeypatch) == 4
    assert said([2, 2, 1, 1, 1, 1], 1, monkeypatch) == 0, "its beginning was taken for the whole"
    assert said([4, 4, 4, 4, 4], 4, monkeypatch) == 0
    assert said([4] * (FEWEST_LOOKS - 1), 1, monkeypatch) == 0, "too short to be judged"


def test_what_a_shell_starts_and_waits_for_is_not_added_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyenv's ``python`` is such a shell: for a tenth of a second it starts one process after the other."""
    assert said_of([{1: 1, child: 1} for child in range(2, 9)], 1, monkeypatch) == 0
    assert said_of([{1: 1, 2: 1}] * 6, 1, monkeypatch) == 2, "both last"
    assert said_of([{1: 0, child: 4} for child in range(2, 9)], 1, monkeypatch) == 4, "a short program"


def test_it_looks_at_growing_intervals_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(oversubscription.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(oversubscription, "ready_by_process", lambda *_: {1: 1})
    waited = []
    watching = ReadyThreads((0,))
    while (seconds := watching.timeout()) is not None:
        waited.append(seconds)
        watching.look(1)  # too early: nothing is counted
        now[0] += seconds
        watching.look(1)
    assert len(waited) == MOST_LOOKS and waited == pytest.approx(sorted(waited))
    assert sum(waited[:FEWEST_LOOKS]) < 0.06 and 4 < sum(waited) < 6
    assert max(waited) == pytest.approx(LONGEST_SECONDS)
