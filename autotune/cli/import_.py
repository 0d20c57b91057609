"""``autotune import``: a study from an archive, or a replay space from a recorded search."""

from __future__ import annotations

import zipfile
from pathlib import Path

import click

from autotune.cli.options import as_argument, echo, json_option, print_json, same_store, store_option
from autotune.cli.silence import said_if_long
from autotune.cli.writing import refuse_existing, write_text
from autotune.errors import InputError, Problem, listed


@click.command("import")
@click.argument("recording", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="For a recording: the space file to write.  [default: the recording's name, with .yaml]",
)
@click.option("--force", is_flag=True, help="Overwrite the space file if it exists.")
@store_option
@json_option
def command(recording: Path, output: Path | None, force: bool, store: str | None, as_json: bool) -> int:
    """Bring a study into the store from an archive (.zip), or make a space that replays a recording.

    All studies of an archive are imported, or none; a study that the store has already stays as it is. A
    recording is a Kernel Tuner cache file or a T4 file (also .gz). A search of its space reads the recorded
    readings, which are labelled as a replay wherever they are shown.
    """
    from autotune.interop.foreign_databases import is_database

    if recording.is_file() and (zipfile.is_zipfile(recording) or recording.suffix == ".zip"):
        if output is not None or force:
            raise InputError(Problem("an archive goes into a store", None, "no -o and no --force"))
        return _archive(recording, store, as_json)
    if is_database(recording):
        raise InputError(_no_recording(recording))
    return _recording(recording, output, force, store, as_json)


def _no_recording(database: Path) -> Problem:
    """The problem with a database that was given as a recording, and what to do with it instead."""
    from sqlalchemy import URL

    from autotune.interop.foreign_databases import is_store

    if is_store(URL.create("sqlite", database=str(database))):
        hint = "to see it: autotune show --store FILE; to hand a study on: autotune export --to STUDY.zip"
        return Problem(f"{database} is a store, which needs no import", None, "", hint)
    hint = "a study of Optuna stays where it is: autotune.interop.optuna.AutotuneSampler goes on with it"
    expected = "an archive (.zip), a Kernel Tuner cache file or a T4 file"
    return Problem(f"{database} is a database of another program", None, expected, hint)


def _archive(file: Path, store: str | None, as_json: bool) -> int:
    from autotune.cli.export import say_repeats
    from autotune.interop.archives.importing import import_archive
    from autotune.report.numbers import say_count

    with said_if_long("checking the archive and writing its trials: Ctrl-C ends it", quiet=as_json):
        brought = import_archive(file, store)
    if as_json:
        print_json({**vars(brought), "others": list(brought.others), "file": str(file)})
        return 0
    label = brought.study
    if brought.new:
        trials = f"{say_count(brought.trials, 'trial')}{say_repeats(brought.repeats)}"
        others = say_count(len(brought.others), "study", "studies")
        learned = f", and {others} that it learned from" if brought.others else ""
        echo(f"{label}: {trials} imported{learned}")
    else:
        echo(f"the store has {label} already, and it is the same: nothing was written")
    echo(f"  digest    {brought.digest}")
    echo(f"next:  autotune show --study {label}{same_store(store)}")
    return 0


def _recording(recording: Path, output: Path | None, force: bool, store: str | None, as_json: bool) -> int:
    from autotune.interop.space_files.kernel_tuner import space_document
    from autotune.measure.recordings.read import read_recording
    from autotune.measure.recordings.recording import TIME
    from autotune.report.numbers import say_count
    from autotune.report.text import one_line

    file = output or Path(recording.name.removesuffix(".gz").removesuffix(".json") + ".yaml")
    with said_if_long("reading the recording: Ctrl-C ends it", quiet=as_json):
        recorded = read_recording(recording)
        refuse_existing(file, force, recording)
        write_text(file, space_document(recorded, recording, file))
    failed = sum(entry.status.failed for entry in recorded.entries)
    if as_json:
        print_json(
            {
                "space": str(file),
                "recording": str(recording),
                "configurations": len(recorded.entries),
                "failed": failed,
                "damage": recorded.damage,
                "replaced": recorded.replaced,
                "untimed": recorded.untimed,
                "lacking": recorded.lacking(TIME),
                "objectives": list(recorded.objectives),
            }
        )
    else:
        count = say_count(len(recorded.entries), "recorded configuration")
        echo(f"{file}: {count}, {failed:,} of them failed")
        if recorded.damage:
            echo(f"the recording is damaged: {recorded.damage}; only the entries before that were read")
        if recorded.replaced:
            more = say_count(recorded.replaced, "more entry repeats", "more entries repeat")
            echo(
                f"{more} a configuration with another time: the later one counts. Is a knob missing among"
                " those that the recording names?"
            )
        if recorded.untimed:
            more = say_count(recorded.untimed, "more entry", "more entries")
            echo(f"{more} without a time or a word why there is none: left out, and tried by no search")
        if lacking := recorded.lacking(TIME):
            have = say_count(lacking, "configuration has", "configurations have")
            echo(f"{have} other numbers, but no time: not tried by a search for time")
        if recorded.objectives and TIME not in recorded.objectives:
            tuned = listed([one_line(name) for name in recorded.objectives])
            echo(f"it was tuned for {tuned}, and this space is for time: its 'metrics' say what for")
        echo(f"next:  autotune search {as_argument(file)}{same_store(store)}")
    return 0
