"""Ctrl-C: once ends the search cleanly with its winner defended, twice ends it at once; nothing is lost."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from tests.faults.searching import (
    OBJECTIVE,
    finished,
    integrity,
    start,
    wait_for_readings,
    wait_until_gone,
    write_study,
)


def test_once_ends_with_the_best_so_far_measured_again(tmp_path: Path) -> None:
    write_study(tmp_path, finalists=2)
    search = start(tmp_path, 100_000, "once")
    wait_for_readings(search, tmp_path / "ledger", 12)
    os.kill(search.pid, signal.SIGINT)
    out, err = search.communicate(timeout=120)
    assert search.returncode == 130, err.decode()
    result = json.loads(out)
    assert result["defended"] and result["reason"] == "interrupted" and result["configuration"]
    assert "Traceback" not in err.decode()
    assert wait_until_gone("once") == []
    assert len(finished(tmp_path)) >= 2 and integrity(tmp_path) == "ok"


def test_twice_ends_at_once_and_loses_nothing(tmp_path: Path) -> None:
    write_study(tmp_path, finalists=2)
    held = f"    if os.path.exists({str(tmp_path / 'held')!r}):\n        signal.pause()\n    return"
    (tmp_path / "objective.py").write_text(f"import signal{OBJECTIVE.replace('    return', held)}")
    search = start(tmp_path, 100_000, "twice")
    wait_for_readings(search, tmp_path / "ledger", 12)
    before = finished(tmp_path)
    (tmp_path / "held").touch()  # else the finale may be over before it is interrupted
    os.kill(search.pid, signal.SIGINT)
    assert search.stderr is not None
    while b"interrupted" not in search.stderr.readline():
        assert search.poll() is None
    os.kill(search.pid, signal.SIGINT)
    out, _ = search.communicate(timeout=60)
    assert search.returncode == 130
    assert not json.loads(out)["defended"]
    assert wait_until_gone("twice") == []
    assert before.items() <= finished(tmp_path).items() and integrity(tmp_path) == "ok"
