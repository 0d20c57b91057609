"""What a configuration is worth trying for."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erfcx, ndtr

from autotune.search.models.arrays import Floats

FAR = -1e4
"""Standard deviations from which on the part that is left of the density falls as their inverse square, to
eight digits. Beyond them the exact difference is lost to rounding."""


def log_expected_improvement(mean: Floats, spread: Floats, best: float) -> Floats:
    """Logarithm of the expected improvement on ``best`` (lower is better) under a normal prediction.

    ``spread * (z * Phi(z) + phi(z))`` with ``z = (best - mean) / spread`` (Jones et al., Journal of Global
    Optimization 13, 1998). The logarithm keeps an order among the hopeless, where the plain value is 0
    (Ament et al., Unexpected Improvements to Expected Improvement, NeurIPS 2023).
    """
    z = (best - mean) / spread
    tail, ahead = np.clip(z, FAR, 0.0), np.maximum(z, 0.0)
    # Below 0 the density is taken out, since Phi / phi = sqrt(pi / 2) erfcx(-z / sqrt(2)) never vanishes.
    left = np.log1p(tail * math.sqrt(math.pi / 2.0) * erfcx(-tail / math.sqrt(2.0)))
    left -= 2.0 * np.log(np.minimum(z, FAR) / FAR)
    below = left - 0.5 * z * z - 0.5 * math.log(2.0 * math.pi)
    above = np.log(ahead * ndtr(ahead) + np.exp(-0.5 * ahead * ahead) / math.sqrt(2.0 * math.pi))
    return np.asarray(np.log(spread) + np.where(z < 0.0, below, above))
