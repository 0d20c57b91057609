"""Groups of processes: what they are given, that they are kept, and how they end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from autotune.measure.groups.device import Device, quota_works
from autotune.measure.groups.failures import RankDied, RankSilent
from autotune.measure.groups.group import ProcessGroup
from autotune.measure.objective import Diverged, OutOfMemory, Signal, WrongAnswer
from autotune.measure.workers.descendants import descendants
from autotune.status import Status
from tests.measure.groups import functions as functions
from tests.processes import alive


@pytest.fixture(scope="module")
def pair() -> Iterator[ProcessGroup]:
    """One for all tests: what failed in one is made anew in the next."""
    with ProcessGroup([Device(), Device()], stall=3.0) as group:
        yield group
    assert not group.processes


def test_each_rank_knows_its_place_and_is_kept_from_call_to_call(pair: ProcessGroup) -> None:
    first = pair.run(functions.who, "a", 1).results
    assert [(r[0], r[1], r[4]) for r in first] == [(0, 2, ("a", 1)), (1, 2, ("a", 1))]
    assert pair.processes == {r[2] for r in first}
    again = pair.run(functions.who).results
    assert [r[2] for r in again] == [r[2] for r in first]
    assert [r[3] for r in again] == [r[3] + 1 for r in first]


def test_ranks_reach_one_another(pair: ProcessGroup) -> None:
    assert pair.run(functions.ring, 29310).results == (1, 1)


def test_cores_are_shared_out_or_as_asked() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    with ProcessGroup([Device(), Device(cores=(allowed[0],))]) as group:
        shared, asked = group.run(functions.cores).results
    assert set(shared) < set(allowed) or len(allowed) == 1
    assert asked == (allowed[0],)


FAULTS: dict[str, tuple[type[Signal], Status, str]] = {
    "kill": (RankDied, Status.CRASHED, "rank 1 died by SIGKILL in 'reduce' at step 2"),
    "exit": (RankDied, Status.CRASHED, "rank 1 exited with code 3 in 'reduce' at step 2"),
    "stop": (RankSilent, Status.TIMEOUT, "rank 1 is stopped (SIGSTOP)"),
    "raise": (RankDied, Status.CRASHED, "rank 1: ValueError: what is this?"),
    "diverge": (Diverged, Status.DIVERGED, "rank 1: the loss is nan"),
    "wrong": (WrongAnswer, Status.WRONG, "rank 1: not the sum"),
    "unpicklable": (RankDied, Status.CRASHED, "rank 1: "),
    "leave a child": (RankDied, Status.CRASHED, "with a child"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_a_rank_does_is_typed_and_the_group_is_made_anew(pair: ProcessGroup, fault: str) -> None:
    pair.run(functions.who)
    before = pair.processes
    kind, status, says = FAULTS[fault]
    with pytest.raises(kind) as ended:
        pair.run(functions.fault, fault)
    assert ended.value.status is status and says in str(ended.value)
    assert not pair.processes and not before & set(filter(alive, descendants(os.getpid())))


@pytest.mark.long
def test_details_of_a_failure_are_kept(pair: ProcessGroup) -> None:
    with pytest.raises(RankDied) as killed:
        pair.run(functions.fault, "kill")
    assert (killed.value.signal, killed.value.exit_code) == (9, None)
    with pytest.raises(WrongAnswer) as wrong:
        pair.run(functions.fault, "wrong")
    assert wrong.value.metrics == {"error": 0.5}
    with pytest.raises(WrongAnswer, match="not the sum") as beyond:
        pair.run(functions.fault, "wrong beyond words")
    assert beyond.value.metrics == {"error": 0.5}
    with pytest.raises(RankDied) as raised:
        pair.run(functions.fault, "raise")
    assert "groups/functions.py" in raised.value.stderr


@pytest.mark.long
def test_who_hangs_is_named_with_its_phase(pair: ProcessGroup) -> None:
    pair.run(functions.who)
    with pytest.raises(RankSilent, match=r"rank 1 gave no sign for .* s, in 'reduce' at step 2; rank 0 in"):
        pair.run(functions.fault, "hang")


def test_a_call_has_a_limit_even_if_all_show_signs_of_life(pair: ProcessGroup) -> None:
    pair.run(functions.who)
    with pytest.raises(RankSilent, match=r"rank 1 is the last after 2 s, in 'reduce' at step 2"):
        pair.run(functions.fault, "hang in a loop that lives", seconds=2.0)


def test_the_memory_cap_of_a_device_is_real() -> None:
    devices = [Device(), Device(memory=96 << 20)]
    with ProcessGroup(devices, stall=60.0) as group, pytest.raises(OutOfMemory, match="rank 1"):
        group.run(functions.fault, "eat memory")


def test_who_has_no_quota_has_a_whole_core(pair: ProcessGroup) -> None:
    assert pair.shares == (1.0, 1.0)
    with ProcessGroup([Device(cpu=0.25)]) as group:
        assert group.shares == (1.0,)  # before there is a rank that could be held to it


@pytest.mark.skipif(bool(quota_works()), reason=quota_works())
def test_a_quota_makes_a_rank_slow_and_is_undone() -> None:
    cores = (min(os.sched_getaffinity(0)),)
    with ProcessGroup([Device(cores=cores, cpu=0.25)]) as group:
        (share,) = group.run(functions.processor_share, 0.4).results
        quota = group._life.ranks[0].limits.quota  # type: ignore[union-attr]
        assert quota is not None and quota.is_dir()
        assert group.shares == (0.25,)
    assert share < 0.4
    assert not quota.exists()


def test_a_slow_rank_is_said(pair: ProcessGroup) -> None:
    ran = pair.run(functions.busy, 0.6)
    assert len(ran.slow) == 1 and ran.slow[0].startswith("rank 1 was busy for ")
    assert ran.facts == {"slow": list(ran.slow)}
    assert pair.run(functions.busy, 0.0).slow == ()


def test_a_rank_that_takes_long_to_import_what_it_calls_is_not_slow(tmp_path: Path) -> None:
    with ProcessGroup([Device(), Device()]) as group:
        ran = group.run(functions.given, functions.Late(str(tmp_path / "arrived"), 0.6))
    assert sorted(ran.results) == [0.0, 0.6]
    assert ran.slow == ()


def test_what_a_rank_could_not_find_is_refused(pair: ProcessGroup) -> None:
    for lost in (lambda rank: None, partial(functions.who)):
        with pytest.raises(TypeError, match="not a function of a module"):
            pair.run(lost)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pair.run(functions.who, lambda: None)


def test_a_child_that_a_rank_forks_gives_no_answer(pair: ProcessGroup) -> None:
    for number in (1, 2, 3):
        assert pair.run(functions.fork, number).results == (number, number)


def test_a_rank_that_closes_its_output_has_it_in_the_next_call(pair: ProcessGroup) -> None:
    assert pair.run(functions.close_output).results == (0, 1)
    assert pair.run(functions.say).results == (0, 1)
