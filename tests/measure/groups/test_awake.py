"""Cores that are kept awake: by whom, when, and that nobody else loses by it."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import psutil
import pytest

from autotune.measure.groups.awake import KeptAwake
from autotune.measure.groups.device import Device, quota_works
from autotune.measure.groups.group import ProcessGroup
from tests.measure.groups import functions as functions

CORE = min(os.sched_getaffinity(0))

pytestmark = pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="no class of idle processes here")


def test_one_runs_while_it_is_entered_and_asks_for_nothing() -> None:
    keeper = KeptAwake([CORE])
    (pid,) = keeper.processes
    with keeper:
        assert os.sched_getscheduler(pid) == os.SCHED_IDLE
        assert os.sched_getaffinity(pid) == {CORE}
        assert _waited(pid, os.WSTOPPED | os.WNOHANG) is None
    assert _waited(pid, os.WSTOPPED) == os.CLD_STOPPED
    with keeper:
        assert _waited(pid, os.WCONTINUED) == os.CLD_CONTINUED
    keeper.close()
    assert not Path(f"/proc/{pid}").exists()


def test_a_stopped_one_ends_too_and_a_dead_one_does_no_harm() -> None:
    stopped, killed = KeptAwake([CORE]), KeptAwake([CORE])
    with stopped:
        pass
    os.kill(*killed.processes, 9)  # as one that may not step back so far ends
    with killed:
        pass
    for keeper in (stopped, killed):
        keeper.close()
        assert not any(Path(f"/proc/{pid}").exists() for pid in keeper.processes)


def test_where_only_some_can_be_started_none_goes_on() -> None:
    """Those that had begun ran until the worker ended, and took what it left of their cores."""
    before = psutil.Process().children()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = [os.open(os.devnull, os.O_RDONLY) for _ in range(6)]
    for descriptor in free:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(free), hard))  # five, as one needs while it starts
    try:
        with pytest.raises(OSError, match="Too many open files"):
            KeptAwake([CORE, CORE + 1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert psutil.Process().children() == before


@pytest.mark.skipif(bool(quota_works()), reason=quota_works())
def test_a_group_with_quotas_keeps_its_cores_awake_and_one_without_does_not() -> None:
    with ProcessGroup([Device(cores=(CORE,), cpu=0.25), Device()]) as group:
        group.run(functions.who)
        assert group._life is not None
        version_1 = group._life.ranks[0].limits.yields_to_idle
        assert group.facts.get("kept_awake") == ([CORE] if version_1 else None)
        assert len(group.processes) == 2 + version_1
        processes = group.processes
    assert not any(Path(f"/proc/{pid}").exists() for pid in processes)


def _waited(pid: int, options: int) -> int | None:
    """Which change of state the kernel tells of next."""
    found = os.waitid(os.P_PID, pid, options)
    return found.si_code if found else None
