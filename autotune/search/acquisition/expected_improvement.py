"""What a configuration is worth trying for."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from autotune.search.models.arrays import Floats

FAR = -6.0
"""Standard deviations below which the expected improvement is computed by its asymptote."""


def log_expected_improvement(mean: Floats, spread: Floats, best: float) -> Floats:
    """Logarithm of the expected improvement on ``best`` (lower is better) under a normal prediction.

    ``spread * (z * Phi(z) + phi(z))`` with ``z = (best - mean) / spread`` (Jones et al., Journal of Global
    Optimization 13, 1998). The logarithm keeps an order among the hopeless, where the plain value is 0
    (Ament et al., Unexpected Improvements to Expected Improvement, NeurIPS 2023).
    """
    z = (best - mean) / spread
    density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    near = np.maximum(z * ndtr(z) + density, 1e-300)
    tail = np.minimum(z, FAR)
    far = -0.5 * tail * tail - 0.5 * math.log(2.0 * math.pi) - 2.0 * np.log(-tail)
    return np.asarray(np.log(spread) + np.where(z < FAR, far, np.log(near)))
