"""The peaks of a GPU, as the processes of a session hand them on."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.measure.gpu.peaks import read_peaks, write_peaks
from autotune.measure.kernels.roofline import Peaks


def test_what_is_written_is_read(tmp_path: Path) -> None:
    peaks = Peaks(4.1e12, {"float32": 5.2e13, "bfloat16": 7.9e14})
    write_peaks(tmp_path / "peaks.json", peaks)
    assert read_peaks(tmp_path / "peaks.json") == peaks


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "7",
        '{"bandwidth": 1e12}',
        '{"bandwidth": null, "operations": {}}',
        '{"bandwidth": "fast", "operations": {}}',
        '{"bandwidth": 1e12, "operations": [1]}',
        '{"bandwidth": 1e12, "operations": {"float32": []}}',
    ],
)
def test_of_a_damaged_or_missing_file_nothing_is_known(tmp_path: Path, text: str) -> None:
    file = tmp_path / "peaks.json"
    assert read_peaks(file) is None
    file.write_text(text)
    assert read_peaks(file) is None
