"""A study in MLflow: MLflow's own client reads it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from autotune.errors import InputError, OutputError
from autotune.interop.exports.mlflow import TRIES, _name, _told_apart, address_of, export_study
from autotune.space.knobs import Choice, OrderedValues
from autotune.space.space import Space
from tests.interop.exported import make, make_of


def test_mlflow_reads_it(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
    store = make(tmp_path / "study.db")
    address = f"sqlite:///{tmp_path}/mlflow.db"
    name, trials = export_study(store, store.study(), address)
    assert trials == 8
    client = mlflow.MlflowClient(tracking_uri=address)
    experiment = client.get_experiment_by_name(name)
    runs = client.search_runs([experiment.experiment_id], order_by=["metrics.time ASC"])
    assert len(runs) == 8
    best = runs[0]
    assert best.info.run_name == "trial 00005" and best.info.status == "FINISHED"
    assert best.data.params["order"] == '["j", "i"]' and best.data.params["tile"] == "4"
    assert best.data.metrics["time"] == pytest.approx(1 / 6)
    failed = next(run for run in runs if run.info.status == "FAILED")
    assert failed.data.tags["autotune.status"] == "crashed"
    stopped = next(run for run in runs if run.info.status == "KILLED")
    curve = client.get_metric_history(stopped.info.run_id, "curve.time")
    assert [(point.step, point.value) for point in curve] == [(1, 2.0), (2, 0.9)]
    with pytest.raises(InputError, match="already"):
        export_study(store, store.study(), address)


def test_what_fails_half_way_leaves_nothing_and_can_be_written_again(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
    store = make(tmp_path / "study.db")
    file = tmp_path / "mlflow.db"
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{file}")
    before = [experiment.name for experiment in client.search_experiments()]
    full = "CREATE TRIGGER full BEFORE INSERT ON runs WHEN (SELECT count(*) FROM runs) > 2"
    change(file, f"{full} BEGIN SELECT RAISE(ABORT, 'the disk is full'); END")
    with pytest.raises(OutputError, match="MLflow cannot write"):
        export_study(store, store.study(), str(file))
    assert [experiment.name for experiment in client.search_experiments()] == before
    change(file, "DROP TRIGGER full")
    name, trials = export_study(store, store.study(), str(file))
    experiment = client.get_experiment_by_name(name)
    assert len(client.search_runs([experiment.experiment_id])) == trials == 8


def test_what_cannot_be_deleted_is_named(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
    store = make(tmp_path / "study.db")
    file = tmp_path / "mlflow.db"
    mlflow.MlflowClient(tracking_uri=f"sqlite:///{file}").search_experiments()
    refusing = "BEGIN SELECT RAISE(ABORT, 'no'); END"
    change(file, f"CREATE TRIGGER full BEFORE INSERT ON runs {refusing}")
    deleting = "BEFORE UPDATE ON experiments WHEN NEW.lifecycle_stage = 'deleted'"
    change(file, f"CREATE TRIGGER kept {deleting} {refusing}")
    with pytest.raises(InputError, match=r"left in the experiment '.* \(unfinished \w+\)'"):
        export_study(store, store.study(), str(file))


def test_names_that_come_to_the_same_are_told_apart(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
    space = Space([Choice("größe", ("", "x")), OrderedValues("grüße", (1, 2))])
    store = make_of(space, tmp_path / "study.db")
    name, _ = export_study(store, store.study(), str(tmp_path / "mlflow.db"))
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    runs = client.search_runs([client.get_experiment_by_name(name).experiment_id])
    found = {(run.data.params["größe"], run.data.params["grüße"]) for run in runs}
    assert found == {("", "1"), ("", "2"), ("x", "1"), ("x", "2")}


def test_metrics_keep_their_names_beside_their_intervals() -> None:
    keys = [("time", ""), ("time.low", ""), ("time", ".low"), ("time", "curve."), ("a<b", ""), ("a>b", "")]
    assert list(_told_apart(keys).values()) == [
        "time",
        "time.low",
        "time.low_2",
        "curve.time",
        "a_b",
        "a_b_2",
    ]


def test_a_server_that_is_not_there_is_said_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow", reason="MLflow is not installed")
    monkeypatch.setenv(TRIES, "0")
    store = make(tmp_path / "study.db")
    with pytest.raises(OutputError, match=r"MLflow cannot write to http://127\.0\.0\.1:1"):
        export_study(store, store.study(), "http://127.0.0.1:1")


def test_addresses(tmp_path: Path) -> None:
    assert address_of("runs.db") == "sqlite:///runs.db"
    assert address_of("http://server") == "http://server"
    with pytest.raises(InputError, match=r"is a folder\n.*\n.*mlflow\.db"):
        address_of(str(tmp_path))


def change(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("time", "time"),
        ("a/../b", "a/b"),
        ("knob[0]", "knob_0_"),
        ("<script>", "_script_"),
        ("", "_"),
        ("..", "_"),
    ],
)
def test_names_are_such_as_mlflow_takes(name: str, taken: str) -> None:
    assert _name(name) == taken
