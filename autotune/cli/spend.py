"""``autotune spend``: where the time of a study's searches went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from autotune.cli.options import echo, json_option, print_json, store_option, study_argument
from autotune.cli.silence import said_if_long

if TYPE_CHECKING:
    import pandas as pd

    from autotune.store.records import StudyRecord


@click.command("spend")
@study_argument()
@store_option
@json_option
def command(study: str | None, store: str | None, as_json: bool) -> int:
    """Say where the time of a study's searches went: each second of the measuring device counts once.

    What overlapped measuring, as compiling does, is listed beside it.
    """
    from autotune.report.evidence import load_evidence
    from autotune.report.spend import spend

    with said_if_long("reading the trials: Ctrl-C ends it", quiet=as_json):
        evidence = load_evidence(store, study)
        frame = spend(evidence)
    if as_json:
        print_json(describe(evidence.study, frame))
    else:
        echo(say(frame))
    return 0


def describe(study: StudyRecord, frame: pd.DataFrame) -> dict[str, Any]:
    """The JSON form."""
    said = {name: frame.attrs[name] for name in ("replayed", "trials", "wall", "lanes", "busy")}
    return {"study": study.name, "study_id": study.id, **said, "parts": frame.to_dict("records")}


def say(frame: pd.DataFrame) -> str:
    """A line for each part of the time."""
    from autotune.report.numbers import say_count, say_seconds
    from autotune.report.rows import rows_of

    study, trials, wall = frame.attrs["study"], frame.attrs["trials"], frame.attrs["wall"]
    busy = frame.attrs["busy"]
    had = f"trials had the device for {busy:.0%} of it"
    if frame.attrs["replayed"]:
        had = "REPLAYED from a recording, no trial had a device"
    lines = [f"{study}: {say_count(trials, 'trial')} in {say_seconds(wall)}; {had}"]
    width = max((len(part) for part in frame["part"]), default=0)
    for row in rows_of(frame):
        share = f"{row.share:6.1%}" if row.where == "device" else row.where
        lines.append(f"  {row.part:{width}}  {say_seconds(row.seconds):>8}  {share}  {row.meaning}")
    return "\n".join(lines)
