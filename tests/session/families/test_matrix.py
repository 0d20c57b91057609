"""What the cross measurement of a family says."""

from __future__ import annotations

from pathlib import Path

import pytest

import autotune
from autotune.errors import InputError
from autotune.report.rules.rule import make_rule
from autotune.report.words.shapes import summarize_many
from autotune.session.families.result import ManyResult
from autotune.space.reading.reader import read_family
from autotune.store.store import Store

SPACE = """
autotune: 1
name: rows
objective: rows.py:rows
workloads: [{m: 8}, {m: 32}]
metrics: {rate: {goal: maximize}}
knobs: {tile: {values: [1, 4], default: 1}}
measure: {min_readings: 3, max_readings: 3, finalists: 1}
budget: {trials: 4}
"""


def searched(folder: Path, least: float) -> ManyResult:
    """``least``: what the default comes to for m 32; each other configuration comes to ten more."""
    space = folder / "space.yaml"
    space.write_text(SPACE)
    family = read_family(space)

    def rows(tile: int, m: int) -> float:
        return (10.0 if tile > 1 else 0.0) + (least if m == 32 else 30.0)

    return autotune.search_many(family, objective=rows, store=folder / "s.db")


def test_where_there_is_no_ratio_it_is_said_of_what(tmp_path: Path) -> None:
    searched(tmp_path, least=-2.0)
    with (
        Store.open(str(tmp_path / "s.db"), readonly=True) as store,
        pytest.raises(InputError, match=r"rate is -2 in rows#\d \(m 32\) with tile 1\n.*values above 0"),
    ):
        make_rule(store, store.study("rows"))


def test_the_table_says_which_way_its_ratios_are(tmp_path: Path) -> None:
    said = summarize_many(searched(tmp_path, least=10.0))
    assert "the best rate on each workload, over that of each winner:" in said
    [row] = [line for line in said.splitlines() if line.split()[:2] == ["m", "32"] and "2.000" in line]
    assert "1.000" in row
