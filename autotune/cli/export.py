"""``autotune export``: a study as rows, as an archive, or in the form of another tool."""

from __future__ import annotations

import json
import math
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autotune.cli.options import echo, json_option, print_json, store_option, study_argument
from autotune.cli.silence import said_if_long
from autotune.errors import InputError, OutputError, Problem
from autotune.paths import written_whole

if TYPE_CHECKING:
    import pandas as pd

    from autotune.store.records import StudyRecord
    from autotune.store.store import Store

TEXTS = ("csv", "json")
"""The formats that may be written to stdout."""
ENDINGS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".json": "json", ".zip": "archive"}


@click.command("export")
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "parquet", "json", "t4", "archive", "optuna", "mlflow", "tensorboard"]),
    help="[default: by the ending of WHERE]",
)
@click.option(
    "--to",
    "where",
    metavar="WHERE",
    required=True,
    help="A file, or - for stdout; for another tool, its address or folder.",
)
@click.option("--readings", is_flag=True, help="One row for each reading; for CSV, Parquet and JSON.")
@click.option("--licence", metavar="TEXT", default="", help="For an archive: its licence, or where that is.")
@study_argument("the latest with trials")
@store_option
@json_option
def command(
    form: str | None,
    where: str,
    readings: bool,
    licence: str,
    study: str | None,
    store: str | None,
    as_json: bool,
) -> int:
    """Write a study to WHERE.

    CSV, Parquet and JSON have one row for each trial: study, trial, status, strategy, started, seconds,
    knob.NAME..., metric.NAME, metric.NAME.low, metric.NAME.high, readings. T4 is the exchange
    format of auto-tuners, with each trial's real correctness.

    An archive (.zip) is the whole study, with hashes, for autotune verify and autotune import.

    \b
    optuna       an Optuna storage, such as sqlite:///optuna.db
    mlflow       a tracking server or database of MLflow, such as sqlite:///mlflow.db
    tensorboard  a folder of event files with hyper-parameters
    """
    from autotune.interop.foreign_databases import refuse_database
    from autotune.store.store import Store

    form = _checked(form, where, readings, licence, as_json)
    writing = f"reading the trials and writing {where}: Ctrl-C ends it"
    with said_if_long(writing, quiet=as_json), Store.open(store, readonly=True) as opened:
        record = _meant(opened, study)
        try:
            if form not in FOREIGN:
                refuse_database(Path(where))
                Path(where).parent.mkdir(parents=True, exist_ok=True)
            if form == "archive":
                written = _archive(opened, record, Path(where), licence, store)
            elif form in FOREIGN:
                written = FOREIGN[form](opened, record, where)
            else:
                written = _rows(opened, record, form, where, readings)
        except OSError as error:
            if where == "-" or isinstance(error, BrokenPipeError):
                raise  # an stdout or a pipe that cannot be written to is said as by every verb
            raise OutputError.of(where, error) from error
    what = {"study": record.name, "study_id": record.id, "format": form, "file": where}
    if as_json:
        print_json(what | written)
    elif where != "-":
        echo(say(what | written))
    return 0


def say(written: dict[str, Any]) -> str:
    """What was written, in lines."""
    from autotune.report.numbers import say_count

    count, label = say_count(written["trials"], "trial"), f"{written['study']}#{written['study_id']}"
    again = say_repeats(written.get("repeats", 0))
    lines = [f"{count} of {label}{again} written to {written['file']}"]
    lines += [f"  {name:9} {written[name]}" for name in ("digest", "recorded", "next") if name in written]
    return "\n".join(lines)


def say_repeats(repeats: int) -> str:
    """The part of the sentence on measurements made again, which are not counted among the trials."""
    from autotune.report.numbers import say_count

    return f" and {say_count(repeats, 'measurement')} again" if repeats else ""


def _meant(store: Store, study: str | None) -> StudyRecord:
    """The study that is written: where no id picks one, the newest in which something was searched.

    The newest of several workloads is often the held-out one, which has no trials of a search.
    """
    record = store.study(study)
    if record.counts or study not in (None, record.name):
        return record
    return next((other for other in reversed(store.studies(study)) if other.counts), record)


def _checked(form: str | None, where: str, readings: bool, licence: str, as_json: bool) -> str:
    """The format to write. Raises :class:`InputError` for options that do not go together."""
    if not where.strip():
        raise InputError(
            Problem("--to is empty", expected="a file, or the address or folder of another tool")
        )
    if where == "-" and (form not in TEXTS or as_json):
        expected = f"--format {' or '.join(TEXTS)}, without --json"
        raise InputError(Problem("only rows can be written to stdout", expected=expected))
    form = form or _by_ending(where)
    if readings and form not in WRITERS:
        raise InputError(Problem(f"--readings is only for CSV, Parquet and JSON, not for {form}"))
    if licence and form != "archive":
        raise InputError(Problem(f"--licence is only for an archive, not for {form}"))
    return form


def _by_ending(where: str) -> str:
    ending = Path(where).suffix
    if ending not in ENDINGS:
        raise InputError(
            Problem(
                f"the ending of {where} does not tell its format",
                hint="add --format csv, parquet, json, t4, archive, optuna, mlflow or tensorboard",
            )
        )
    return ENDINGS[ending]


def _archive(store: Store, study: StudyRecord, file: Path, licence: str, url: str | None) -> dict[str, Any]:
    from autotune.interop.archives.writing import write_archive, write_down

    written = write_archive(store, study, file, licence)
    return {
        "trials": written.trials,
        "repeats": written.repeats,
        "studies": list(written.studies),
        "bytes": written.size,
        "digest": written.digest,
        "recorded": write_down(url, written.manifest),
    }


# -- rows -----------------------------------------------------------------------------------------------


def _rows(store: Store, study: StudyRecord, form: str, where: str, readings: bool) -> dict[str, int]:
    """Write rows; returns how many trials they are of, and with ``readings`` how many repeats."""
    if form == "t4":
        return {"trials": _write_t4(store, study, Path(where))}
    frame = _readings_frame(store, study) if readings else _frame(store, study)
    with _onto_stdout() if where == "-" else written_whole(Path(where)) as draft:
        WRITERS[form](frame, draft)
    if not readings:
        return {"trials": len(frame)}
    searched = frame["purpose"] == "search"
    return {
        "trials": int(frame["trial"][searched].nunique()),
        "repeats": int(frame["trial"][~searched].nunique()),
    }


@contextmanager
def _onto_stdout() -> Iterator[Path]:
    """Give a draft that is copied to stdout at the end; opening ``/dev/stdout`` would truncate its file."""
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "rows"
        yield draft
        with draft.open("rb") as rows:
            shutil.copyfileobj(rows, sys.stdout.buffer)
        sys.stdout.flush()


def _frame(store: Store, study: StudyRecord) -> pd.DataFrame:
    from autotune.store.frames import trials_frame

    return trials_frame(study, (t for t in store.brief_trials(study.id) if t.purpose == "search"))


def _readings_frame(store: Store, study: StudyRecord) -> pd.DataFrame:
    from autotune.store.frames import readings_frame

    return readings_frame(study, store.brief_trials(study.id), store.readings_of(study.id))


def _write_csv(frame: pd.DataFrame, file: Path) -> None:
    frame.to_csv(file, index=False)


def _write_json(frame: pd.DataFrame, file: Path) -> None:
    """With every digit: pandas' own writer keeps ten decimals, only four or five digits of a microsecond."""
    rows = zip(*(_cells(frame[name]) for name in frame), strict=True)
    with file.open("w", encoding="utf-8") as out:
        out.write("[")
        for number, row in enumerate(rows):
            out.write(",\n" if number else "\n")
            out.write(json.dumps(dict(zip(frame, row, strict=True)), allow_nan=False))
        out.write("\n]\n")


def _cells(column: pd.Series[Any]) -> Iterator[Any]:
    """The values for JSON: ``None`` for one that is missing or not finite."""
    for value, missing in zip(column.tolist(), column.isna(), strict=True):
        yield None if missing or (isinstance(value, float) and not math.isfinite(value)) else value


def _write_parquet(frame: pd.DataFrame, file: Path) -> None:
    try:
        import pyarrow as _  # noqa: F401
    except ImportError:
        raise InputError(Problem("Parquet needs pyarrow", hint="pip install pyarrow")) from None
    frame.apply(_of_one_kind).to_parquet(file, index=False)


def _of_one_kind(column: pd.Series[Any]) -> pd.Series[Any]:
    """The column with its values as JSON texts if Parquet cannot hold them: mixed types, or over 64 bits."""
    there = list(column.dropna())
    kinds = {type(value) for value in there}
    mixed = len(kinds) > 1 and kinds != {int, float}
    if mixed or (column.dtype == object and kinds == {int} and max(map(abs, there)) >= 1 << 63):
        return column.map(json.dumps, na_action="ignore")
    return column


def _write_t4(store: Store, study: StudyRecord, file: Path) -> int:
    from autotune.interop.exports.t4 import write_trials

    trials = store.trials(study.id, purpose="search")
    searched = {trial.id for trial in trials}
    readings = {number: own for number, own in store.readings_of(study.id) if number in searched}
    write_trials(file, study, trials, readings)
    return sum(trial.status.finished for trial in trials)


WRITERS: dict[str, Callable[[pd.DataFrame, Path], None]] = {
    "csv": _write_csv,
    "parquet": _write_parquet,
    "json": _write_json,
}


# -- other tools ----------------------------------------------------------------------------------------


def _optuna(store: Store, study: StudyRecord, where: str) -> dict[str, Any]:
    from autotune.interop.exports.optuna import address_of, export_study

    name, trials = export_study(store, study, where)
    look = f"optuna-dashboard {shlex.quote(address_of(where))}"
    return {"trials": trials, "optuna_study": name, "next": look}


def _mlflow(store: Store, study: StudyRecord, where: str) -> dict[str, Any]:
    from autotune.interop.exports.mlflow import address_of, export_study

    name, trials = export_study(store, study, where)
    address = address_of(where)
    server = address.startswith(("http://", "https://"))
    look = address if server else f"mlflow ui --backend-store-uri {shlex.quote(address)}"
    return {"trials": trials, "experiment": name, "next": look}


def _tensorboard(store: Store, study: StudyRecord, where: str) -> dict[str, Any]:
    from autotune.interop.exports.tensorboard import export_study

    return {
        "trials": export_study(store, study, Path(where)),
        "next": f"tensorboard --logdir {shlex.quote(where)}",
    }


FOREIGN: dict[str, Callable[[Store, StudyRecord, str], dict[str, Any]]] = {
    "optuna": _optuna,
    "mlflow": _mlflow,
    "tensorboard": _tensorboard,
}
