"""What a way to train must be right in, whatever it is set to: its gradient, and that small updates are not
lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from training_data import Data
from training_loop import MakeModel, Training, make_optimiser
from training_plan import Plan
from training_precision import TYPES, Precision

from autotune.measure.objective import WrongAnswer

TOLERANCES = {"float32": 1e-4, "bfloat16": 0.1, "float16": 0.02}
"""The difference of two gradients that rounding may make, relative to the length of the right one."""

MOST_SAMPLES, MOST_MICRO_BATCHES = 8, 3
"""The gradient is compared on few samples: what is wrong with its sum or its scale shows there as well."""

TINY_UPDATES = 16


def computing(plan: Plan) -> Plan:
    """The part of a plan that what is checked here depends on, at the few samples that it is checked with."""
    return Plan(
        batch=min(plan.batch, MOST_SAMPLES),
        accumulate=min(plan.accumulate, MOST_MICRO_BATCHES),
        dtype=plan.dtype,
        masters=plan.masters,
        scaling=plan.scaling,
        loss_scale=plan.loss_scale,
        recompute=plan.recompute,
    )


def gradient_error(make: MakeModel, data: Data, plan: Plan, seed: int, device: torch.device) -> float:
    """How far the gradient of accumulated micro-batches is from that of the whole batch in float32.

    ``plan`` is one that :func:`computing` gives. The last micro-batch is one short where it can be. Raises
    :class:`WrongAnswer` past :data:`TOLERANCES`.
    """
    count = min(max(plan.samples - 1, 1), len(data.train))
    own = _gradient(Training(make, data, plan, seed, 1, count, device), count)
    right = _right_gradient(make, data, seed, count, device)
    error = float((own - right).norm() / right.norm())
    if not error <= TOLERANCES[plan.dtype]:
        raise WrongAnswer(
            f"the gradient of {plan.accumulate} micro-batches in {plan.dtype} differs by {error:.2g} from"
            f" that of the whole batch in float32; {TOLERANCES[plan.dtype]:g} may be rounding"
        )
    return error


def _gradient(training: Training, count: int) -> Tensor:
    chosen = torch.arange(count, device=training.device)
    training.accumulate(chosen)
    gradients = training.precision.gradients(training.optimiser)
    return torch.cat([g.flatten() for g in gradients])


def _right_gradient(make: MakeModel, data: Data, seed: int, count: int, device: torch.device) -> Tensor:
    """Of the mean loss over the first samples, by nothing that a training is made of: it has no part of its
    mistakes."""
    torch.manual_seed(seed)
    model = make().to(device)
    first = (np.array(array[:count]) for array in (data.train.inputs, data.train.targets))
    inputs, targets = (torch.from_numpy(array).to(device) for array in first)
    logits = model(inputs)
    nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten()).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def tiny_updates_survive(plan: Plan, device: torch.device) -> None:
    """Updates too small for the type that the model computes in (of float32: for bfloat16) add up all the
    same.

    A weight of 1 goes down in sixteen steps, each an eighth of what that type can tell apart there. Raises
    :class:`WrongAnswer` where they are rounded away.
    """
    narrow = torch.bfloat16 if plan.dtype == "float32" else TYPES[plan.dtype]
    tiny = torch.finfo(narrow).eps / TINY_UPDATES
    slope = 2.0**-8  # small, so that loss scaling does not overflow
    model: Any = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)
    precision = Precision(model, plan, device)
    plain = replace(plan, optimiser="sgd", rate=tiny / slope, momentum=0.0)
    optimiser = make_optimiser(precision.weights.updated, plain)
    for _ in range(TINY_UPDATES):
        precision.backward((slope * precision.logits(torch.ones(1, 1, device=device))).sum())
        precision.gradients(optimiser)
        precision.update(optimiser)
    expected = 1.0 - TINY_UPDATES * tiny
    for name, weight in (("updated", precision.weights.updated[0]), ("used", model.weight)):
        if not abs(weight.item() - expected) <= tiny / 2:
            raise WrongAnswer(
                f"{TINY_UPDATES} updates of {tiny:.2g} are lost in {plan.dtype}: the weight that is {name} is"
                f" {weight.item():.6g}, and should be {expected:.6g}"
            )
