"""The trials of a study as reports read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.report.evidence import load_evidence
from tests.report.studies import Written


@pytest.mark.parametrize("names", [("time", "time.low", "time.n"), ("time.n", "time.low", "time")])
def test_what_an_objective_returns_beside_its_metrics_is_no_interval_of_theirs(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    """Two columns of one name had different lengths, and there was no report."""
    written = Written(tmp_path)
    written.trial({"tile": 1}, 2.0)
    written.trial({"tile": 2}, metrics={name: 2.0 if name == "time" else 7.0 for name in names})
    trials = load_evidence(written.store).all_trials
    columns = ["metric.time", "metric.time.low", "metric.time.n"]
    assert trials[columns].to_numpy().tolist()[1] == [2.0, 1.8, 3.0]
