"""Whether contenders were slower, or faster, in the finale than in the search: all alike, or one of two.

The verdict depends on the finale alone, in which all are measured side by side. But the finalists were
chosen by what was measured before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from autotune.measure.outcome import Estimate

MUCH = 1.5
"""A factor that the luck of the best readings, caches and noise do not reach for all contenders at once."""
APART = 2.0
"""A factor by which the luck of the best readings does not change how two values compare."""


def drift(searched: Mapping[str, float], again: Mapping[str, float]) -> float:
    """The factor by which all values are at least larger ``again`` than when ``searched``; both are by hash.

    Below 1 if all are smaller; 1 if they moved in both directions, or fewer than two can be compared.
    """
    pairs = [(searched[one], value) for one, value in again.items() if one in searched]
    if len(pairs) < 2 or not all(0.0 < part < math.inf for pair in pairs for part in pair):
        return 1.0
    ratios = [value / before for before, value in pairs]
    return min(ratios) if min(ratios) > 1.0 else max(ratios) if max(ratios) < 1.0 else 1.0


def say_drift(factor: float) -> str:
    """A remark on a finale whose values drifted by ``factor`` since the search; empty if that is little."""
    if 1 / MUCH < factor < MUCH:
        return ""
    return (
        f"all values measured again are {_times(factor)} as in the search, or more:"
        " something changed meanwhile (a load, a clock, a cache), and without that change the finalists"
        " might have been others"
    )


def shift(
    searched: Mapping[str, Estimate], again: Mapping[str, float], one: str, other: str, *, minimize: bool
) -> float:
    """The factor by which the ratio of ``one`` to the ``other`` is larger ``again`` than when ``searched``.

    A load does so: it delays what runs for long more than what is soon over. An objective that slows down
    steadily does so too, since the winner was searched later. 1 where it cannot be told, or neither reads
    worse now: then it was the search that was disturbed, and the finale is the truer one. A value that lies
    in its interval of the search is not known to have moved: two noisy readings are often far apart.
    """
    values = [(searched[own], again[own]) for own in (one, other) if own in searched and own in again]
    if len(values) < 2 or not all(0.0 < part < math.inf for was, now in values for part in (was.value, now)):
        return 1.0
    moved = [1.0 if was.low <= now <= was.high else now / was.value for was, now in values]
    worse = max(moved) if minimize else 1.0 / min(moved)
    return moved[0] / moved[1] if worse >= MUCH else 1.0


def say_shift(factor: float) -> str:
    """A remark on a finale in which default and winner compare otherwise than in the search; else empty."""
    if 1 / APART < factor < APART:
        return ""
    return (
        f"the ratio of the default to the winner is {_times(factor)} as in the search: one of them has slowed"
        " down more than the other since (a load, a cache, or an objective that slows down as it goes), and"
        " the speed-up may be another without that; autotune verify measures both again"
    )


def _times(factor: float) -> str:
    return f"{factor:.2g} times as large" if factor > 1 else f"{1 / factor:.2g} times as small"
