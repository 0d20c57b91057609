"""What is left behind where a group's ranks cannot be started: nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.measure.groups import life
from autotune.measure.groups.device import Device, DeviceLimits
from autotune.measure.groups.network import Loopback


def test_a_group_whose_memory_cannot_be_shared_keeps_no_descriptor() -> None:
    """That of the memory stayed open."""
    before = set(Path("/proc/self/fd").iterdir())
    with pytest.raises(ValueError, match="empty"):
        life.GroupLife((), Loopback(), {}, (), "test")
    assert set(Path("/proc/self/fd").iterdir()) == before


class Limits(DeviceLimits):
    removed = 0

    def remove(self) -> bool:
        Limits.removed += 1
        return True


def refuse(*arguments: object) -> None:
    raise OSError("no more processes")


def test_the_limits_of_a_rank_that_was_not_born_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "make_limits", lambda device, name: Limits(None, None, ()))
    monkeypatch.setattr(life, "RankProcess", refuse)
    with pytest.raises(OSError, match="no more processes"):
        life.GroupLife([Device(), Device()], Loopback(), {}, (), "test")
    assert Limits.removed == 1
