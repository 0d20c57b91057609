"""Searches of two goals, and of one goal under a bound, on a made recording."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from benchmarks import several_metrics
from benchmarks.several_metrics import STRATEGIES, TPE, Search, run, searches
from tests.recordings import record


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """256 configurations of two knobs: what is quick to run is slow to compile; one in sixteen fails."""
    entries: list[dict[str, object]] = []
    for x, y in product(range(16), range(16)):
        time = "RuntimeFailedConfig" if x == 15 else 1.0 + abs(x - 5) + abs(y - 9)
        entries.append({"x": x, "y": y, "time": time, "compile_time": 1.0 + x + 2 * abs(y - 2)})
    return record(tmp_path / "convolution-made.json", {"x": range(16), "y": range(16)}, entries)


def test_optunas_tpe_is_a_peer_in_both_tables(made: Path) -> None:
    """Only NSGA-II had been, whose populations of 50 are too large for so few tries."""
    assert TPE in STRATEGIES
    assert {one.bounded for one in searches({"made": made}, 1) if one.strategy == TPE} == {True, False}


@pytest.mark.parametrize("bounded", [False, True])
def test_optunas_tpe_hears_of_both_metrics(
    made: Path, bounded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(several_metrics, "AFTER", (50,))  # as many tries say it
    found = run(Search(made, TPE, 0, bounded))
    assert len(found.figures) == 1
    if bounded:
        random = run(Search(made, "random", 0, bounded))
        assert found.wrong < random.wrong
        assert found.figures[-1] < 0.5
    else:
        assert found.figures[0] > 0.7
