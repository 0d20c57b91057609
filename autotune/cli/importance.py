"""``autotune importance``: which knobs matter, and which of them only together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from autotune.cli.options import echo, json_option, print_json, store_option, study_argument
from autotune.cli.silence import said_if_long

if TYPE_CHECKING:
    import pandas as pd

    from autotune.store.records import StudyRecord


@click.command("importance")
@study_argument()
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of the forest and the shuffles.")
@store_option
@json_option
def command(study: str | None, seed: int, store: str | None, as_json: bool) -> int:
    """Say which knobs of a study matter: a forest learns the trials, and each knob is shuffled in turn.

    The range beside each number is how much it varies over splits of the trials.
    """
    from autotune.report.evidence import load_evidence
    from autotune.report.importance import importance, interactions

    with said_if_long("a forest learns the trials: Ctrl-C ends it", quiet=as_json):
        evidence = load_evidence(store, study)
        frame = importance(evidence, seed)
        pairs = interactions(evidence, frame["knob"].tolist(), seed)
    if as_json:
        print_json(describe(evidence.study, evidence.metric.name, frame, pairs))
    else:
        echo(say(evidence.study, evidence.metric.name, frame, pairs))
    return 0


def describe(study: StudyRecord, metric: str, frame: pd.DataFrame, pairs: pd.DataFrame) -> dict[str, Any]:
    """The JSON form."""
    return {
        "study": study.name,
        "study_id": study.id,
        "replayed": study.replayed,
        "metric": metric,
        "trials": frame.attrs["trials"],
        "left_out": frame.attrs["left_out"],
        "explained": frame.attrs["explained"],
        "remark": frame.attrs["remark"],
        "knobs": frame.to_dict("records"),
        "pairs": pairs.to_dict("records"),
    }


def say(study: StudyRecord, metric: str, frame: pd.DataFrame, pairs: pd.DataFrame) -> str:
    """A line for each knob, and the strongest pairs."""
    from autotune.report.importance import say_learned_from
    from autotune.report.rows import rows_of
    from autotune.report.text import one_line

    name = f"{study.label}{' (REPLAYED from a recording)' if study.replayed else ''}"
    if frame.empty:
        return f"{name}: {frame.attrs['remark']}"
    explained = max(frame.attrs["explained"], 0.0)
    scale = frame.attrs["scale"]
    lines = [
        f"{name}: share of the variance of {scale}{metric} in which each knob plays a part",
        f"  from {say_learned_from(frame)}; a forest explains {explained:.0%} of what was held out",
    ]
    names = [one_line(name, 40) for name in frame["knob"]]
    width = max(map(len, names))
    for name, row in zip(names, rows_of(frame), strict=True):
        bar = "#" * round(30 * min(max(row.importance, 0.0), 1.0))
        spread = f"[{row.low:z.1%}, {row.high:z.1%}]"
        lines.append(f"  {name:{width}}  {row.importance:z6.1%}  {spread:16}  {bar}".rstrip())
    if frame.attrs["remark"]:
        lines.append(f"  {frame.attrs['remark']}")
        return "\n".join(lines)  # pairs say nothing if the forest explains so little
    strong = [row for row in rows_of(pairs.head(5)) if row.strength >= 0.005]
    if strong:
        lines.append("together, beyond what each does alone:")
        lines += [f"  {one_line(r.knob, 40)} and {one_line(r.other, 40)}  {r.strength:.1%}" for r in strong]
    return "\n".join(lines)
