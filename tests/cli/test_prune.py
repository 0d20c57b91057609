"""What may be deleted, in words."""

from __future__ import annotations

from pathlib import Path

from autotune.cli.prune import command as prune
from tests.cli.calling import call
from tests.interop.exported import make_mixed


def test_where_there_is_no_replay_it_is_said(tmp_path: Path) -> None:
    """It had been said that something refers to all that the store has."""
    store = tmp_path / "mixed.db"
    make_mixed(store).close()
    for more in ([], ["--yes"]):
        done = call(prune, "--replays", "--store", store, *more)
        assert done.return_value == 0
        assert done.stdout == "the store has no replays or verifications\n"
