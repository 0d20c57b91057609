"""What trials that were stopped early would have come to, as far as the others tell.

A loss after three epochs and one after 27 are different things, and neither replaces the other. But of trials
that went on past a rung both are known: they show what a loss at that rung has come to in the end, and how
surely.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.search.contract import Observation
from autotune.search.models.arrays import Floats

HUGE = 1e150
"""Larger numbers count as this one, since their squares overflow."""
LARGEST = 300.0
"""The largest logarithm of a loss, for the same reason."""
PRIOR = 1.0
"""The assumption that what is behind at a rung stays as far behind counts as so many trials."""


@dataclass(frozen=True)
class AtFull:
    """Losses as they would be with the whole resource; both of shape (n,)."""

    losses: Floats
    """Lower is better; NaN where there is no telling."""
    doubts: Floats
    """The standard deviation of each: 0 for what was trained to its end, and where it is not known."""


def at_full(observations: Sequence[Observation], finals: Floats, sign: float) -> AtFull:
    """What each trial came to, or would have come to.

    ``finals``, of shape (n,), holds the losses of the trials that used the whole resource, and the last ones
    of those that were stopped, where they are known. ``sign`` turns the values of the curves into losses.
    Rungs are taken from the last to the first. At each, the trials that went further give pairs of (loss
    there, loss at the end), the latter estimated in its turn where they were stopped later. Between those
    pairs the loss at the end is read off their isotonic regression. A trial that was worse than all of them
    is as much worse in the end as a linear regression of the pairs says. Where none has gone further, the
    loss at the rung is all there is, and is taken as it stands.

    Those that went further were the best there, and tell little about those that were far behind. The larger
    the part of all trials between a trial and them, the more its loss too is taken as it stands.

    So is the loss of a trial that was stopped and has no curve to compare. Its doubt is the standard
    deviation of the trials that used the whole resource.
    """
    curves = [{at: min(max(value, -HUGE), HUGE) for at, value in o.curve} for o in observations]
    stopped = np.array([o.fraction < 1.0 for o in observations], dtype=bool)
    losses = np.where(stopped, math.nan, finals)
    doubts = np.zeros(len(losses))
    last = [
        max(curve) if curve and halted else math.nan for curve, halted in zip(curves, stopped, strict=True)
    ]
    for rung in sorted({at for at in last if not math.isnan(at)}, reverse=True):
        here = [i for i, at in enumerate(last) if at == rung]
        further = [i for i, c in enumerate(curves) if rung in c and not math.isnan(losses[i])]
        behind = np.array([sign * curves[i][rung] for i in here])
        known = np.array([sign * curves[i][rung] for i in further])
        losses[here], doubts[here] = _read_off(known, losses[further], behind)
    bare = stopped & np.array([not c for c in curves], dtype=bool) & ~np.isnan(finals)
    ended = finals[~stopped & ~np.isnan(finals)]
    losses[bare], doubts[bare] = finals[bare], ended.std() if ended.size else 0.0
    return AtFull(losses, doubts)


def _read_off(known: Floats, ends: Floats, wanted: Floats) -> tuple[Floats, Floats]:
    """The losses at the end for those ``wanted`` at a rung, and how far off they may be."""
    if not known.size:
        return wanted, np.zeros(len(wanted))
    if min(known.min(), ends.min(), wanted.min()) > 0.0:
        middle, doubt = _regressed(np.log(known), np.log(ends), np.log(wanted))
        ends_at = np.exp(np.minimum(middle, LARGEST))  # losses of nearly nothing lie far apart in logarithms
        return ends_at, ends_at * np.minimum(doubt, LARGEST)
    return _regressed(known, ends, wanted)


def _regressed(known: Floats, ends: Floats, wanted: Floats) -> tuple[Floats, Floats]:
    from scipy.optimize import isotonic_regression

    order = np.lexsort((ends, known))
    at = known[order]
    levels = isotonic_regression(ends[order]).x
    # A prior for a slope of 1: as if said by one more trial, as far off as the spread at the rung.
    off = known - known.mean()
    # The spread by quantiles, since the loss of a training that blows up has no bounds.
    low, high = np.quantile(np.concatenate([known, wanted]), (0.16, 0.84))
    strength = PRIOR * float((high - low) / 2) ** 2
    slope = max(0.0, float(off @ ends + strength) / (float(off @ off) + strength)) if strength else 1.0
    beyond = np.maximum(wanted - at[-1], 0.0)
    # The variance that the slope leaves unexplained, and how unsure the slope itself is.
    residuals = ends - ends.mean() - slope * off
    unexplained = float(residuals @ residuals) / max(1, len(ends) - 1)
    unsure = unexplained / (float(off @ off) + strength) if strength else 0.0
    # Between two that are a denormal number apart the quotient overflows: no more than the level above.
    most = levels[np.minimum(np.searchsorted(at, wanted, side="right"), len(at) - 1)]
    middle = np.minimum(np.interp(wanted, at, levels), most) + slope * beyond
    middle += _crowd(known, wanted) * np.maximum(wanted - middle, 0.0)
    return middle, np.sqrt(unexplained + unsure * beyond**2)


def _crowd(known: Floats, wanted: Floats) -> Floats:
    """Which part of all trials at the rung stands between each of ``wanted`` and those that went further."""
    worse = np.sort(wanted[wanted > known.max()])
    return np.asarray(np.searchsorted(worse, wanted) / (len(known) + len(wanted)))
