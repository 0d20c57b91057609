"""Who is to blame when a group of ranks fails."""

from __future__ import annotations

import os
import signal

import pytest

from autotune.measure.groups.board import Beat, Board
from autotune.measure.groups.failures import RankState, slow_ranks, verdict
from autotune.measure.groups.messages import Call, Raised
from autotune.measure.objective import Infeasible, Lost
from autotune.status import Status


def state(rank: int, phase: str = "compute", step: int = 1, at: float = 0.0, **more: object) -> RankState:
    return RankState(rank, Beat(at, step, phase), **more)  # type: ignore[arg-type]


LOST_PEER = Raised("crashed", "ConnectionError: the peer is gone", at=2.0)


@pytest.mark.parametrize(
    "ranks, status, says",
    [
        # A kill at the memory cap explains a dead rank, a dead rank explains a lost peer.
        (
            [state(0, raised=LOST_PEER), state(1, exit_code=-9, memory_kills=1, cap=1 << 27)],
            Status.OUT_OF_MEMORY,
            "rank 1 was killed at the memory cap of its device, 128 MiB",
        ),
        ([state(0, exit_code=1), state(1, exit_code=-11)], Status.CRASHED, "rank 1 died by SIGSEGV"),
        ([state(0, exit_code=0), state(1, exit_code=-9)], Status.CRASHED, "rank 1 died by SIGKILL"),
        ([state(0, raised=LOST_PEER), state(1, exit_code=3)], Status.CRASHED, "rank 1 exited with code 3"),
        (
            [state(0, raised=LOST_PEER), state(1, raised=Raised("diverged", "loss is nan", at=1.0))],
            Status.DIVERGED,
            "rank 1: loss is nan",
        ),
        (
            [state(0, "communicate", 3), state(1, "compute", 4), state(2, "communicate", 3)],
            Status.TIMEOUT,
            "rank 1 gave no sign for 9.0 s, in 'compute' at step 4; rank 0 in 'communicate' at step 3",
        ),
        ([state(0, "wait", 3), state(1, "wait", 2)], Status.TIMEOUT, "rank 1 gave no sign"),
        ([state(0, at=5.0), state(1, at=2.0)], Status.TIMEOUT, "rank 1 gave no sign for 7.0 s"),
        ([state(0, step=1), state(1, step=5, stopped=True)], Status.TIMEOUT, "rank 1 is stopped (SIGSTOP)"),
        ([state(0, finished=True), state(1, step=9)], Status.TIMEOUT, "rank 1 gave no sign"),
        # A sign of life that came after the clock was read: it had been silent for -0.0 s.
        ([state(0, finished=True), state(1, at=9.01)], Status.TIMEOUT, "rank 1 gave no sign for 0.0 s"),
    ],
)
def test_the_first_cause_that_explains_the_others_counts(
    ranks: list[RankState], status: Status, says: str
) -> None:
    found = verdict(ranks, now=9.0)
    assert found.status is status and says in str(found)


@pytest.mark.parametrize(("code", "ended"), [(3, (3, None)), (0, (0, None)), (-11, (None, 11))])
def test_how_a_rank_ended_stands_in_the_outcome(code: int, ended: tuple[int | None, int | None]) -> None:
    found = verdict([state(0), state(1, exit_code=code)], now=9.0)
    assert (found.exit_code, found.signal) == ended


def test_other_ends_of_a_call() -> None:
    assert "rank 0 is the last after 3 s" in str(verdict([state(0)], 9.0, overdue=3.0))
    refused = verdict([state(0, raised=Raised("infeasible", "no such thing", at=1.0))], 9.0)
    assert isinstance(refused, Infeasible)
    assert isinstance(verdict([state(0, raised=Raised("lost", "away", at=1.0))], 9.0), Lost)


def test_who_is_slow_is_judged_by_the_others() -> None:
    assert slow_ranks([1.0, 1.1, 1.2]) == ()
    assert slow_ranks([1.0, 1.1, 2.0]) == ("rank 2 was busy for 2 s, the others for 1.1 s",)
    assert slow_ranks([2.0, 1.0, 1.1]) == ("rank 0 was busy for 2 s, the others for 1.1 s",)
    assert slow_ranks([0.001, 0.01]) == slow_ranks([0.03, 0.06]) == (), "a difference that nobody feels"
    assert slow_ranks([5.0]) == ()


def test_signs_of_life_are_read_as_they_were_written() -> None:
    with Board.make(3) as memory:
        writer, reader = Board(memory.fileno(), 3), Board(memory.fileno(), 3)
    at = writer.write(1, 7, "é" * 60)
    beat = reader.read(1)
    assert (beat.at, beat.step) == (at, 7) and beat.phase.startswith("é" * 24)
    assert reader.read(2) == Beat(0.0, 0, "")


def test_a_function_is_found_by_its_module_and_file() -> None:
    call = Call.of(verdict, (1,))
    assert call.find() is verdict
    assert call.module == "autotune.measure.groups.failures" and call.file.endswith("groups/failures.py")


def test_a_slot_is_never_seen_half_written() -> None:
    with Board.make(1) as memory:
        board = Board(memory.fileno(), 1)
    board.write(0, 1, "phase")
    writer = os.fork()
    if writer == 0:
        while True:
            board.write(0, 1, "phase")
    try:
        seen = [board.read(0) for _ in range(20_000)]
    finally:
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
    assert {beat.phase for beat in seen} == {"phase"} and min(beat.at for beat in seen) > 0
