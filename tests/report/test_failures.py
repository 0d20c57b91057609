"""Failures are counted, and told by the knob that they hang on."""

from __future__ import annotations

from pathlib import Path

from autotune.report.evidence import load_evidence
from autotune.report.failures import failure_map, failures
from autotune.status import Status
from tests.report.studies import Written


def searched(folder: Path) -> Written:
    written = Written(folder)
    for n in range(60):
        tile, layout = (1, 2, 4, 8, 16)[n % 5], ("row", "column")[n % 2]
        failed = tile == 16
        status = Status.OUT_OF_MEMORY if failed else Status.OK
        written.trial(
            {"tile": tile, "layout": layout, "n": n}, None if failed else 1.0, status, message=f"no {n}"
        )
    written.trial({"tile": 1, "n": 61}, status=Status.CRASHED)
    return written


def test_kinds_come_with_their_first_message(tmp_path: Path) -> None:
    frame = failures(load_evidence(searched(tmp_path).store))
    assert frame["status"].tolist() == ["out-of-memory", "crashed"]
    assert frame["trials"].tolist() == [12, 1]
    assert frame.loc[0, "first"] == 4 and frame.loc[0, "message"] == "no 4"


def test_the_knob_that_decides_tells_most(tmp_path: Path) -> None:
    frame = failure_map(load_evidence(searched(tmp_path).store))
    assert frame["knob"].iloc[0] == "tile"
    cell = frame[(frame["knob"] == "tile") & (frame["value"] == "16")].iloc[0]
    assert (cell["trials"], cell["failed"], cell["share"], cell["status"]) == (12, 12, 1.0, "out-of-memory")
    assert frame[frame["knob"] == "layout"]["tells"].max() < 0.05


def test_no_trial_no_failure(tmp_path: Path) -> None:
    evidence = load_evidence(Written(tmp_path).store)
    assert failures(evidence).empty and failure_map(evidence).empty
