"""How the goal depends on knobs: lines through all knobs, and the best at each pair of values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from autotune.report.evidence import Evidence
from autotune.report.knob_views import bins_of, positions, say_value_of
from autotune.report.numbers import say_value

if TYPE_CHECKING:
    import pandas as pd

MOST_LINES = 240
BEST_LINES = 40
"""How many of the lines are the best trials; the others are taken evenly from the rest."""


def parallel(evidence: Evidence) -> pd.DataFrame:
    """A row for each trial (of a long study, for some): ``trial``, ``value``, ``quantile`` (0 is the best),
    ``knob.NAME``.

    The knobs' values are places from 0 to 1, in the knob's order and on its scale; NaN if a trial does not
    have the knob. ``attrs["ends"]`` has the values of each knob at 0 and at 1.
    """
    import pandas as pd

    own = evidence.succeeded
    loss = evidence.sign * own["value"].to_numpy(dtype=np.float64)
    order = np.argsort(loss, kind="stable")
    kept = order
    if len(order) > MOST_LINES:
        rest = np.linspace(BEST_LINES, len(order) - 1, MOST_LINES - BEST_LINES).round().astype(int)
        kept = order[np.concatenate([np.arange(BEST_LINES), rest])]
    rank = np.empty(len(order))
    rank[order] = np.arange(len(order)) / max(len(order) - 1, 1)
    columns: dict[str, object] = {
        "trial": own["trial"].to_numpy()[kept],
        "value": own["value"].to_numpy()[kept],
        "quantile": rank[kept],
    }
    ends: dict[str, tuple[str, str]] = {}
    for knob in evidence.knobs:
        values = evidence.knob_column(knob.name, own)
        place = positions(knob, values)
        known = place[np.isfinite(place)]
        if not len(known) or known.min() == known.max():
            continue
        low, high = (int(np.flatnonzero(place == end)[0]) for end in (known.min(), known.max()))
        ends[f"knob.{knob.name}"] = say_value_of(values[low]), say_value_of(values[high])
        columns[f"knob.{knob.name}"] = ((place - known.min()) / (known.max() - known.min()))[kept]
    frame = pd.DataFrame(columns)
    frame.attrs |= {"ends": ends, "metric": evidence.metric.name, "study": evidence.study.label}
    return frame


def pair(evidence: Evidence, knob: str, other: str) -> pd.DataFrame:
    """The best value of the first goal at each pair of values of two knobs at which a trial succeeded.

    Columns: ``value`` and ``other`` (labels; ranges if there are many), ``place`` and ``other_place``
    (their order), ``trials``, ``best``, ``said`` (``best`` with its unit) and ``standing`` (by rank: 1 for
    the best of all pairs, 0 for the worst).
    """
    import pandas as pd

    views = {view.name: view for view in evidence.knobs}
    own = evidence.succeeded
    one, two = (bins_of(views[name], evidence.knob_column(name, own), 8) for name in (knob, other))
    values = own["value"].to_numpy(dtype=np.float64)
    rows = []
    for place, label in enumerate(one.labels):
        for other_place, other_label in enumerate(two.labels):
            here = values[(one.places == place) & (two.places == other_place)]
            if len(here):
                best = float(evidence.sign * np.min(evidence.sign * here))
                rows.append((label, other_label, place, other_place, len(here), best))
    frame = pd.DataFrame(rows, columns=["value", "other", "place", "other_place", "trials", "best"])
    frame["said"] = [say_value(best, evidence.metric.unit, 3) for best in frame["best"]]
    loss = evidence.sign * frame["best"].rank(ascending=True)
    spread = float(loss.max() - loss.min()) if len(frame) else 0.0
    frame["standing"] = (loss.max() - loss) / spread if spread > 0 else 1.0
    frame.attrs |= {"knob": knob, "other": other, "metric": evidence.metric.name}
    return frame
