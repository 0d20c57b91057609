"""Rows of a study in files that other programs read."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

import autotune
from autotune.cli.export import command
from autotune.cli.report import command as report
from autotune.errors import InputError, OutputError
from autotune.space.knobs import Choice
from autotune.space.space import Space
from autotune.store.reader import StoreReader
from tests.cli.conftest import autotune as run
from tests.interop.exported import MIXED, make, make_mixed, make_of
from tests.store.build import new_study


def test_t4_does_not_ask_for_the_readings_of_each_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 50,000 trials these were as many queries, half the time that it took."""
    make_mixed(tmp_path / "mixed.db").close()

    def refuse(*_: object) -> tuple[()]:
        raise AssertionError("a query a trial")

    monkeypatch.setattr(StoreReader, "readings", refuse)
    file = tmp_path / "trials.t4"
    done = CliRunner().invoke(
        command, ["--format", "t4", "--to", str(file), "--store", str(tmp_path / "mixed.db")]
    )
    assert done.exception is None, done.output
    assert any(result["times"]["runtimes"] for result in json.loads(file.read_text())["results"])


def test_trials_without_a_result_are_not_counted_as_written_to_t4(tmp_path: Path) -> None:
    """A lost trial had been counted, and was not in the file."""
    study = autotune.StudySpec(
        "t", Space([Choice("tile", (1, 2))]), metrics=(autotune.MetricSpec("time", goal="minimize"),)
    )
    with autotune.ask_tell(study, store=tmp_path / "mixed.db") as session:
        session.tell(session.ask(2)[0], time=1.0)
    file = tmp_path / "trials.t4"
    done = CliRunner().invoke(
        command, ["--format", "t4", "--to", str(file), "--store", str(tmp_path / "mixed.db"), "--json"]
    )
    assert json.loads(done.stdout)["trials"] == len(json.loads(file.read_text())["results"]) == 1


@pytest.mark.parametrize(
    ("named", "exported", "trials"),
    [([], "mixed#1", 2), (["mixed"], "mixed#1", 2), (["mixed#2"], "mixed#2", 0)],
)
def test_a_held_out_workload_is_exported_only_by_its_id(
    tmp_path: Path, named: list[str], exported: str, trials: int
) -> None:
    """It is mostly the newest study, and a file without any row was written."""
    with make_of(Space([Choice("tile", (1, 2))], []), tmp_path / "mixed.db") as store:
        store.create_study(new_study("mixed"))
    file, place = tmp_path / "trials.csv", tmp_path / "mixed.db"
    done = CliRunner().invoke(command, [*named, "--to", str(file), "--store", str(place)])
    assert done.exception is None, done.output
    assert done.output.startswith(f"{trials} trials of {exported} written")


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


def test_parquet_holds_numbers_of_more_than_64_bits_as_text(tmp_path: Path) -> None:
    """They ended in an OverflowError."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    make_of(Space([Choice("seed", (1 << 70, -1))], []), tmp_path / "seeds.db").close()
    file = tmp_path / "trials.parquet"
    done = CliRunner().invoke(command, ["--to", str(file), "--store", str(tmp_path / "seeds.db")])
    assert done.exception is None, done.output
    assert set(pandas.read_parquet(file)["knob.seed"]) == {str(1 << 70), "-1"}


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_a_time_has_all_its_digits(tmp_path: Path, form: str) -> None:
    """In JSON a kernel of 3.2 microseconds had five of them, and a counter of 1e-11 was 0."""
    pandas = pytest.importorskip("pandas")
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    value, file = 3.2123456789012345e-06, tmp_path / f"trials.{form}"
    make_of(MIXED, tmp_path / "mixed.db", value).close()
    done = CliRunner().invoke(command, ["--to", str(file), "--store", str(tmp_path / "mixed.db")])
    assert done.exception is None, done.output
    if form == "json":
        times = {row["metric.time"] for row in json.loads(file.read_text())}
    elif form == "csv":
        times = {float(text) for text in pandas.read_csv(file, dtype=str)["metric.time"]}
    else:
        times = set(pandas.read_parquet(file)["metric.time"])
    assert times == {value}


def test_json_has_nothing_that_is_no_json(tmp_path: Path) -> None:
    make(tmp_path / "made.db").close()  # with an interval without an end, and a failure without a metric
    file = tmp_path / "trials.json"
    done = CliRunner().invoke(command, ["--to", str(file), "--store", str(tmp_path / "made.db")])
    assert done.exception is None, done.output
    rows = {row["trial"]: row for row in json.loads(file.read_text(), parse_constant=pytest.fail)}
    assert rows[6]["metric.time"] is None and rows[7]["metric.time"] == 0.9
    assert rows[7]["metric.time.high"] is None
    assert isinstance(rows[1]["knob.tile"], int) and isinstance(rows[1]["knob.lr"], float)


EXPORT = ("export", "mixed", "--store", "mixed.db", "--to")
SLOW = "reading the trials and writing -: Ctrl-C ends it\n"
"""What it says as well where the machine is so slow that it takes seconds."""


def test_rows_of_a_named_study_go_through_a_pipe(tmp_path: Path) -> None:
    make_mixed(tmp_path / "mixed.db").close()
    for where in ("-", "/dev/stdout"):
        reading, writing = os.pipe()
        with os.fdopen(reading) as reader, os.fdopen(writing, "w") as writer:
            done = run(tmp_path, *EXPORT, where, "--format", "csv", to=writer.fileno())
            writer.close()
            assert done.returncode == 0, done.stderr
            assert reader.read().startswith("study,trial,status,")
    done = run(tmp_path, *EXPORT, "-", "--format", "json")
    assert {row["study"] for row in json.loads(done.stdout)} == {"mixed"}


def test_a_reader_that_leaves_is_no_failure_and_a_stdout_that_is_closed_is_one(tmp_path: Path) -> None:
    """As of any verb; here the one was an error and the other a traceback."""
    make_mixed(tmp_path / "mixed.db").close()
    gone, writing = os.pipe()
    os.close(gone)
    left = run(tmp_path, *EXPORT, "-", "--format", "csv", to=writing)
    os.close(writing)
    assert (left.returncode, left.stderr.removeprefix(SLOW)) == (0, "")
    verb = f"{sys.executable} -m autotune {' '.join(EXPORT)} - --format csv"
    closed = subprocess.run(
        f"{verb} >&-", shell=True, cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False
    )
    assert closed.returncode == 1
    assert closed.stderr.removeprefix(SLOW) == "autotune: the output: Bad file descriptor\n"


def test_rows_go_behind_what_stdout_has_already(tmp_path: Path) -> None:
    """It had been opened by its name, which emptied the file that it was sent to."""
    make_mixed(tmp_path / "mixed.db").close()
    with (tmp_path / "all.csv").open("w") as all_rows:
        all_rows.write("precious\n")
        all_rows.flush()
        for _ in range(2):
            assert run(tmp_path, *EXPORT, "-", "--format", "csv", to=all_rows.fileno()).returncode == 0
    lines = (tmp_path / "all.csv").read_text().splitlines()
    assert lines[0] == "precious" and sum(line.startswith("study,trial,status") for line in lines) == 2


@pytest.mark.parametrize("form", ["csv", "json", "t4", "archive", "optuna"])
def test_a_store_is_never_written_over(tmp_path: Path, form: str) -> None:
    file = tmp_path / "mixed.db"
    make_mixed(file).close()
    before = file.read_bytes()
    done = CliRunner().invoke(command, ["--format", form, "--to", str(file), "--store", str(file)])
    assert isinstance(done.exception, InputError)
    assert file.read_bytes() == before


def test_a_report_is_not_written_over_a_store(tmp_path: Path) -> None:
    file = tmp_path / "mixed.db"
    make_mixed(file).close()
    done = CliRunner().invoke(report, ["-o", str(file), "--store", str(file)])
    assert isinstance(done.exception, InputError)


@pytest.mark.parametrize(
    ("name", "content"), [("other.db", None), ("notes.log", "no journal\n"), ("notes.db", "no database")]
)
def test_what_optuna_cannot_write_to_is_said(tmp_path: Path, name: str, content: str | None) -> None:
    make_mixed(tmp_path / "mixed.db").close()
    if content is None:
        with closing(sqlite3.connect(tmp_path / name)) as other, other:
            other.execute("CREATE TABLE alembic_version (version_num TEXT)")
            other.execute("INSERT INTO alembic_version VALUES ('of something else')")
    else:
        (tmp_path / name).write_text(content)
    arguments = ["--format", "optuna", "--to", str(tmp_path / name), "--store", str(tmp_path / "mixed.db")]
    done = CliRunner().invoke(command, arguments)
    assert isinstance(done.exception, OutputError) and "Optuna cannot write to" in str(done.exception)


@pytest.mark.parametrize("form", ["csv", "json", "t4", "archive"])
def test_a_folder_that_is_missing_is_made(tmp_path: Path, form: str) -> None:
    """As for a report, a rule, a file of recipes and a store."""
    make_mixed(tmp_path / "mixed.db").close()
    file = tmp_path / "to hand on" / "größe" / "mixed.out"
    arguments = ["--format", form, "--to", str(file), "--store", str(tmp_path / "mixed.db")]
    done = CliRunner().invoke(command, arguments)
    assert done.exception is None and file.is_file()


def test_nowhere_is_no_place(tmp_path: Path) -> None:
    make_mixed(tmp_path / "mixed.db").close()
    done = CliRunner().invoke(command, ["--format", "csv", "--to", "", "--store", str(tmp_path / "mixed.db")])
    assert "--to is empty" in str(done.exception)


@pytest.mark.parametrize(
    ("where", "address"),
    [
        ("optuna.db", "sqlite:///optuna.db"),
        ("optuna.log", "optuna.log"),
        ("sqlite:///o.log", "sqlite:///o.log"),
    ],
)
def test_what_optunas_dashboard_is_told_to_open_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, address: str
) -> None:
    """It takes the path of a file for that of a journal."""
    pytest.importorskip("optuna")
    monkeypatch.chdir(tmp_path)
    make_mixed(tmp_path / "mixed.db").close()
    done = CliRunner().invoke(command, ["--format", "optuna", "--to", where, "--store", "mixed.db"])
    assert done.exception is None, done.output
    assert done.output.splitlines()[-1] == f"  next      optuna-dashboard {address}"
    assert Path(where.removeprefix("sqlite:///")).exists()
