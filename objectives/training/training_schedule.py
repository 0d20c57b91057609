"""The learning rate at each update: its peak, a warm-up, a way down. Pure."""

from __future__ import annotations

import math

REFERENCE_BATCH = 64
"""The batch that a rate is meant for where it is coupled to the batch."""

COUPLINGS = {"none": 0.0, "sqrt": 0.5, "linear": 1.0}
"""By which power of the batch the rate grows: linear for SGD (P. Goyal et al., *Accurate, Large Minibatch
SGD*, arXiv:1706.02677, section 2.1), the square root for Adam (S. Malladi et al., NeurIPS
2022)."""

SCHEDULES = ("constant", "linear", "cosine", "step")


def coupled(rate: float, batch: int, coupling: str) -> float:
    """The peak rate for a batch of so many samples."""
    return float(rate * (batch / REFERENCE_BATCH) ** COUPLINGS[coupling])


def factor(update: int, updates: int, warmup: float, schedule: str) -> float:
    """What the peak rate is multiplied by at an update, the first one being 0, of ``updates`` in all.

    ``warmup`` is the fraction of them in which the rate rises to its peak in equal steps (Goyal et al.,
    section 2.2). Then it goes down to 0, in a line or in half a cosine (I. Loshchilov and F. Hutter, *SGDR*,
    arXiv:1608.03983, equation 5), or to a tenth and a hundredth at 60 % and 85 % of the way, or not at all.
    """
    rising = int(warmup * updates)
    if update < rising:
        return (update + 1) / (rising + 1)
    done = (update - rising) / max(1, updates - rising)
    match schedule:
        case "constant":
            return 1.0
        case "linear":
            return 1.0 - done
        case "cosine":
            return 0.5 * (1.0 + math.cos(math.pi * done))
    return 1.0 if done < 0.6 else 0.1 if done < 0.85 else 0.01  # "step"
