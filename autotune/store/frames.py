"""Trials and readings as tidy pandas DataFrames."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from autotune.measure.outcome import Reading
from autotune.space.configuration import FrozenMap, Value, plain
from autotune.store.records import StudyRecord, TrialRecord

if TYPE_CHECKING:
    import pandas as pd


def trials_frame(study: StudyRecord, trials: Sequence[TrialRecord]) -> pd.DataFrame:
    """One row a trial.

    Columns: ``study``, ``trial`` (its number), ``status``, ``strategy``, ``started`` (ISO 8601, UTC),
    ``seconds``, ``knob.NAME`` for each knob (missing where it is inactive; integers are of pandas' type
    ``Int64`` then), ``metric.NAME`` with ``.low`` and ``.high`` for each metric, and ``readings`` (how many
    count for the first metric).
    """
    import pandas as pd

    rows = [_row(study, trial) for trial in trials]
    knobs = dict.fromkeys(f"knob.{name}" for trial in trials for name in trial.configuration)
    metrics = [metric["name"] for metric in study.metrics]
    columns = ["study", "trial", "status", "strategy", "started", "seconds", *knobs]
    columns += [f"metric.{name}{part}" for name in metrics for part in ("", ".low", ".high")]
    frame = pd.DataFrame(rows, columns=[*columns, "readings"])
    for name in knobs:
        values: list[Any] = [row.get(name) for row in rows]
        if None in values and _are_integers(values):
            # pandas would make floats of them, to which 2 is 2.0, and a large seed another one.
            frame[name] = pd.array(values, dtype="Int64")
    return frame


def readings_frame(
    study: StudyRecord, trials: Sequence[TrialRecord], readings: Iterable[tuple[int, Sequence[Reading]]]
) -> pd.DataFrame:
    """One row a reading, of all trials: those of finales and replays as well.

    Columns: ``study``, ``trial`` (its number), ``purpose``, ``status``, ``seq`` (0, 1, 2 ... in the trial),
    ``metric``, ``value``, ``at`` (seconds since the trial's first reading began), ``discarded`` (why it does
    not count; empty: it does) and ``context.NAME`` for what the machine did meanwhile. ``readings`` gives
    those of each trial by its id.
    """
    import pandas as pd

    by_id = {trial.id: trial for trial in trials}
    columns = ["study", "trial", "purpose", "status", "seq", "metric", "value", "at", "discarded"]
    rows: list[dict[str, object]] = []
    for trial_id, own in readings:
        trial = by_id[trial_id]
        said: dict[str, object] = {"study": study.name, "trial": trial.number, "purpose": trial.purpose}
        said["status"] = str(trial.status)
        for seq, r in enumerate(own):
            taken = {"seq": seq, "metric": r.metric, "value": r.value, "at": r.at, "discarded": r.discarded}
            rows.append(said | taken | {f"context.{name}": value for name, value in r.context.items()})
    names = dict.fromkeys(name for row in rows for name in row)
    return pd.DataFrame(rows, columns=list(dict.fromkeys([*columns, *names])))


def _row(study: StudyRecord, trial: TrialRecord) -> dict[str, object]:
    started = trial.started_at
    row: dict[str, object] = {
        "study": study.name,
        "trial": trial.number,
        "status": str(trial.status),
        "strategy": trial.strategy,
        "started": datetime.fromtimestamp(started, UTC).isoformat() if started else None,
        "seconds": sum(trial.phases.values()),
        "readings": max((e.n for e in trial.metrics.values()), default=0),
    }
    row |= {f"knob.{name}": _cell(value) for name, value in trial.configuration.items()}
    for name, estimate in trial.metrics.items():
        row |= {
            f"metric.{name}": estimate.value,
            f"metric.{name}.low": estimate.low,
            f"metric.{name}.high": estimate.high,
        }
    return row


def _are_integers(values: Iterable[object]) -> bool:
    """Whether all that are there are integers of at most 64 bits."""
    there = [value for value in values if value is not None]
    return all(type(value) is int and -(2**63) <= value < 2**63 for value in there)


def _cell(value: Value) -> object:
    """Permutations and assignments as JSON text, so that every format can hold them."""
    return json.dumps(plain(value)) if isinstance(value, (tuple, FrozenMap)) else value
