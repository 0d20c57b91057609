"""The learning-rate range test, as a baseline: the rate that one short run of rising rates suggests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from training_data import Data
from training_loop import MakeModel, Training
from training_plan import Plan

from autotune.measure.objective import Diverged

LOWEST, HIGHEST = 1e-6, 10.0
UPDATES = 100
SMOOTHING = 0.9
HOPELESS = 4.0
"""It ends where the smoothed loss is so many times its lowest."""

LEFT_OUT = 10
"""Of the first rates, of which the loss says nothing yet."""


def suggested_rate(make: MakeModel, data: Data, plan: Plan, seed: int, device: torch.device) -> float:
    """Where the loss falls most steeply over the logarithm of the rate.

    L. N. Smith, *Cyclical Learning Rates for Training Neural Networks*, WACV 2017, section 3.3, with the
    steepest point as the suggestion, as the finders of Lightning and fastai have it.
    """
    plain = replace(plan, warmup=0.0, schedule="constant", coupling="none")
    training = Training(make, data, plain, seed, UPDATES, plan.samples, device)
    rates, losses = [], []
    smooth = lowest = 0.0
    for place in range(UPDATES):
        rate = LOWEST * (HIGHEST / LOWEST) ** (place / (UPDATES - 1))
        training.plan = replace(plain, rate=rate)
        try:
            loss = training.step()
        except Diverged:
            break
        smooth = SMOOTHING * smooth + (1 - SMOOTHING) * loss
        unbiased = smooth / (1 - SMOOTHING ** (place + 1))
        lowest = unbiased if place == 0 else min(lowest, unbiased)
        if unbiased > HOPELESS * lowest:
            break
        rates.append(rate)
        losses.append(unbiased)
    usable = losses[LEFT_OUT:]
    if len(usable) < 2:
        return plan.rate
    return float(rates[LEFT_OUT + int(np.gradient(np.array(usable)).argmin())])
