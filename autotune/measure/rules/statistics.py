"""What a handful of readings says about a metric: a location with an honest interval. Pure.

Timings are skewed to the right and now and then hit by an interrupt, a page fault or a neighbour, so
their mean says more about the noise than about the configuration. The location here is the
**median**, which hardly moves even if nearly half of the readings are corrupted.

Its interval comes from the **order statistics**: the number of readings below the true median is
binomial with p = 1/2 whatever the distribution, so that the interval between the d-th smallest and
the d-th largest reading has a known confidence for any noise, however skewed (H. A. David and
H. N. Nagaraja, *Order Statistics*, 3rd ed., section 7.1). Between two ranks it is interpolated as in
T. P. Hettmansperger and S. J. Sheather, *Confidence intervals based on interpolated order
statistics*, Statistics & Probability Letters 4 (1986).

Below ``n = 1 + log2(1 / (1 - confidence))`` (six readings for 95 %) even the interval from the smallest
to the largest reading does not have the confidence. There the interval is the hull of all readings and
of Student's t interval about their mean, so that it relies on the normal distribution as little as it can.

All this assumes that readings are independent. :func:`suspicions` says where they do not look so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from autotune.measure.outcome import Estimate, Reading

FEWEST_FOR_SUSPICION = 8
"""With fewer readings a trend or an autocorrelation cannot be told from chance."""

SUSPICIOUS = 0.99
"""The confidence of each test: for a trend, and for an autocorrelation."""

MOST_FOR_PAIRS = 1000
"""Up to this many readings all pairs are looked at: half a million."""


def estimate(values: Sequence[float], confidence: float = 0.95) -> Estimate:
    """The median of ``values`` with its confidence interval.

    A single reading has no interval, which shows as ``low == value == high``, ``n == 1``, ``error == 0``.
    Readings that are all positive (as times and rates are) never give a negative ``low``. If one is NaN
    or infinite, so is the estimate.

    Raises ``ValueError`` without any reading, or where ``confidence`` is not between 0 and 1.
    """
    check_confidence(confidence)
    ordered = sorted(map(float, values))
    n = len(ordered)
    if n == 0:
        raise ValueError("an estimate needs at least one reading")
    for value in ordered:
        if not math.isfinite(value):
            return Estimate(value, value, value, n)
    lower, upper = ordered[(n - 1) // 2], ordered[n // 2]
    median = lower if lower == upper else lower / 2 + upper / 2  # their sum may overflow
    if n == 1 or ordered[0] == ordered[-1]:
        return Estimate(median, median, median, n)
    ranks = _ranks(n, confidence)
    low, high, error = (
        _by_student(ordered, confidence) if ranks is None else _by_rank(ordered, *ranks, confidence)
    )
    if ordered[0] > 0:
        low = max(low, 0.0)
    return Estimate(median, min(low, median), max(high, median), n, error)


def estimates(readings: Iterable[Reading], confidence: float = 0.95) -> dict[str, Estimate]:
    """The estimate of each metric that has a reading that counts, by name."""
    values: dict[str, list[float]] = {}
    for reading in readings:
        if not reading.discarded:
            values.setdefault(reading.metric, []).append(reading.value)
    return {name: estimate(own, confidence) for name, own in values.items()}


def less_sure(known: Estimate, share: float, confidence: float = 0.95, *, alone: bool = False) -> Estimate:
    """``known``, less surely: the readings may also all be off together, by the same amount.

    The standard deviation of that amount is ``share`` of the value. A single reading has no interval and gets
    none, unless it is known to be off by nothing else (``alone``).
    """
    shared = share * abs(known.value)
    if (known.n < 2 and not alone) or not shared or not math.isfinite(known.value):
        return known
    half = NormalDist().inv_cdf((1 + confidence) / 2) * shared
    low = known.value - math.hypot(known.value - known.low, half)
    high = known.value + math.hypot(known.high - known.value, half)
    if known.low >= 0:
        low = max(low, 0.0)
    return replace(known, low=low, high=high, error=math.hypot(known.error, shared))


def relative_half_width(estimate: Estimate) -> float:
    """Half the interval over the value: 0.01 is 'known to 1 %'. Infinite where nothing is known."""
    half = (estimate.high - estimate.low) / 2
    if estimate.n < 2 or not math.isfinite(half):
        return math.inf
    if half == 0:
        return 0.0
    return half / abs(estimate.value) if estimate.value else math.inf


def autocorrelation(values: Sequence[float]) -> float:
    """How much a reading resembles the one before it: -1 to 1, about 0 for independent readings.

    Correlates ranks, so that one outlier decides nothing. 0 where all readings are the same.
    """
    ranks = _midranks(values)
    centred = ranks - ranks.mean()
    total = float(centred @ centred)
    return float(centred[:-1] @ centred[1:]) / total if total else 0.0


def drift(values: Sequence[float]) -> float:
    """How far the readings moved from the first to the last, over their median: 0.03 is 'up by 3 %'.

    The slope is the median over all pairs (P. K. Sen, JASA 63, 1968), of many readings over all pairs of a
    thousand that lie evenly among them. 0 for fewer than two readings.
    """
    numbers = np.asarray(values, dtype=float)
    if numbers.size < 2 or not (middle := float(np.median(numbers))):
        return 0.0
    at = np.linspace(0, numbers.size - 1, min(numbers.size, MOST_FOR_PAIRS)).round().astype(int)
    earlier, later = (at[indices] for indices in np.triu_indices(at.size, 1))
    slope = float(np.median((numbers[later] - numbers[earlier]) / (later - earlier)))
    return slope * (numbers.size - 1) / abs(middle)


def suspicions(values: Sequence[float]) -> tuple[str, ...]:
    """Why the interval of these readings, given in the order taken, may be too narrow, in sentences.

    A trend is looked for with Kendall's test (H. B. Mann, Econometrica 13, 1945), a memory of the
    reading before with :func:`autocorrelation`, whose spread for independent readings is 1/sqrt(n).
    """
    n = len(values)
    if n < FEWEST_FOR_SUSPICION or not all(map(math.isfinite, values)):
        return ()
    critical = NormalDist().inv_cdf((1 + SUSPICIOUS) / 2)
    found = []
    if abs(_kendall(values)) > critical:
        moved = drift(values)
        found.append(
            f"the readings drifted {'up' if moved > 0 else 'down'} by {abs(moved):.1%} while they were taken"
        )
    correlation = autocorrelation(values)
    if correlation > critical / math.sqrt(n):
        found.append(f"each reading resembles the one before it (rank autocorrelation {correlation:.2f})")
    return tuple(found)


@lru_cache(maxsize=512)
def student_quantile(probability: float, freedom: int) -> float:
    """The quantile of Student's t distribution, to 1e-6 of itself or better.

    scipy has it as well, but each worker would wait a quarter of a second for its import when it starts.
    Here Newton's method finds the angle ``atan(t / sqrt(freedom))`` with the wanted central probability,
    which is a finite sum for whole degrees of freedom. It is concave in the angle, so that steps from 0
    never lead too far. Raises ``ValueError`` unless ``0 < probability < 1`` and ``freedom >= 1``.
    """
    if not 0 < probability < 1 or freedom < 1:
        raise ValueError(f"there is no {probability!r} quantile of Student's t with {freedom!r} degrees")
    if probability < 0.5:
        return -student_quantile(1 - probability, freedom)
    central = 2 * probability - 1
    peak = 2 * math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    angle, step = 0.0, math.inf
    while step > 1e-15 * angle:
        slope = peak * math.cos(angle) ** (freedom - 1)
        step = (central - _student_central(angle, freedom)) / slope
        angle += step
    return math.sqrt(freedom) * math.tan(angle)


def _student_central(angle: float, freedom: int) -> float:
    """The probability that ``|atan(t / sqrt(freedom))| < angle``.

    M. Abramowitz and I. A. Stegun, *Handbook of Mathematical Functions*, 26.7.3 and 26.7.4.
    """
    odd = freedom % 2
    sine, square = math.sin(angle), math.cos(angle) ** 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= square * k / (k + 1)
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def check_confidence(confidence: float) -> None:
    """Raise ``ValueError`` unless ``confidence`` is a probability strictly between 0 and 1."""
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence lies between 0 and 1, such as 0.95, but it is {confidence!r}")


def exponential(value: float) -> float:
    """``e ** value``, or infinity if that is too large, as in the interval of two wild rounds."""
    return math.exp(value) if value < LARGEST_EXPONENT else math.inf


LARGEST_EXPONENT = 700.0
"""About the largest ``x`` for which a float holds ``e ** x``."""


def _by_student(ordered: Sequence[float], confidence: float) -> tuple[float, float, float]:
    """``(low, high, standard error)``: the hull of the readings and Student's t interval."""
    n = len(ordered)
    # Without a sum or squares of readings, which may overflow; and the mean of equal readings is one of them,
    # to the last digit.
    mean = ordered[0] + math.fsum((value - ordered[0]) / n for value in ordered)
    error = math.hypot(*(value - mean for value in ordered)) / math.sqrt(n * (n - 1))
    half = student_quantile((1 + confidence) / 2, n - 1) * error
    return min(ordered[0], mean - half), max(ordered[-1], mean + half), error


def _by_rank(
    ordered: Sequence[float], rank: int, weight: float, confidence: float
) -> tuple[float, float, float]:
    """``(low, high, standard error)`` from the ``rank``-th smallest and largest reading.

    ``weight`` is how far the interval ends from there towards the next reading inwards.
    """
    low = (1 - weight) * ordered[rank - 1] + weight * ordered[rank]
    high = (1 - weight) * ordered[-rank] + weight * ordered[-rank - 1]
    return low, high, max(high - low, 0.0) / (2 * NormalDist().inv_cdf((1 + confidence) / 2))


@lru_cache(maxsize=4096)
def _ranks(n: int, confidence: float) -> tuple[int, float] | None:
    """``(d, weight)`` of the narrowest interval that holds the median with ``confidence``.

    ``None`` if not even the interval from the smallest to the largest of ``n`` readings does.
    """
    # From the middle outwards, since the interval ends near it: about sqrt(n) of n ranks are looked at.
    ways, d = 2**n, n // 2 + 1
    term = math.comb(n, d - 1)  # so many of 2**n equally likely cases have d - 1 readings below the median
    below = ways // 2 if n % 2 else (ways + term) // 2  # and so many have fewer than d
    outer = inner = 1 - 2 * (below / ways)
    while outer < confidence:
        below -= term
        d -= 1
        term = term * d // (n - d + 1)
        outer, inner = 1 - 2 * (below / ways), outer
    if d == 0:  # ``outer`` is what rank d holds, the last that holds enough, and ``inner`` what d + 1 holds
        return None
    share = (outer - confidence) / (outer - inner)
    return d, (n - d) * share / (d + (n - 2 * d) * share)


def _midranks(values: Sequence[float]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """The rank of each value, 0 for the smallest; equal values share the mean of their ranks."""
    numbers = np.asarray(values, dtype=float)
    below = np.searchsorted(np.sort(numbers), numbers, side="left")
    upto = np.searchsorted(np.sort(numbers), numbers, side="right")
    return (below + upto - 1) / 2.0


def _risen(numbers: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> tuple[int, Any]:
    """The number of pairs that rise less the number of those that fall; and the numbers, sorted.

    As in merge sort: within each half, and between the two. All pairs at once would take n * n memory.
    """
    if numbers.size < 2:
        return 0, numbers
    half = numbers.size // 2
    (first, earlier), (second, later) = _risen(numbers[:half]), _risen(numbers[half:])
    below = np.searchsorted(earlier, later, side="left").sum()
    upto = np.searchsorted(earlier, later, side="right").sum()
    fallen = earlier.size * later.size - int(upto)
    return first + second + int(below) - fallen, np.sort(numbers, kind="stable")


def _kendall(values: Sequence[float]) -> float:
    """Kendall's S over its standard deviation for exchangeable values, corrected for ties."""
    numbers = np.asarray(values, dtype=float)
    n = numbers.size
    score = float(_risen(numbers)[0])
    ties = np.unique(numbers, return_counts=True)[1].astype(float)
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    return score / math.sqrt(variance) if variance > 0 else 0.0
