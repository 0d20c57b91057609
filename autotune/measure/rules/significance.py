"""Whether a winner has really won: ratios with intervals from interleaved rounds. Pure.

In each round every contestant is read once, so reading ``i`` of one belongs with reading ``i`` of any
other: what drifts on the machine falls on both alike and cancels in their ratio. The ratio of two
contestants is estimated from the logarithms of the rounds' ratios by the estimate of Hodges and
Lehmann (J. L. Hodges and E. L. Lehmann, *Estimates of location based on rank tests*, Annals of
Mathematical Statistics 34, 1963) with the interval that belongs to Wilcoxon's signed-rank test
(M. Hollander, D. A. Wolfe and E. Chicken, *Nonparametric Statistical Methods*, 3rd ed., section 3.3).

Why not a t interval or a bootstrap: the level of this one is exact at any number of rounds as long as
the two are noisy in the same way, whatever that way is; an outlier moves it little; and where the
noise is normal it is all but as narrow as Student's (efficiency 0.955). A bootstrap of a dozen rounds
is too narrow.

The winner is the best of several, and the best of several equal ones looks good by luck. So the
intervals against the default hold *together* (O. J. Dunn, *Multiple comparisons among means*, JASA
56, 1961): with k finalists each is drawn at ``1 - (1 - confidence) / k``, and whichever is picked, its
interval stays honest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import NormalDist, median

import numpy as np

from autotune.measure.rules.repetition import Goal
from autotune.measure.rules.statistics import (
    LARGEST_EXPONENT,
    check_confidence,
    exponential,
    student_quantile,
)

MOST_EXACT = 100
"""Up to this many rounds the signed-rank distribution is computed exactly; beyond, it is taken as normal."""

MOST_AVERAGED = 1000
"""Up to this many differences all n(n+1)/2 averages of two are listed; beyond, bisection finds the wanted."""


@dataclass(frozen=True)
class Ratio:
    """How many times better one is than the other: above 1 is better, whichever way the goal points."""

    estimate: float
    low: float
    high: float
    rounds: int = 0


@dataclass(frozen=True)
class Gain:
    """By how much one is better than the other, in the unit of the metric: above 0 is better."""

    estimate: float
    low: float
    high: float
    rounds: int = 0


@dataclass(frozen=True)
class Contestant:
    """What was read of one entrant: ``values[i]`` in round ``i``, NaN where it was not read then.

    ``distance`` says how far it is from the default; ties go to the nearest. ``others`` holds the intervals
    of its other goals, lower is better: a contestant that another one beats in these does not win a tie.
    """

    label: str
    values: tuple[float, ...]
    distance: float = 0.0
    others: tuple[tuple[float, float], ...] = ()

    def beats(self, other: Contestant) -> bool:
        """Whether it is better in some of the other goals, beyond doubt, and in none of them worse."""
        pairs = list(zip(self.others, other.others, strict=True))
        better = any(high < low for (_, high), (low, _) in pairs)
        return better and not any(high < low for (low, _), (_, high) in pairs)


@dataclass(frozen=True)
class Judgement:
    """Who won."""

    winner: str
    """Its label; the default's where nothing was shown to be better."""
    ratio: Ratio | None = None
    """The winner against the default; ``None`` where there is no default, or no ratio can be formed."""
    ratios: Mapping[str, Ratio] = field(default_factory=dict)
    """Each candidate against the default. Together they hold with the confidence."""
    gains: Mapping[str, Gain] = field(default_factory=dict)
    """The same for those with which no ratio can be formed, since a reading is not above 0, or almost 0."""
    tied: tuple[str, ...] = ()
    """Candidates that cannot be told from the best one, the winner included; empty where it stands alone."""


def speedup(
    default: Sequence[float],
    candidate: Sequence[float],
    confidence: float = 0.95,
    *,
    goal: Goal = "minimize",
    among: int = 1,
) -> Ratio:
    """How many times better ``candidate`` is than ``default``, read in the same rounds.

    ``among``: from how many candidates the best was, or will be, picked; more of them widen the interval.
    Raises ``ValueError`` for fewer than two common rounds, or where a reading is not above 0.
    """
    log_ratios = _log_ratios(default, candidate, goal)
    if log_ratios is None:
        raise ValueError("a ratio needs readings above 0")
    return _as_ratio(paired_shift(log_ratios, 1 - (1 - confidence) / among), len(log_ratios))


def over_runs(
    reference: Sequence[Sequence[float]],
    other: Sequence[Sequence[float]],
    confidence: float = 0.95,
    *,
    goal: Goal = "minimize",
) -> Ratio | Gain:
    """How much better ``other`` is than ``reference``, both read in the same rounds of some runs.

    What all rounds of a run have in common differs from run to run: so each run counts once, by the median of
    its rounds. The result is a ratio, or a difference where a reading is not above 0. Raises ``ValueError``
    for fewer than two runs.
    """
    runs = list(zip(reference, other, strict=True))
    found = [_gains(a, b, goal) for a, b in runs]
    is_ratio = all(ratio for _, ratio in found)
    gains = [own for own, _ in found] if is_ratio else [_differences(a, b, goal)[0] for a, b in runs]
    middles = [median(own) for own in gains if own]
    shift, rounds = paired_shift(middles, confidence), sum(map(len, gains))
    return _as_ratio(shift, rounds) if is_ratio else Gain(*shift, rounds)


def winner(
    default: Contestant | None,
    candidates: Sequence[Contestant],
    confidence: float = 0.95,
    *,
    goal: Goal = "minimize",
    within: float = math.inf,
) -> Judgement:
    """Pick the winner among ``candidates`` against ``default``.

    The default stays unless a candidate is better with the confidence. Among those that are, the best wins.
    Where others cannot be told from it, the one nearest the default wins instead, as long as its estimate is
    worse by no more than the fraction ``within``: that there were too few rounds for the noise is no reason
    to give more away. Where there is no usable default, nothing is proven: the best candidate, or its nearest
    tie, is named.

    Raises ``ValueError`` where there is neither a default nor a candidate with two readings.
    """
    check_confidence(confidence)
    candidates = [c for c in candidates if _readable(c)]
    if default is None or not _readable(default):
        return _best_without_default(candidates, confidence, goal, within)
    corrected = 1 - (1 - confidence) / max(len(candidates), 1)
    ratios: dict[str, Ratio] = {}
    differences: dict[str, Gain] = {}
    proven: list[Contestant] = []
    for candidate in candidates:
        gains, is_ratio = _gains(default.values, candidate.values, goal)
        if len(gains) < 2:
            continue
        shift = paired_shift(gains, corrected)
        if is_ratio:
            ratios[candidate.label] = _as_ratio(shift, len(gains))
        else:
            differences[candidate.label] = Gain(*shift, len(gains))
        if shift[1] > 0:
            proven.append(candidate)
    if not proven:
        return Judgement(default.label, None, ratios, differences)
    ranked = _ranked(default, proven, goal)
    chosen, tied = _nearest_tie(ranked, confidence, goal, within)
    return Judgement(chosen.label, ratios.get(chosen.label), ratios, differences, tied)


def _ranked(default: Contestant, candidates: Sequence[Contestant], goal: Goal) -> list[Contestant]:
    """The best first, all by their ratio to the default, or all by their difference.

    A loss may be above 0 for some and below it for others, and the logarithm of a ratio cannot be compared
    with a difference. Of equally good ones, the first of ``candidates`` comes first.
    """
    by_ratio = all(_gains(default.values, c.values, goal)[1] for c in candidates)
    gains = _gains if by_ratio else _differences

    def gain(candidate: Contestant) -> float:
        centre = paired_shift(gains(default.values, candidate.values, goal)[0], 0.5)[0]
        return float(f"{centre:.12g}")  # what differs in further digits differs by rounding

    return sorted(candidates, key=gain, reverse=True)


def paired_shift(differences: Sequence[float], confidence: float) -> tuple[float, float, float]:
    """``(estimate, low, high)`` of the centre of paired differences: Hodges-Lehmann, signed ranks.

    Where there are too few for the confidence (fewer than 6 for 95 %), the interval is the hull of
    all differences and Student's t interval. Raises ``ValueError`` for fewer than two.
    """
    check_confidence(confidence)
    values = np.sort(np.asarray(differences, dtype=float))
    n = len(values)
    if n < 2:
        raise ValueError("an interval needs at least two rounds")
    if n > MOST_AVERAGED:
        rank, most = _signed_rank(n, confidence), n * (n + 1) // 2
        middle = (_walsh_average(values, (most + 1) // 2) + _walsh_average(values, most // 2 + 1)) / 2
        return middle, _walsh_average(values, rank), _walsh_average(values, most + 1 - rank)
    first, second = np.triu_indices(n)
    averages = np.sort((values[first] + values[second]) / 2)
    middle = float(np.median(averages))
    rank = _signed_rank(n, confidence)
    if rank:
        return middle, float(averages[rank - 1]), float(averages[-rank])
    half = student_quantile((1 + confidence) / 2, n - 1) * float(values.std(ddof=1)) / math.sqrt(n)
    mean = float(values.mean())
    return middle, min(float(values[0]), mean - half), max(float(values[-1]), mean + half)


def _walsh_average(ordered: np.ndarray[tuple[int, ...], np.dtype[np.float64]], rank: int) -> float:
    """The ``rank``-th smallest of the averages of two of ``ordered``, each also with itself.

    By bisection, to 2**-60 of the range: each step counts in O(n log n) how many averages lie below.
    """
    places = np.arange(len(ordered))
    low, high = float(ordered[0]), float(ordered[-1])
    for _ in range(60):
        middle = (low + high) / 2
        upto = np.searchsorted(ordered, 2 * middle - ordered, side="right")
        if int(np.maximum(upto - places, 0).sum()) >= rank:
            high = middle
        else:
            low = middle
    return high


@lru_cache(maxsize=1024)
def _signed_rank(n: int, confidence: float) -> int:
    """The rank among the n(n+1)/2 Walsh averages, from either end, where the interval ends; 0: none.

    It is the largest ``rank`` with ``P(W < rank) <= (1 - confidence) / 2`` for Wilcoxon's signed-rank
    statistic ``W``, the sum of those ranks 1..n whose sign fell positive, by fair coins.
    """
    tail = (1 - confidence) / 2
    most = n * (n + 1) // 2
    if n > MOST_EXACT:
        spread = math.sqrt(most * (2 * n + 1) / 12)
        return max(int(most / 2 + NormalDist().inv_cdf(tail) * spread), 1)
    chances = np.zeros(most + 1)
    chances[0] = 1.0
    for rank in range(1, n + 1):
        chances[rank:] = (chances[rank:] + chances[:-rank]) / 2
        chances[:rank] /= 2
    return int(np.searchsorted(np.cumsum(chances), tail * (1 + 1e-12), side="right"))


def _best_without_default(
    candidates: Sequence[Contestant], confidence: float, goal: Goal, within: float
) -> Judgement:
    if not candidates:
        raise ValueError("nobody was read often enough to be judged")
    sign = 1 if goal == "minimize" else -1
    ranked = sorted(candidates, key=lambda c: sign * float(np.nanmedian(c.values)))
    chosen, tied = _nearest_tie(ranked, confidence, goal, within)
    return Judgement(chosen.label, tied=tied)


def _nearest_tie(
    ranked: Sequence[Contestant], confidence: float, goal: Goal, within: float
) -> tuple[Contestant, tuple[str, ...]]:
    """The contestant to choose among those that the first of ``ranked`` does not beat, and the labels of all.

    Chosen is the one nearest the default, among those whose estimate is ``within`` the best one's and that no
    other of these beats in the other goals. Each is held against the best at the plain confidence, not a
    corrected one: to take two for equal that are not would give speed away.
    """
    best, *others = ranked
    tied, alike = [best], [best]
    for other in others:
        gains, is_ratio = _gains(other.values, best.values, goal)
        estimate, low, _ = paired_shift(gains, confidence) if len(gains) > 1 else (0.0, 0.0, 0.0)
        if low <= 0:
            tied.append(other)
            most = math.log1p(within) if is_ratio else within * abs(float(np.nanmedian(best.values)))
            if math.isinf(within) or estimate <= most:  # infinity times a median of 0 is NaN
                alike.append(other)
    unbeaten = [c for c in alike if not any(other.beats(c) for other in alike)] or alike
    chosen = min(unbeaten, key=lambda c: c.distance)  # of equally near ones the first, which is the better
    return chosen, tuple(c.label for c in tied) if len(tied) > 1 else ()


def _gains(reference: Sequence[float], other: Sequence[float], goal: Goal) -> tuple[list[float], bool]:
    """By how much ``other`` was better in each common round, and whether as logarithms of ratios.

    Where a reading is not above 0, or a ratio is so large that no float holds it, no ratio can be formed:
    there the gains are plain differences.
    """
    log_ratios = _log_ratios(reference, other, goal)
    if log_ratios is not None and all(abs(ratio) < LARGEST_EXPONENT for ratio in log_ratios):
        return log_ratios, True
    return _differences(reference, other, goal)


def _differences(reference: Sequence[float], other: Sequence[float], goal: Goal) -> tuple[list[float], bool]:
    sign = 1 if goal == "minimize" else -1
    return [sign * (a - b) for a, b in _common(reference, other)], False


def _as_ratio(shift: tuple[float, float, float], rounds: int) -> Ratio:
    estimate, low, high = map(exponential, shift)
    return Ratio(estimate, low, high, rounds)


def _log_ratios(reference: Sequence[float], other: Sequence[float], goal: Goal) -> list[float] | None:
    pairs = _common(reference, other)
    if any(a <= 0 or b <= 0 for a, b in pairs):
        return None
    sign = 1 if goal == "minimize" else -1
    return [sign * (math.log(a) - math.log(b)) for a, b in pairs]


def _common(one: Sequence[float], other: Sequence[float]) -> list[tuple[float, float]]:
    """The readings of the rounds in which both were read."""
    pairs = zip(one, other, strict=False)  # one that failed on the way has fewer
    return [(a, b) for a, b in pairs if math.isfinite(a) and math.isfinite(b)]


def _readable(contestant: Contestant) -> bool:
    return sum(map(math.isfinite, contestant.values)) >= 2
