"""The verbs that say what a study found, run as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

from autotune.cli import best, derive, importance, report, show, spend
from tests.cli.calling import call, document
from tests.cli.conftest import autotune
from tests.report.pages.reading_html import faults
from tests.report.studies import Written


def test_report_writes_a_file_named_after_the_study(folder: Path, tmp_path: Path) -> None:
    done = autotune(tmp_path, "report", "--store", str(folder / "study.db"))
    assert (done.returncode, done.stdout) == (0, "small-1.html\n")
    assert faults((tmp_path / "small-1.html").read_text()) == []


def test_the_study_is_named_as_for_other_verbs_too(folder: Path, tmp_path: Path) -> None:
    done = autotune(tmp_path, "report", "--study", "small#1", "--store", str(folder / "study.db"))
    assert done.returncode == 0 and done.stdout == "small-1.html\n"


def test_report_as_markdown_goes_to_stdout(folder: Path, tmp_path: Path) -> None:
    done = autotune(tmp_path, "report", "small#1", "--format", "md", "--store", str(folder / "study.db"))
    assert done.returncode == 0
    assert done.stdout.startswith("## small")
    assert list(tmp_path.iterdir()) == []


def test_the_ending_of_the_file_says_the_format(folder: Path, tmp_path: Path) -> None:
    done = autotune(tmp_path, "report", "-o", "a/b.md", "--store", str(folder / "study.db"), "--json")
    document = json.loads(done.stdout)
    assert document["format"] == "md"
    assert Path(document["file"]).read_text().startswith("## small")


def test_a_report_and_a_json_document_do_not_share_stdout(folder: Path, tmp_path: Path) -> None:
    done = autotune(tmp_path, "report", "-o", "-", "--store", str(folder / "study.db"), "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "leave --json out" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_study_that_is_not_there_is_said(folder: Path, tmp_path: Path) -> None:
    done = autotune(tmp_path, "report", "smal", "--store", str(folder / "study.db"))
    assert done.returncode == 2
    assert "small" in done.stderr


def test_a_place_that_cannot_be_written_is_said(folder: Path, tmp_path: Path) -> None:
    done = autotune(tmp_path, "report", "-o", str(tmp_path), "--store", str(folder / "study.db"))
    assert done.returncode == 1
    assert "cannot write" in done.stderr


def test_importance_says_that_there_are_too_few(folder: Path) -> None:
    done = autotune(folder, "importance", "--store", "study.db", "--json")
    document = json.loads(done.stdout)
    assert document["knobs"] == [] and "and 20 are needed" in document["remark"]


def test_spend_adds_up_to_the_wall_clock(folder: Path) -> None:
    document = json.loads(autotune(folder, "spend", "--store", "study.db", "--json").stdout)
    device = sum(part["seconds"] for part in document["parts"] if part["where"] == "device")
    assert abs(device - document["wall"]) < 0.01 * document["wall"] + 1e-6
    assert "of it" in autotune(folder, "spend", "--store", "study.db").stdout


def test_each_verb_names_the_study_in_json_in_the_same_way(tmp_path: Path) -> None:
    """Some had its label, ``gemm#1``, where others had its name and its id."""
    Written(tmp_path).trial({"tile": 1}, 1.0)
    where = ("--store", tmp_path / "written.db")
    for verb in (best, importance, show, spend):
        told = document(verb.command, "gemm", *where)
        assert (told["study"], told["study_id"]) == ("gemm", 1), verb.__name__
    told = document(best.command, "--front", *where)
    assert (told["study"], told["study_id"]) == ("gemm", 1)
    told = document(report.command, "-o", tmp_path / "r.html", *where)
    assert (told["study"], told["study_id"]) == ("gemm", 1)


def test_one_trial_and_none_are_counted_as_such(tmp_path: Path) -> None:
    """``1 trials`` was said, and that all 0 or 1 proposals follow."""
    written = Written(tmp_path)
    said = call(derive.command, "--store", tmp_path / "written.db").stdout
    assert said.startswith("gemm#1: it has no proposal that could be derived")
    written.trial({"tile": 1}, 1.0)
    assert "gemm#1: 1 trial in " in call(spend.command, "--store", tmp_path / "written.db").stdout


def test_a_replay_is_called_one_by_each_verb(tmp_path: Path) -> None:
    Written(tmp_path, replayed=True).trial({"tile": 1}, 1.0, phases={"measure": 3.0})
    for verb in ("spend", "importance"):
        assert "REPLAYED" in autotune(tmp_path, verb, "--store", "written.db").stdout
        done = autotune(tmp_path, verb, "--store", "written.db", "--json")
        assert json.loads(done.stdout)["replayed"] is True
