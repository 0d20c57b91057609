"""A goal that is a product of powers of the knobs, and so is known far beyond what was tried.

Where the largest batch that fits is wanted, the goal is the batch size itself; an ordinary process has to
learn that, and goes on doubting that 200 is more than 190. This does not matter while there is much to gain.
At a limit of something measured there is not: the best lies a few per cent beyond what is known to fit, and
the only question is what fits.
"""

from __future__ import annotations

import numpy as np

from autotune.search.models.arrays import Floats
from autotune.search.models.demand import CLOSE, log_densities
from autotune.search.models.features import Features
from autotune.search.models.gaussian_process import GaussianProcess, Inputs
from autotune.search.models.trend import Trend

FEWEST = 3
"""How many values it takes to see a law."""
PLAIN = 2.0
"""A law holds if it makes each value more probable by this, in natural logarithms and on average. The goals
of recorded and of modelled kernels never came to 1, those that are a product of knobs come to 3 and more."""


def law_of(
    usual: GaussianProcess, features: Features, inputs: Inputs, targets: Floats, uncut: Floats, known: Floats
) -> GaussianProcess | None:
    """A process that follows the law; ``None`` where it does not hold.

    ``usual`` is fitted to the ``targets`` (n,), which have the variances ``known`` (n,). The law has to
    explain the ``uncut`` ones: with the slow side cut, a default that is far behind would seem to be near,
    and the law would follow that.
    """
    if len(targets) < FEWEST:
        return None
    powers = Trend(features)

    def law(inputs: Inputs) -> Floats:
        return np.hstack([np.ones((len(inputs), 1)), powers(inputs)])

    process = GaussianProcess(features.columns, CLOSE, law)
    process.fit(inputs, uncut, known)
    lawful = log_densities(process, inputs, uncut, known)
    gain = lawful - log_densities(usual, inputs, targets, known)
    return process if gain.mean() > PLAIN else None
