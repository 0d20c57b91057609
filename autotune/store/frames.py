"""Trials and readings as tidy pandas DataFrames.

A study may have a hundred thousand trials. So frames are made column by column, from trials that may come one
at a time: a dictionary for each row would take ten times the memory of its values.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from autotune.measure.outcome import Reading
from autotune.space.configuration import freeze, plain
from autotune.store.brief import BriefTrial
from autotune.store.records import StudyRecord, TrialRecord

if TYPE_CHECKING:
    import pandas as pd


class _Columns:
    """Columns that grow row by row; ``None`` where a row lacks a column."""

    def __init__(self, *names: str) -> None:
        self.values: dict[str, list[Any]] = {name: [] for name in names}
        self.rows = 0

    def add(self, row: Mapping[str, object]) -> None:
        for name, value in row.items():
            self._filled(name).append(value)
        self.rows += 1

    def done(self) -> dict[str, list[Any]]:
        """The columns, all of the same length."""
        return {name: self._filled(name) for name in self.values}

    def _filled(self, name: str) -> list[Any]:
        values = self.values.setdefault(name, [])
        values.extend([None] * (self.rows - len(values)))
        return values


def trials_frame(study: StudyRecord, trials: Iterable[TrialRecord | BriefTrial]) -> pd.DataFrame:
    """One row a trial.

    Columns: ``study``, ``trial`` (its number), ``status``, ``strategy``, ``started`` (ISO 8601, UTC),
    ``seconds``, ``knob.NAME`` for each knob (missing where it is inactive; integers are of pandas' type
    ``Int64`` then), ``metric.NAME`` with ``.low`` and ``.high`` for each metric, and ``readings`` (how many
    count, of the metric that has most).
    """
    import pandas as pd

    said = ["study", "trial", "status", "strategy", "started", "seconds"]
    numbers = [f"metric.{metric['name']}{part}" for metric in study.metrics for part in ("", ".low", ".high")]
    columns = _Columns(*said, *numbers, "readings")
    for trial in trials:
        columns.add(_row(study, trial))
    values: dict[str, Any] = columns.done()
    for name in numbers:
        values[name] = np.array(values[name], dtype=np.float64)
    knobs = [name for name in values if name.startswith("knob.")]
    for name in knobs:
        if None in values[name] and _are_integers(values[name]):
            # pandas would make floats of them: 2 would be shown as 2.0, and a large seed be rounded.
            values[name] = pd.array(values[name], dtype="Int64")
    return pd.DataFrame(values, columns=[*said, *knobs, *numbers, "readings"])


def readings_frame(
    study: StudyRecord,
    trials: Iterable[TrialRecord | BriefTrial],
    readings: Iterable[tuple[int, Sequence[Reading]]],
) -> pd.DataFrame:
    """One row a reading, of all trials: those of finales and replays as well.

    Columns: ``study``, ``trial`` (its number), ``purpose``, ``status``, ``seq`` (0, 1, 2 ... in the trial),
    ``metric``, ``value``, ``at`` (seconds since the trial's first reading began), ``discarded`` (why it does
    not count; empty: it does) and ``context.NAME`` for what the machine did meanwhile. ``readings`` gives
    those of each trial by its id; a trial that a search has added meanwhile is left out.
    """
    import pandas as pd

    said = {trial.id: (trial.number, trial.purpose, str(trial.status)) for trial in trials}
    columns = _Columns("study", "trial", "purpose", "status", "seq", "metric", "value", "at", "discarded")
    for trial_id, own in readings:
        if trial_id not in said:
            continue
        number, purpose, status = said[trial_id]
        of_trial = {"study": study.name, "trial": number, "purpose": purpose, "status": status}
        for seq, r in enumerate(own):
            taken = {"seq": seq, "metric": r.metric, "value": r.value, "at": r.at, "discarded": r.discarded}
            columns.add(of_trial | taken | {f"context.{name}": value for name, value in r.context.items()})
    return pd.DataFrame(columns.done())


def _row(study: StudyRecord, trial: TrialRecord | BriefTrial) -> dict[str, object]:
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
    # An objective may return more, under the names that the table has for these.
    for name in (metric["name"] for metric in study.metrics if metric["name"] in trial.metrics):
        estimate = trial.metrics[name]
        row |= {
            f"metric.{name}": estimate.value,
            f"metric.{name}.low": estimate.low,
            f"metric.{name}.high": estimate.high,
        }
    return row


def _are_integers(values: Iterable[object]) -> bool:
    """Whether all but ``None`` are integers of at most 64 bits."""
    there = [value for value in values if value is not None]
    return all(type(value) is int and -(2**63) <= value < 2**63 for value in there)


def _cell(value: object) -> object:
    """Permutations and assignments as JSON text, so that every format can hold them."""
    return json.dumps(plain(freeze(value))) if isinstance(value, (tuple, list, Mapping)) else value
