"""The contenders of the last finale, and with several goals the Pareto front."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from autotune.report.evidence import Evidence
from autotune.search.acquisition.pareto import non_dominated
from autotune.status import Status

if TYPE_CHECKING:
    import pandas as pd


def finale(evidence: Evidence) -> pd.DataFrame:
    """A row for each contender of the last verdict, the best first.

    Columns: ``label`` (``trial 13``, ``the default``, the name of a baseline), ``role`` (``winner``,
    ``finalist``, ``default`` or ``baseline``), ``value``, ``low``, ``high`` and ``readings`` of the first
    goal, ``status``, ``id`` (of the replicate). Those that failed have no value. Empty if nothing was
    measured again.
    """
    import pandas as pd

    columns = ["label", "role", "value", "low", "high", "readings", "status", "id"]
    name = f"metric.{evidence.metric.name}"
    last = evidence.verdicts[-1] if evidence.verdicts else None
    own = evidence.all_trials
    own = own[(own["purpose"] != "search") & (own["session"] == (last.session_id if last else -1))]
    verdict = evidence.verdict or {}
    winner = None if verdict.get("is_default") else verdict.get("label")
    rows = [
        {
            "label": row["label"] or row["purpose"],
            "role": "winner" if row["label"] == winner else _ROLES.get(row["purpose"], "finalist"),
            "value": row[name] if row["status"] == Status.OK.value else np.nan,
            "low": row[f"{name}.low"],
            "high": row[f"{name}.high"],
            "readings": int(row[f"{name}.n"]) if row[f"{name}.n"] == row[f"{name}.n"] else 0,
            "status": row["status"],
            "id": row["id"],
        }
        for row in own.to_dict("records")
    ]
    frame = pd.DataFrame(rows, columns=columns).drop_duplicates("label", keep="last")
    order = (
        (evidence.sign * frame["value"].astype(float)).sort_values(na_position="last", kind="stable").index
    )
    frame = frame.loc[order].reset_index(drop=True)
    frame.attrs |= {"metric": evidence.metric.name, "unit": evidence.metric.unit}
    return frame


_ROLES = {"default": "default", "baseline": "baseline"}


def front(evidence: Evidence) -> pd.DataFrame:
    """A row for each search trial that succeeded, if the space still contains it: ``trial``, ``metric.NAME``
    for each goal, and ``front`` (whether it is on the Pareto front).

    ``attrs``: ``goals`` (names), ``units``, and ``better`` (by name: ``less`` or ``more``).
    """
    names = [goal.name for goal in evidence.goals]
    own = evidence.trials[evidence.trials["status"] == Status.OK.value]
    own = own[~own["trial"].isin(evidence.outside)]
    columns = [f"metric.{name}" for name in names]
    frame = own[["trial", *columns]].dropna().reset_index(drop=True)
    signs = np.array([goal.sign for goal in evidence.goals])
    points = frame[columns].to_numpy(dtype=np.float64) * signs
    frame["front"] = non_dominated(points) if len(points) else np.zeros(0, dtype=bool)
    units = {goal.name: goal.unit for goal in evidence.goals}
    better = {goal.name: "less" if goal.sign > 0 else "more" for goal in evidence.goals}
    frame.attrs |= {"goals": names, "units": units, "better": better, "study": evidence.study.label}
    return frame
