"""What trials that were stopped early would have come to, as far as the others tell.

A loss after three epochs and one after 27 are different things, and neither replaces the other. But trials
that went on past a rung are known at both: they say what standing *so* at that rung has meant in the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from autotune.search.contract import Observation

Floats = NDArray[np.float64]


def at_full(observations: Sequence[Observation], finals: Floats, sign: float) -> Floats:
    """Losses as they would be with the whole resource, lower is better; NaN where there is no telling.

    Shape (n,), as ``finals``, which holds the losses of the trials that used all of it. ``sign`` turns the
    values of the curves into losses. Rungs are taken from the last to the first. At each, the trials that
    went further give pairs of (loss there, loss at the end), the latter estimated in its turn where they were
    stopped later. Between those pairs the loss at the end is read off their isotonic regression. A trial
    that was worse than all of them stays as far behind as it was, which is what it was stopped for. Where
    none has gone further, the loss at the rung is all there is, and is taken as it stands.
    """
    curves = [dict(o.curve) for o in observations]
    stopped = np.array([o.fraction < 1.0 for o in observations], dtype=bool)
    losses = np.where(stopped, math.nan, finals)
    last = [
        max(curve) if curve and halted else math.nan for curve, halted in zip(curves, stopped, strict=True)
    ]
    for rung in sorted({at for at in last if not math.isnan(at)}, reverse=True):
        here = [i for i, at in enumerate(last) if at == rung]
        further = [i for i, c in enumerate(curves) if rung in c and not math.isnan(losses[i])]
        behind = np.array([sign * curves[i][rung] for i in here])
        known = np.array([sign * curves[i][rung] for i in further])
        losses[here] = _read_off(known, losses[further], behind)
    return losses


def _read_off(known: Floats, ends: Floats, wanted: Floats) -> Floats:
    if not known.size:
        return wanted
    from scipy.optimize import isotonic_regression

    order = np.lexsort((ends, known))
    at = known[order]
    regressed = isotonic_regression(ends[order]).x
    beyond = np.maximum(wanted - at[-1], 0.0)
    read: Floats = np.interp(wanted, at, regressed) + beyond
    return read
