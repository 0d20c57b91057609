"""What failed, and at which values of which knobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from autotune.report.evidence import Evidence
from autotune.report.knob_views import bins_of
from autotune.report.text import one_line
from autotune.status import Status

if TYPE_CHECKING:
    import pandas as pd

MOST_VALUES = 8
"""The most groups of values of a knob; with more values, each group has several."""

FAILED = tuple(status.value for status in Status if status.failed)


def failures(evidence: Evidence) -> pd.DataFrame:
    """A row for each kind of failure, the commonest first.

    Columns: ``status``, ``trials``, ``share``, ``first`` (the number of its first trial) and ``message``
    (the first that is not empty, on one line).
    """
    import pandas as pd

    own = evidence.trials
    failed = own[own["status"].isin(FAILED)]
    rows = [
        {
            "status": status,
            "trials": len(group),
            "share": len(group) / len(own),
            "first": int(group["trial"].iloc[0]),
            "message": one_line(next((m for m in group["message"] if m.strip()), ""), 240),
        }
        for status, group in failed.groupby("status", sort=False)
    ]
    frame = pd.DataFrame(rows, columns=["status", "trials", "share", "first", "message"])
    return frame.sort_values("trials", ascending=False, kind="stable").reset_index(drop=True)


def failed_again(evidence: Evidence) -> pd.DataFrame:
    """A row for each contender that failed in a finale: ``label``, ``status``, ``trial``, ``message``."""
    own = evidence.all_trials
    searches = [session.id for session in evidence.sessions]
    own = own[(own["purpose"] != "search") & own["status"].isin(FAILED) & own["session"].isin(searches)]
    frame = own[["label", "status", "trial", "message"]].reset_index(drop=True)
    frame["message"] = [one_line(message, 240) for message in frame["message"]]
    return frame


def failure_map(evidence: Evidence) -> pd.DataFrame:
    """How often trials failed at each value of each knob; a row for each knob and value.

    Columns: ``knob``, ``value`` (a label; ranges if there are many), ``place`` (0, 1, 2 ... in the knob's
    order), ``trials``, ``failed``, ``share``, ``status`` (the commonest failure there, or empty) and
    ``tells``: the fraction of the uncertainty about failure that knowing the knob removes (mutual
    information over entropy). The knob with the largest ``tells`` comes first. Trials that are not finished
    do not count.
    """
    import pandas as pd

    own = evidence.trials
    own = own[own["told"].notna()]
    failed = own["status"].isin(FAILED).to_numpy()
    statuses = own["status"].to_numpy()
    rows = []
    for knob in evidence.knobs:
        bins = bins_of(knob, evidence.knob_column(knob.name, own), MOST_VALUES)
        tells = _tells(bins.places, failed, len(bins.labels))
        for place, label in enumerate(bins.labels):
            here = bins.places == place
            kinds, counts = np.unique(statuses[here & failed], return_counts=True)
            rows.append(
                {
                    "knob": knob.name,
                    "value": label,
                    "place": place,
                    "trials": int(here.sum()),
                    "failed": int((here & failed).sum()),
                    "share": float((here & failed).sum() / max(here.sum(), 1)),
                    "status": str(kinds[np.argmax(counts)]) if len(kinds) else "",
                    "tells": tells,
                }
            )
    columns = ["knob", "value", "place", "trials", "failed", "share", "status", "tells"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.sort_values(["tells", "knob", "place"], ascending=[False, True, True]).reset_index(drop=True)


def _tells(places: NDArray[np.int64], failed: NDArray[np.bool_], count: int) -> float:
    """Mutual information of group and failure over the entropy of failure, less what is due to chance.

    With c groups and n trials, chance alone gives (c - 1) / 2n nats (Miller 1955).
    """
    whole = _entropy(float(failed.mean())) if len(failed) else 0.0
    if whole == 0.0 or count < 2:
        return 0.0
    groups = [failed[places == place] for place in range(-1, count)]
    groups = [group for group in groups if len(group)]
    left = sum(len(group) * _entropy(float(group.mean())) for group in groups) / len(failed)
    chance = (len(groups) - 1) / (2 * len(failed))
    return max(0.0, (whole - left - chance) / whole)


def _entropy(share: float) -> float:
    return float(-sum(p * np.log(p) for p in (share, 1.0 - share) if p > 0.0))
