"""``autotune export``: one row a trial, as CSV, Parquet or JSON, or the study in the T4 format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autotune.cli.options import json_option, print_json, store_option, study_option
from autotune.errors import InputError, Problem

if TYPE_CHECKING:
    import pandas as pd

    from autotune.store.records import StudyRecord
    from autotune.store.store import Store


@click.command("export")
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "parquet", "json", "t4"]),
    help="[default: by FILE's ending]",
)
@click.option(
    "--to", "file", metavar="FILE", required=True, type=click.Path(path_type=Path), help="Where to."
)
@study_option
@store_option
@json_option
def command(form: str | None, file: Path, study: str | None, store: str | None, as_json: bool) -> int:
    """Write the trials of a study to FILE.

    CSV, Parquet and JSON hold one row a trial: study, trial, status, strategy, started, seconds,
    knob.NAME..., metric.NAME, metric.NAME.low, metric.NAME.high, readings. T4 is the exchange
    format of auto-tuners, with each trial's real correctness.
    """
    from autotune.store.store import Store

    form = form or _by_ending(file)
    with Store.open(store, readonly=True) as opened:
        record = opened.study(study)
        try:
            rows = WRITERS[form](opened, record, file)
        except OSError as error:
            raise InputError(Problem(f"cannot write {file}: {error.strerror or error}")) from error
    if as_json:
        print_json(
            {"study": record.name, "study_id": record.id, "format": form, "file": str(file), "trials": rows}
        )
    else:
        click.echo(f"{rows} trials of {record.name}#{record.id} written to {file}")
    return 0


def _by_ending(file: Path) -> str:
    endings = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".json": "json"}
    if file.suffix not in endings:
        raise InputError(
            Problem(
                f"the format of {file} is not known by its ending",
                hint="say --format csv, parquet, json or t4",
            )
        )
    return endings[file.suffix]


def write_csv(store: Store, study: StudyRecord, file: Path) -> int:
    frame = _frame(store, study)
    frame.to_csv(file, index=False)
    return len(frame)


def write_json(store: Store, study: StudyRecord, file: Path) -> int:
    frame = _frame(store, study)
    frame.to_json(file, orient="records", indent=1)
    return len(frame)


def write_parquet(store: Store, study: StudyRecord, file: Path) -> int:
    frame = _frame(store, study)
    try:
        import pyarrow as _  # noqa: F401
    except ImportError:
        raise InputError(Problem("Parquet needs pyarrow", hint='pip install "autotune[parquet]"')) from None
    frame.to_parquet(file, index=False)
    return len(frame)


def write_t4(store: Store, study: StudyRecord, file: Path) -> int:
    from autotune.interop.t4 import write_trials

    trials = store.trials(study.id, purpose="search")
    readings = {trial.id: store.readings(trial.id) for trial in trials}
    write_trials(file, study, trials, readings)
    return len(trials)


def _frame(store: Store, study: StudyRecord) -> pd.DataFrame:
    from autotune.store.frames import trials_frame

    return trials_frame(study, store.trials(study.id, purpose="search"))


WRITERS: dict[str, Callable[[Store, StudyRecord, Path], int]] = {
    "csv": write_csv,
    "parquet": write_parquet,
    "json": write_json,
    "t4": write_t4,
}
