"""Whatever happens to a rank in mid-trial: typed within seconds, nothing is left, and the search goes on."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from autotune.measure.groups.device import quota_works
from autotune.measure.ownership import PREFIX
from autotune.session.execution.workers import WorkerExecutor
from tests.faults.conftest import run, spec_of
from tests.objectives.training import importable

importable("distributed")

import testbed  # noqa: E402

REASON = testbed.unable() or quota_works()
pytestmark = pytest.mark.skipif(bool(REASON), reason=f"no links or quotas here: {REASON}")

Left = Callable[[], list[int]]

FAULTS = {
    "kill": ("crashed", "rank 1 died by SIGKILL in 'compute' at step 6"),
    "stop": ("timeout", "rank 1 is stopped (SIGSTOP)"),
    "hang": ("timeout", "rank 1 gave no sign"),
    "cut the link": ("timeout", "gave no sign"),
    "fill its memory": ("out-of-memory", "rank 1 was killed at the memory cap of its device, 128 MiB"),
    "die itself": ("crashed", "died by SIGKILL"),
}


def groups_of(owners: set[int]) -> set[str]:
    """The control groups of ranks that one of these processes started."""
    found = (path.name for path in Path("/sys/fs/cgroup").rglob("autotune-*-rank*"))
    return {name for name in found if int(name.split("-")[2]) in owners}


def folders_of(owners: set[int]) -> set[str]:
    """The temporary folders that one of these processes made."""
    found = (path.name for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-meeting-*"))
    return {name for name in found if int(name.split("-")[2]) in owners}


def namespaces_of(pids: list[int]) -> set[str]:
    found = set()
    for pid in pids:
        try:
            found.add(str(Path(f"/proc/{pid}/ns/net").readlink()))
        except OSError:
            continue
    return found


@pytest.mark.long
def test_a_fault_of_a_rank_ends_its_trial_alone(nothing_left: Left) -> None:
    owners: set[int] = set()
    here = str(Path("/proc/self/ns/net").readlink())
    spec = spec_of("grouped.py:Grouped", list(FAULTS), timeout=300)
    with closing(WorkerExecutor(spec, {"cores": 2})) as executor:
        assert run(executor, spec, ["none"])["none"].status == "ok"
        assert len(namespaces_of(nothing_left()) - {here}) == 2, "each rank is in a namespace of its own"
        for fault, (status, says) in FAULTS.items():
            owners.update(nothing_left())
            outcome = run(executor, spec, [fault])[fault]
            assert (outcome.status, outcome.phase) == (status, "measure"), outcome
            assert says in outcome.message, "it is the group that noticed, not the limit of the trial"
            assert namespaces_of(nothing_left()) <= {here}, fault
            assert groups_of(owners) == set(), fault
        assert run(executor, spec, ["none"])["none"].status == "ok"
    assert nothing_left() == []


def test_ranks_are_kept_from_trial_to_trial(nothing_left: Left) -> None:
    spec = spec_of("grouped.py:Grouped", [], timeout=300)
    with closing(WorkerExecutor(spec, {"cores": 2})) as executor:
        run(executor, spec, ["none"])
        first = set(nothing_left())
        run(executor, spec, ["none"])
        assert set(nothing_left()) == first
        assert folders_of(first)
    assert folders_of(first) == set(), "where the ranks met goes with their worker"
