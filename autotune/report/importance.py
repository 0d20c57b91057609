"""Which knobs matter, and which of them only together: permutation importance in a random forest.

This is used rather than the functional analysis of variance (Hutter et al., ICML 2014) because it can
handle conditional knobs, permutations and assignments. The trials in which knobs are shuffled are held out
from the fit, so that a knob without an effect is near 0, and the spread over the splits says how far to
trust the rest.
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
"""With fewer trials that have a value, no answer is given."""
MOST_TRIALS = 2000
"""More would not make the answer more certain; of a longer study, so many are drawn at random."""
SPLITS = 8
SHUFFLES = 3
TREES = 40
HELD_OUT = 0.25
WEAK = 0.2
"""A forest that explains less of the held-out variance says little about any knob."""
PAIRS_OF = 6
"""How many knobs, the most important ones, are examined in pairs."""
POINTS, BACKGROUND = 60, 80
"""How many configurations the effect of a pair is evaluated at, and over how many others it is averaged."""


@dataclass(frozen=True)
class Lesson:
    """What a forest learns from, a row for each trial."""

    knobs: tuple[KnobView, ...]
    features: Floats
    columns: tuple[slice, ...]
    """The columns of each knob in ``features``."""
    losses: Floats
    """Lower is better; logarithms if all values are positive."""
    logarithmic: bool
    known: int
    """How many trials have a value; if there are many, only some of them are used."""
    left_out: int
    """How many trials have no value: they failed, or are not finished."""


def lesson_of(evidence: Evidence, seed: int) -> Lesson:
    """The search trials that have a value of the first goal, and the knobs that vary among them."""
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
    """Each column as ranks, which is all that matters to a tree; NaN stays."""
    ranked = np.full(features.shape, np.nan)
    for column in range(features.shape[1]):
        there = ~np.isnan(features[:, column])
        ranked[there, column] = np.unique(features[there, column], return_inverse=True)[1]
    return ranked


def _varies(column: Floats) -> bool:
    known = column[np.isfinite(column)]
    return bool(len(known)) and (len(known) < len(column) or bool(known.min() < known.max()))


def importance(evidence: Evidence, seed: int = 0) -> pd.DataFrame:
    """A row for each knob that varies, the most important first.

    Columns: ``knob``, ``importance`` (the share of the variance of the first goal in which the knob plays a
    part, alone or with others), ``low`` and ``high`` (nine tenths of the splits lie between them),
    ``share`` (of the sum of all importances above 0).

    The importance is the total effect (Jansen 1999): half of what shuffling the knob among held-out trials
    adds to a forest's squared error, over the variance. The goal is on a log scale if it is positive. A
    trial that was stopped early counts with its predicted final value.

    ``attrs`` has ``trials`` (how many are used), ``known`` (how many have a value), ``left_out`` (how many
    have none), ``scale`` (``the logarithm of ``, or empty), ``explained`` (the share of held-out variance;
    ``None`` if the frame is empty), ``study`` (its label) and ``remark``: why the frame is empty or weak, or
    an empty text. The same seed gives the same answer.
    """
    import pandas as pd

    lesson = lesson_of(evidence, seed)
    columns = ["knob", "importance", "low", "high", "share"]
    said = {
        "trials": len(lesson.losses),
        "known": lesson.known,
        "left_out": lesson.left_out,
        "scale": "the logarithm of " if lesson.logarithmic else "",
        "explained": None,
        "remark": _why_not(lesson),
        "study": evidence.study.label,
    }
    if said["remark"]:
        frame = pd.DataFrame(columns=columns)
        frame.attrs |= said
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
    frame.attrs |= said | {"explained": explained, "remark": _weakness(explained)}
    return frame


def say_learned_from(frame: pd.DataFrame) -> str:
    """The trials that :func:`importance` used: ``1,925 of 2,424 trials, 576 without a number left out``."""
    trials, known, left_out = (frame.attrs[name] for name in ("trials", "known", "left_out"))
    of = f"{trials:,} of " if trials < known else ""
    without = f", {left_out:,} without a number left out" if left_out else ""
    return f"{of}{say_count(known, 'trial')}{without}"


def _why_not(lesson: Lesson) -> str:
    if len(lesson.losses) < LEAST_TRIALS:
        return f"of trials with a number there are {len(lesson.losses)}, and {LEAST_TRIALS} are needed"
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

    # scikit-learn takes no seed above 32 bits.
    return RandomForestRegressor(
        TREES, min_samples_leaf=2, max_features=0.5, random_state=seed % 2**32, n_jobs=1
    )


def _drops(lesson: Lesson, seed: int) -> tuple[Floats, float]:
    """The importance of each knob in each split, shape (splits, knobs); and the mean share explained."""
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
    """The held-out rows, once for each knob and shuffle, with that knob's columns shuffled together."""
    parts = []
    for columns in lesson.columns:
        for _ in range(SHUFFLES):
            rows = lesson.features[test].copy()
            rows[:, columns] = rows[rng.permutation(len(test)), columns]
            parts.append(rows)
    return np.vstack(parts)


def interactions(evidence: Evidence, ranked: Sequence[str] | None = None, seed: int = 0) -> pd.DataFrame:
    """A row for each pair of the most important knobs, the strongest first.

    Columns: ``knob``, ``other`` and ``strength``. ``strength`` is the share of the variance of a forest's
    predictions that is due to the pair together and to neither of the two alone, from partial dependence
    (Friedman and Popescu, Annals of Applied Statistics 2008, section 8.1, but over the variance of all
    predictions, so that two knobs without an effect have no strength). ``ranked`` are the knobs by
    importance, if they are known already. If nothing can be said, the frame is empty and has the same
    remark as that of :func:`importance`.
    """
    import pandas as pd

    lesson = lesson_of(evidence, seed)
    remark = _why_not(lesson)
    frame = pd.DataFrame(columns=["knob", "other", "strength"])
    if remark or len(lesson.knobs) < 2:
        frame.attrs |= {"remark": remark or "only one knob varies", "study": evidence.study.label}
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
