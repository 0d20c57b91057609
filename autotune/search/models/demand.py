"""Whether a demand is a product or a sum: two models of one measured number, and which of them holds.

If sizes multiply, the logarithm of a demand is simple; if a part is always there and the rest is added to it,
the demand itself is. The measured values decide: each is predicted from all the others, and the model under
which they are more probable is taken (Geisser and Eddy, Journal of the American Statistical Association 74,
1979; for Gaussian processes Rasmussen and Williams 2006, section 5.4.2). Compared are densities of the plain
value, so that a logarithm pays for what it stretches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from autotune.search.models.arrays import Flags, Floats
from autotune.search.models.features import Features
from autotune.search.models.gaussian_process import GaussianProcess, Inputs, Prior
from autotune.search.models.sums import Sum

CLOSE = Prior(
    smooth_weight=0.1,
    code_weight=0.2,
    smooth_variance=1e-2,
    code_variance=1e-4,
    noise=1e-4,
    noise_spread=2.0,
)
"""Beside a trend that explains nearly all of a standardised number: slight bends, and hardly any noise."""
FEWEST = 3
"""How many different values it takes to tell a sum from a product."""


@dataclass(frozen=True)
class Scale:
    """From measured values to the targets of a process: plain or logarithms, cut, centred and divided."""

    logarithmic: bool = False
    centre: float = 0.0
    divisor: float = 1.0
    least: float = 0.0
    """Smaller values count as this before their logarithm is taken."""
    low: float = -math.inf
    high: float = math.inf
    """Where :meth:`raw` values are cut."""

    def __call__(self, values: ArrayLike) -> Floats:
        return np.asarray((np.clip(self.raw(values), self.low, self.high) - self.centre) / self.divisor)

    def raw(self, values: ArrayLike) -> Floats:
        """The plain values, or their logarithms."""
        own = np.asarray(values, dtype=float)
        return np.log(np.maximum(own, self.least)) if self.logarithmic else own

    def log_slopes(self, values: Floats) -> Floats:
        """The logarithm of the derivative of the target at each of the values, shape (n,)."""
        return -math.log(self.divisor) - (self.raw(values) if self.logarithmic else np.zeros(len(values)))

    def cuts(self, values: Floats) -> Flags:
        """Which of the values are cut, shape (n,)."""
        raw = self.raw(values)
        return (raw < self.low) | (raw > self.high)


class Fitted:
    """A process fitted to ``values`` (n,) on a scale, less what is expected of them ``ahead`` (n,)."""

    def __init__(
        self,
        process: GaussianProcess,
        scale: Scale,
        inputs: Inputs,
        values: Floats,
        ahead: Floats | float = 0.0,
    ) -> None:
        self.process, self.scale, self.inputs, self.values = process, scale, inputs, values
        self._ahead = ahead
        process.fit(inputs, scale(values) - ahead)

    def log_densities(self) -> Floats:
        """The logarithm of the density of each plain value (n,), as all the others predict it."""
        of_targets = log_densities(self.process, self.inputs, self.scale(self.values) - self._ahead)
        return of_targets + self.scale.log_slopes(self.values)


def log_densities(
    process: GaussianProcess, inputs: Inputs, targets: Floats, known: Floats | float = 0.0
) -> Floats:
    """The logarithm of the density of each target (n,), as all the others predict it.

    ``known``: the variance of each that was measured (n,), to which the noise is added.
    """
    inverse = np.linalg.inv(process.covariance_of_readings(process.view(inputs), known))
    variance = 1.0 / np.diag(inverse)
    missed = (inverse @ targets) * variance
    return np.asarray(-0.5 * (np.log(2.0 * math.pi * variance) + np.square(missed) / variance))


def likelier(
    usual: Fitted, features: Features, plain: Scale, unseen: float = 1.0, factors: int = 2
) -> Fitted:
    """``usual``, or a sum on the scale ``plain`` if the values are more probable under that.

    Values that either scale cuts do not count. ``unseen``: how much a knob that always had the same value may
    add, in units of ``plain``. ``factors``: of how many knobs a summand is the product, at most.
    """
    if len(np.unique(usual.values)) < FEWEST:
        return usual
    process = GaussianProcess(features.columns, CLOSE, Sum(features, usual.inputs, unseen, factors))
    added = Fitted(process, plain, usual.inputs, usual.values)
    whole = ~(usual.scale.cuts(usual.values) | plain.cuts(usual.values))
    gain = (added.log_densities() - usual.log_densities())[whole].sum()
    return added if gain > 0.0 else usual
