"""How a search approached its best value, compared with the expected best of as many random draws."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from autotune.report.evidence import Evidence
from autotune.report.numbers import say_count
from autotune.report.spend import covered, merged
from autotune.status import Status

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

DRAWN = ("uniform", "initial", "newcomer", "random")
"""Kinds of proposals that no model took part in."""
ENOUGH_DRAWN = 20
"""How many such trials are enough to represent random draws from the space."""
BAND = (0.05, 0.95)
"""The quantiles that bound the band of random draws: nine times in ten their best lies between them."""
MOST_POINTS = 400
"""How many points of the curve of random draws are computed; it is interpolated between them."""
MOST_OUTCOMES = 2000
"""About how many groups outcomes are put into if there are more of them."""


def convergence(evidence: Evidence) -> pd.DataFrame:
    """A row for each finished search trial, in the order of finishing.

    Columns: ``tries`` (1, 2, 3 ...), ``trial``, ``seconds`` (of searching, without the time between
    sessions; searches at the same time count once), ``value`` (NaN if the trial failed or was stopped),
    ``best`` (so far, of those that succeeded), ``random`` (the expected best of as many random draws),
    ``random_low`` and ``random_high`` (between these it lies nine times in ten).

    The draws are from this study's own outcomes, so they are an estimate; ``attrs["drawn_from"]`` says from
    which. ``attrs["to_match"]`` is the expected number of draws until one is as good as the best that was
    found (see :func:`draws_to_match`).
    """
    own = evidence.trials
    own = own[own["told"].notna()].sort_values("told")
    frame = own[["trial", "value", "status"]].reset_index(drop=True)
    frame.insert(0, "tries", np.arange(1, len(frame) + 1))
    frame["seconds"] = _seconds(evidence, own)
    counted = np.where(frame.pop("status") == Status.OK.value, frame["value"], np.nan)
    frame["best"] = _best_so_far(counted, evidence.sign)
    outcomes, drawn_from = outcomes_of_draws(evidence)
    expected = expected_best(outcomes, np.arange(1, len(frame) + 1), evidence.sign)
    frame["random"], frame["random_low"], frame["random_high"] = expected
    frame.attrs |= {
        "metric": evidence.metric.name,
        "unit": evidence.metric.unit,
        "goal": evidence.metric.goal,
        "drawn_from": drawn_from,
        "to_match": draws_to_match(outcomes, float(frame["best"].iloc[-1]), evidence.sign)
        if len(frame)
        else math.inf,
        "study": evidence.study.label,
    }
    return frame


def outcomes_of_draws(evidence: Evidence) -> tuple[Floats, str]:
    """Outcomes that stand for random draws, NaN for failures; and which trials these are, in words."""
    own = evidence.trials
    own = own[own["told"].notna()]
    drawn = own[own["kind"].isin(DRAWN)]
    enough = len(drawn) >= ENOUGH_DRAWN
    chosen = drawn if enough else own
    values = chosen["value"].to_numpy(dtype=np.float64)
    if enough:
        return values, f"the {len(drawn):,} trials of this study that no model proposed"
    outcomes = f"{'all' if len(own) > 1 else 'the'} {say_count(len(own), 'outcome')} of this study"
    few = f"only {len(drawn)} {'was' if len(drawn) == 1 else 'were'} drawn at random"
    flatters = "this flatters random draws, since a search concentrates on good configurations"
    return values, f"{outcomes}, since {few}: {flatters}"


def expected_best(
    outcomes: Floats, draws: NDArray[np.int64], sign: float = 1.0
) -> tuple[Floats, Floats, Floats]:
    """The expected best of so many independent draws from ``outcomes``, and its 5 % and 95 % quantiles.

    ``outcomes`` are NaN for draws that fail; ``sign`` is -1 if more is better. Of n outcomes in order, the
    best of k draws is the i-th with the probability ((n - i + 1) / n)^k - ((n - i) / n)^k. The expectation
    is conditional on at least one success. Each of the three results has the shape of ``draws``; NaN if no
    outcome is finite.
    """
    known = np.sort(sign * outcomes[np.isfinite(outcomes)])
    none = np.full(len(draws), np.nan)
    if not len(known) or not len(draws):
        return none, none.copy(), none.copy()
    failing = 1.0 - len(known) / len(outcomes)
    points = np.unique(np.geomspace(1, max(int(draws.max()), 1), MOST_POINTS).round())
    edges = _edges(len(known))
    share = (1.0 - failing) * edges / len(known)
    known = known[(edges[:-1] + edges[1:] - 1) // 2]
    above = (1.0 - share)[None, :] ** points[:, None]
    weights = above[:, :-1] - above[:, 1:]
    mean = (weights @ known) / weights.sum(axis=1)
    ends = []
    for quantile in BAND:
        reached = 1.0 - (1.0 - quantile * (1.0 - failing**points)) ** (1.0 / points)
        place = np.searchsorted(share, reached) - 1
        ends.append(known[np.clip(place, 0, len(known) - 1)])
    curves = [sign * np.interp(np.log(draws), np.log(points), curve) for curve in (mean, *ends)]
    low, high = (curves[1], curves[2]) if sign > 0 else (curves[2], curves[1])
    return curves[0], low, high


def draws_to_match(outcomes: Floats, best: float, sign: float = 1.0) -> float:
    """The expected number of independent draws from ``outcomes`` until one is as good as ``best``.

    Infinite if no outcome is, since it is then unknown how rare they are.
    """
    as_good = np.count_nonzero(sign * outcomes <= sign * best)  # what failed is NaN, and never as good
    return len(outcomes) / as_good if as_good else math.inf


def _edges(count: int) -> NDArray[np.int64]:
    """The edges of groups of sorted outcomes: the best are alone in theirs, later groups grow in size."""
    if count <= MOST_OUTCOMES:
        return np.arange(count + 1)
    half = MOST_OUTCOMES // 2
    return np.unique([*range(half), *np.geomspace(half, count, half).round().astype(int).tolist()])


def _best_so_far(values: Floats, sign: float) -> Floats:
    with np.errstate(invalid="ignore"):
        running = np.fmin.accumulate(sign * values) if len(values) else values
    return np.asarray(sign * running, dtype=np.float64)


def _seconds(evidence: Evidence, own: pd.DataFrame) -> Floats:
    """Seconds in which at least one search was running until each trial finished."""
    searching = merged((session.started_at, evidence.end_of(session)) for session in evidence.sessions)
    return covered(searching, own["finished"].to_numpy(dtype=np.float64))
