"""Rows of a study in files that other programs read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from autotune.cli.export import command
from tests.interop.exported import make_mixed


def test_parquet_holds_a_knob_of_several_kinds_as_json(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    make_mixed(tmp_path / "mixed.db").close()
    file = tmp_path / "trials.parquet"
    done = CliRunner().invoke(command, ["--to", str(file), "--store", str(tmp_path / "mixed.db")])
    assert done.exception is None, done.output
    frame = pandas.read_parquet(file)
    lists = json.dumps("[1, 2]")  # which is text in the other forms too
    assert {'"row"', lists, "true", "1.5"} <= set(frame["knob.layout"])
    assert set(frame["knob.tile"]) == {1.0, 2.5}
