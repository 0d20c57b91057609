"""Which knobs matter, and which of them only together: a forest of the outcomes, asked with a knob shuffled.

A random forest rather than the functional analysis of variance (Hutter et al., ICML 2014): knobs that exist
only under a condition, permutations and assignments fit in, and what is shuffled is held out from the fit, so
a knob without an effect is near 0 and the spread over the splits says how far to trust the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from autotune.report.evidence import Evidence
from autotune.report.knob_views import KnobView, feature_columns
from autotune.report.numbers import say_count

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

LEAST_TRIALS = 20
"""Trials with a number below which nothing is said."""
MOST_TRIALS = 2000
"""More make the answer no surer; so many are drawn from a longer study, at random: a part of the variance is
that of what is drawn."""
SPLITS = 8
SHUFFLES = 3
TREES = 40
HELD_OUT = 0.25
WEAK = 0.2
"""A forest that explains less of what was held out says little about any knob."""
PAIRS_OF = 6
"""Of how many knobs, the most important ones, all pairs are looked at."""
POINTS, BACKGROUND = 60, 80
"""At so many configurations, each averaged over so many others, the effect of a pair is looked at."""


@dataclass(frozen=True)
class Lesson:
    """What a forest learns from: a row a trial."""

    knobs: tuple[KnobView, ...]
    features: Floats
    columns: tuple[slice, ...]
    """Of each knob."""
    losses: Floats
    """Lower is better; logarithms where all values are positive."""
    logarithmic: bool
    known: int
    """Trials with a number, of which these are drawn where they are many."""
    left_out: int
    """Trials without one: they failed, or are not finished."""


def lesson_of(evidence: Evidence, seed: int = 0) -> Lesson:
    """The search trials that have a number for the first goal, and their knobs that vary."""
    own = evidence.trials[evidence.trials["at_full"].notna()]
    known, left_out = len(own), len(evidence.trials) - len(own)
    own = _some(own, seed)
    values = own["at_full"].to_numpy(dtype=np.float64)
    logarithmic = bool(len(values) and values.min() > 0.0)
    losses = evidence.sign * (np.log(values) if logarithmic else values)
    parts: list[Floats] = []
    knobs: list[KnobView] = []
    for knob in evidence.knobs:
        part = _ranked(feature_columns(knob, evidence.knob_column(knob.name, own)))
        if len(part) and any(_varies(part[:, column]) for column in range(part.shape[1])):
            knobs.append(knob)
            parts.append(part)
    ends = np.cumsum([part.shape[1] for part in parts], dtype=int).tolist()
    columns = tuple(slice(end - part.shape[1], end) for end, part in zip(ends, parts, strict=True))
    features = np.hstack(parts) if parts else np.zeros((len(own), 0))
    return Lesson(tuple(knobs), features, columns, losses, logarithmic, known, left_out)


def _some(own: pd.DataFrame, seed: int) -> pd.DataFrame:
    if len(own) <= MOST_TRIALS:
        return own
    return own.iloc[np.sort(np.random.default_rng(seed).permutation(len(own))[:MOST_TRIALS])]


def _ranked(features: Floats) -> Floats:
    """Each column as ranks: all that a tree looks at, whatever the numbers are; NaN stays."""
    ranked = np.full(features.shape, np.nan)
    for column in range(features.shape[1]):
        there = ~np.isnan(features[:, column])
        ranked[there, column] = np.unique(features[there, column], return_inverse=True)[1]
    return ranked


def _varies(column: Floats) -> bool:
    known = column[np.isfinite(column)]
    return bool(len(known)) and (len(known) < len(column) or bool(known.min() < known.max()))


def importance(evidence: Evidence, seed: int = 0) -> pd.DataFrame:
    """One row a knob that varies, the most important first.

    Columns: ``knob``, ``importance`` (the part of the variance of the first goal that the knob has a hand
    in, alone or with others), ``low`` and ``high`` (between them lie nine tenths of the splits), ``share``
    (of the sum of what is above 0).

    Half of what shuffling a knob among held-out trials adds to a forest's squared error, over the variance,
    is its total effect (Jansen 1999). The goal is on a log scale where it is positive. A trial that was
    stopped early counts with what it would have come to.

    ``attrs`` has ``trials``, ``known`` (with a number: of many, some are drawn), ``left_out`` (without one),
    ``explained`` (of the variance held out; 1 is all) and ``remark``: why the frame is empty, or what weakens
    it; empty where nothing does. The same seed gives the same answer.
    """
    import pandas as pd

    lesson = lesson_of(evidence, seed)
    columns = ["knob", "importance", "low", "high", "share"]
    remark = _why_not(lesson)
    if remark:
        frame = pd.DataFrame(columns=columns)
        frame.attrs |= {"trials": len(lesson.losses), "left_out": lesson.left_out, "remark": remark}
        return frame
    drops, explained = _drops(lesson, seed)
    low, high = np.quantile(drops, (0.05, 0.95), axis=0)
    mean = drops.mean(axis=0)
    total = float(np.maximum(mean, 0.0).sum())
    share = np.maximum(mean, 0.0) / total if total > 0 else np.zeros(len(mean))
    names = [knob.name for knob in lesson.knobs]
    rows = zip(names, mean, low, high, share, strict=True)
    frame = pd.DataFrame(list(rows), columns=columns).sort_values(
        "importance", ascending=False, kind="stable"
    )
    frame = frame.reset_index(drop=True)
    frame.attrs |= {
        "trials": len(lesson.losses),
        "known": lesson.known,
        "left_out": lesson.left_out,
        "explained": explained,
        "remark": _weakness(explained),
        "study": evidence.study.label,
    }
    return frame


def say_learned_from(frame: pd.DataFrame) -> str:
    """What :func:`importance` is of: ``1,925 of 2,424 trials, 576 without a number left out``."""
    trials, known, left_out = (frame.attrs[name] for name in ("trials", "known", "left_out"))
    of = f"{trials:,} of " if trials < known else ""
    without = f", {left_out:,} without a number left out" if left_out else ""
    return f"{of}{say_count(known, 'trial')}{without}"


def _why_not(lesson: Lesson) -> str:
    if len(lesson.losses) < LEAST_TRIALS:
        return f"too few trials to say: {len(lesson.losses)} have a number, {LEAST_TRIALS} are needed"
    if not lesson.knobs:
        return "no knob varies"
    return "" if _varies(lesson.losses) else "all trials have the same value"


def _weakness(explained: float) -> str:
    if explained >= WEAK:
        return ""
    return (
        f"a forest explains only {max(explained, 0.0):.0%} of what was held out: more trials are needed, or"
        " noise is larger than what the knobs do"
    )


def _forest(seed: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(TREES, min_samples_leaf=2, max_features=0.5, random_state=seed, n_jobs=1)


def _drops(lesson: Lesson, seed: int) -> tuple[Floats, float]:
    """What shuffling each knob costs in each split, shape (splits, knobs); and the mean share explained."""
    rng = np.random.default_rng(seed)
    count = len(lesson.losses)
    held = max(5, round(HELD_OUT * count))
    drops, scores = [], []
    for split in range(SPLITS):
        order = rng.permutation(count)
        test, train = order[:held], order[held:]
        forest = _forest(seed * SPLITS + split).fit(lesson.features[train], lesson.losses[train])
        truth = lesson.losses[test]
        spread = max(float(np.var(lesson.losses)), 1e-300)
        error = float(np.mean((forest.predict(lesson.features[test]) - truth) ** 2))
        scores.append(1.0 - error / spread)
        shuffled = _shuffled(lesson, test, rng)
        predicted = forest.predict(shuffled).reshape(len(lesson.knobs), SHUFFLES, held)
        worse = ((predicted - truth) ** 2).mean(axis=(1, 2))
        drops.append((worse - error) / (2.0 * spread))
    return np.array(drops), float(np.mean(scores))


def _shuffled(lesson: Lesson, test: NDArray[np.int64], rng: np.random.Generator) -> Floats:
    """The held-out rows, for each knob and shuffle once, with that knob's columns shuffled together."""
    parts = []
    for columns in lesson.columns:
        for _ in range(SHUFFLES):
            rows = lesson.features[test].copy()
            rows[:, columns] = rows[rng.permutation(len(test)), columns]
            parts.append(rows)
    return np.vstack(parts)


def interactions(evidence: Evidence, ranked: Sequence[str] | None = None, seed: int = 0) -> pd.DataFrame:
    """One row a pair of the most important knobs, the strongest first: ``knob``, ``other``, ``strength``.

    ``strength`` is the part of the variance of a forest's predictions that the pair makes together and
    neither of the two by itself, from partial dependence (Friedman and Popescu, Annals of Applied
    Statistics 2008, section 8.1, over the variance of all predictions, so that two knobs without an effect
    have no strength). ``ranked`` are the knobs by importance, where they are known already. Empty with the
    same remark as :func:`importance` where nothing can be said.
    """
    import pandas as pd

    lesson = lesson_of(evidence, seed)
    remark = _why_not(lesson)
    frame = pd.DataFrame(columns=["knob", "other", "strength"])
    if remark or len(lesson.knobs) < 2:
        frame.attrs["remark"] = remark or "only one knob varies"
        return frame
    names = [knob.name for knob in lesson.knobs]
    order = list(ranked) if ranked is not None else importance(evidence, seed)["knob"].tolist()
    chosen = [names.index(name) for name in order if name in names][:PAIRS_OF]
    rows = [
        (names[one], names[other], strength)
        for (one, other), strength in _strengths(lesson, chosen, seed).items()
    ]
    frame = pd.DataFrame(rows, columns=["knob", "other", "strength"])
    frame = frame.sort_values("strength", ascending=False, kind="stable").reset_index(drop=True)
    frame.attrs |= {"remark": "", "study": evidence.study.label}
    return frame


def _strengths(lesson: Lesson, chosen: Sequence[int], seed: int) -> dict[tuple[int, int], float]:
    rng = np.random.default_rng(seed)
    forest = _forest(seed).fit(lesson.features, lesson.losses)
    count = len(lesson.losses)
    points = lesson.features[rng.permutation(count)[:POINTS]]
    background = lesson.features[rng.permutation(count)[:BACKGROUND]]
    variance = float(np.var(forest.predict(points)))
    pairs = list(combinations(chosen, 2))
    wanted = [(one,) for one in chosen] + pairs
    curves: dict[tuple[int, ...], Floats] = {}
    for group in wanted:
        rows = np.repeat(background[None, :, :], len(points), axis=0)
        for knob in group:
            rows[:, :, lesson.columns[knob]] = points[:, None, lesson.columns[knob]]
        predicted = forest.predict(rows.reshape(-1, rows.shape[2])).reshape(len(points), len(background))
        curve = predicted.mean(axis=1)
        curves[group] = curve - curve.mean()
    found = {}
    for one, other in pairs:
        together = curves[one, other] - curves[(one,)] - curves[(other,)]
        found[one, other] = float(np.mean(together**2)) / variance if variance > 0 else math.nan
    return found
