"""What a placed model has to agree with: gradients and losses of the same model in one piece, in float64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from placement_device import MOMENTUM, RATE
from placement_models import Model
from torch import nn

Gradients = Mapping[int, Mapping[str, np.ndarray]]


@dataclass(frozen=True)
class Truth:
    """Of two steps, each on a batch of its own."""

    gradients: Gradients
    """Of the second step."""
    losses: tuple[float, float]
    """Of each batch, before its step."""

    def error(self, parts: Sequence[tuple[Gradients, tuple[float, float]]]) -> float:
        """The largest difference, relative to the largest element of what it differs from.

        ``parts``: gradients and losses of each device, which are 0 where the last item is elsewhere.
        Infinite where an item is missing, or on two devices.
        """
        items = [item for gradients, _ in parts for item in gradients]
        if sorted(items) != sorted(self.gradients):
            return float("inf")
        found_losses = [sum(losses) for losses in zip(*(losses for _, losses in parts), strict=True)]
        errors = [abs(f - true) / abs(true) for f, true in zip(found_losses, self.losses, strict=True)]
        for gradients, _ in parts:
            for item, found in gradients.items():
                if set(found) != set(self.gradients[item]):
                    return float("inf")
                errors += [_apart(found[name], true) for name, true in self.gradients[item].items()]
        return float("inf") if any(np.isnan(errors)) else float(max(errors))


def _apart(found: np.ndarray, true: np.ndarray) -> float:
    if found.shape != true.shape:
        return float("inf")
    return float(np.abs(found - true).max() / max(np.abs(true).max(), 1e-30))


def truth(model: Model, seed: int) -> Truth:
    """What the placed model should find from the same seed."""
    modules = [model.module(item, seed).double() for item in range(len(model.items))]
    rng = np.random.default_rng(seed)
    first, second = (model.draw(rng) for _ in range(2))
    optimiser = torch.optim.SGD([p for module in modules for p in module.parameters()], RATE, MOMENTUM)
    loss = _loss(model, modules, first)
    loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()
    optimiser.zero_grad()
    after = _loss(model, modules, second)
    after.backward()  # type: ignore[no-untyped-call]
    gradients = {
        item: {name: p.grad.numpy().copy() for name, p in module.named_parameters() if p.grad is not None}
        for item, module in enumerate(modules)
    }
    return Truth(gradients, (float(loss.detach()), float(after.detach())))


def _loss(
    model: Model, modules: Sequence[nn.Module], batch: tuple[torch.Tensor, torch.Tensor]
) -> torch.Tensor:
    """Of the whole batch, computed in one piece."""
    data, targets = batch
    first = data.double() if data.is_floating_point() else data
    outputs: list[torch.Tensor] = []
    for number, (item, module) in enumerate(zip(model.items, modules, strict=True)):
        given = [outputs[maker] for maker in item.reads] or [first]
        outputs.append(module(*given, *([targets] if number == model.last else [])))
    return outputs[-1]
