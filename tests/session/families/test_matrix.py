"""What the cross measurement of a family says."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import autotune
from autotune.errors import InputError
from autotune.interop.archives.importing import import_archive
from autotune.interop.archives.writing import write_archive
from autotune.measure.readings import Sample
from autotune.report.rules.rule import make_rule
from autotune.report.words.shapes import summarize_many
from autotune.session.families.matrix import Matrix, family_of, load_matrix
from autotune.session.families.result import ManyResult
from autotune.space.configuration import Configuration
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
    with Store.open(str(tmp_path / "s.db"), readonly=True) as store:
        matrix = load_matrix(store, family_of(store, store.study("rows")))
    none = tuple(tuple(replace(cell, value=max(cell.value, 0.0)) for cell in row) for row in matrix.cells)
    with pytest.raises(InputError, match="rate is 0 in rows"):
        _ = replace(matrix, cells=none).losses


def test_the_table_says_which_way_its_ratios_are(tmp_path: Path) -> None:
    said = summarize_many(searched(tmp_path, least=10.0))
    assert "the best rate on each workload, over that of each winner (ratios of medians):" in said
    [row] = [line for line in said.splitlines() if line.split()[:2] == ["m", "32"] and "2.000" in line]
    assert "1.000" in row


def test_without_ratios_the_table_has_the_values_and_no_rule_is_offered(tmp_path: Path) -> None:
    """A row of nothing but ``-`` was shown, and a command that could only fail."""
    said = summarize_many(searched(tmp_path, least=-2.0))
    assert "rate of each winner on each workload (medians):" in said
    [row] = [line for line in said.splitlines() if line.split()[:2] == ["m", "32"] and "-2" in line]
    assert row.split()[2:] == ["-2", "8"]
    assert re.search(r"m 32 +8 .* better than the default by 10 \[10, 10\]", said)
    assert "autotune rule" not in said and "autotune best" in said


def test_a_winner_of_many_workloads_is_named_as_far_as_there_is_room(tmp_path: Path) -> None:
    result = searched(tmp_path, least=10.0)
    for number, said in [(1, " #1+#2"), (2000, " #2000+#2001"), (123_456, " #123456 +1")]:
        studies = tuple(replace(study, id=number + i) for i, study in enumerate(result.matrix.studies))
        text = summarize_many(replace(result, matrix=replace(result.matrix, studies=studies)))
        [heads] = [line for line in text.splitlines() if line.split()[:1] == ["default"]]
        assert heads.endswith(said)


class OftenWaiting(autotune.Objective):
    """A default whose readings wait for a core for half of their time, as all do beside other programs."""

    def measure(self, loaded: Configuration, rng: np.random.Generator) -> Sample:
        tile = float(loaded["tile"])  # type: ignore[arg-type]
        context = {"wall": 1.0, "cpu": 0.5, "own_wait": 0.5} if tile == 1 else {"wall": 1.0, "cpu": 1.0}
        return Sample({"rate": tile * (1.0 + 0.01 * float(rng.normal()))}, context)


def test_a_busy_machine_is_said_of_several_workloads_too(tmp_path: Path) -> None:
    """14.5 times as fast, within 9 to 23, was said without a word; alone it was 7.2 times."""
    space = tmp_path / "space.yaml"
    space.write_text(SPACE.replace("goal: maximize", "goal: maximize, unit: GB/s"))
    (tmp_path / "rows.py").write_text("")
    result = autotune.search_many(read_family(space), objective=OftenWaiting, store=tmp_path / "s.db")
    [said] = [line for line in summarize_many(result).splitlines() if line.startswith("remark")]
    assert "m 8: other programs had the core for 50% of the time or more" in said
    assert said.endswith("(and so for 1 other workload)")


def test_who_found_a_configuration_is_known_of_imported_studies_too(tmp_path: Path) -> None:
    """By their numbers where they were searched, which are those of other workloads here."""
    space = tmp_path / "space.yaml"
    space.write_text(SPACE.replace("[1, 4]", "[1, 8, 32]").replace("trials: 4", "trials: 6"))
    result = autotune.search_many(
        read_family(space), objective=lambda tile, m: 20.0 if tile == m else 10.0, store=tmp_path / "s.db"
    )
    assert found(result.matrix) == {8: {8}, 32: {32}, 1: set()}
    with Store.open(tmp_path / "s.db", readonly=True) as store:
        for place, study in enumerate(store.studies("rows")):
            write_archive(store, study, tmp_path / f"{place}.zip")
    import_archive(tmp_path / "1.zip", str(tmp_path / "other.db"))
    import_archive(tmp_path / "0.zip", str(tmp_path / "other.db"))
    with Store.open(tmp_path / "other.db", readonly=True) as store:
        assert found(load_matrix(store, family_of(store, store.study("rows")))) == found(result.matrix)


def found(matrix: Matrix) -> dict[object, set[object]]:
    """``{tile: sizes of the workloads whose search won with it}``."""
    columns = zip(matrix.configurations, matrix.found_by, strict=True)
    return {one["tile"]: {matrix.workloads[row]["m"] for row in rows} for one, rows in columns}
