"""How many threads of a program are ready to run: real processes, counted while they run."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from autotune.measure import command, crowd
from autotune.measure.command import CommandRunner
from autotune.measure.crowd import FEWEST_LOOKS, MOST_LOOKS, Crowd, ready_threads
from autotune.measure.objective import Context
from autotune.measure.outcome import READY_THREADS
from autotune.measure.readings import Sample
from autotune.space.configuration import Configuration
from autotune.space.spec import CommandObjective, MetricSpec

SPIN = 'timeout --foreground 60 yes >/dev/null & spinning="$spinning $!"; '
UNTIL_ENOUGH = "while [ ! -e enough ]; do sleep 0.01; done; kill $spinning"


@contextmanager
def running(script: str) -> Iterator[int]:
    process = subprocess.Popen(["sh", "-c", script], start_new_session=True, stdin=subprocess.PIPE)
    try:
        yield process.pid
    finally:
        os.killpg(process.pid, 9)
        process.wait()


def settle(pid: int, wanted: int) -> int:
    """The count as soon as it is as wanted: a process needs a moment to become what it is to be."""
    deadline = time.monotonic() + 30
    while (found := ready_threads(pid)) != wanted and time.monotonic() < deadline:
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
        os.sched_setaffinity(0, {min(usual)})
        try:
            assert ready_threads(busy) == 0
        finally:
            os.sched_setaffinity(0, usual)


def test_a_process_that_is_gone_has_none() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert ready_threads(gone.pid) == 0


def looked(counts: list[int], monkeypatch: pytest.MonkeyPatch) -> Crowd:
    """A crowd that has seen ``counts``; it is never early."""
    monkeypatch.setattr(crowd, "ready_threads", lambda _: counts.pop(0))
    monkeypatch.setattr(Crowd, "timeout", lambda self: 0.0)
    seen = Crowd()
    while counts:
        seen.look(1)
    return seen


def test_what_was_ready_most_of_the_time_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked([1, 4, 4, 4, 4], monkeypatch).beyond(1) == 4
    assert looked([2, 2, 1, 1, 1, 1], monkeypatch).beyond(1) == 0, "its beginning was taken for the whole"
    assert looked([4, 4, 4, 4, 4], monkeypatch).beyond(4) == 0
    assert looked([4] * (FEWEST_LOOKS - 1), monkeypatch).beyond(1) == 0, "too short to be judged"


def test_it_looks_at_growing_intervals_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(crowd.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(crowd, "ready_threads", lambda _: 1)
    waited = []
    watching = Crowd()
    while (seconds := watching.timeout()) is not None:
        waited.append(seconds)
        watching.look(1)  # too early: nothing is counted
        now[0] += seconds
        watching.look(1)
    assert len(waited) == MOST_LOOKS and waited == sorted(waited)
    assert sum(waited[:FEWEST_LOOKS]) < 0.06 and 4 < sum(waited) < 6


@pytest.mark.parametrize(("spinning", "said"), [(2, {READY_THREADS: 2}), (1, {})])
def test_a_command_with_more_threads_than_cores_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spinning: int, said: dict[str, int]
) -> None:
    class Enough(Crowd):
        """Lets the program end once it has been seen as it is."""

        seen = 0

        def look(self, pid: int) -> None:
            if self.timeout() == 0.0:
                self.seen += settle(pid, spinning) == spinning
            super().look(pid)
            if self.seen >= FEWEST_LOOKS + 4 or self.timeout() is None:
                (tmp_path / "enough").touch()

    monkeypatch.setattr(command, "Crowd", Enough)
    monkeypatch.setattr(command, "cores_kept_from", lambda: 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    spec = CommandObjective(("sh", "-c", SPIN * spinning + UNTIL_ENOUGH), tmp_path, metrics_from="wall")
    runner = CommandRunner(spec, Context({}, {}, tmp_path / "cache"), (MetricSpec("time", "minimize", "s"),))
    loaded = runner.load(runner.prepare(Configuration({})))
    first = runner.measure(loaded, np.random.default_rng(0))
    assert (dict(first.facts) if isinstance(first, Sample) else {}) == said
    second = runner.measure(loaded, np.random.default_rng(0))
    assert not isinstance(second, Sample), "one look at a configuration is enough"
