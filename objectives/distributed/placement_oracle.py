"""What a placed model has to agree with: gradients and losses of the same model in one piece, in float64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from placement_device import MOMENTUM, RATE, unsplit, unsplit_loss
from placement_models import Model

Gradients = Mapping[int, Mapping[str, np.ndarray]]


@dataclass(frozen=True)
class Truth:
    """Of one step on one batch."""

    gradients: Gradients
    loss: float
    after: float
    """The loss of the same batch after the step."""

    def error(self, parts: Sequence[tuple[Gradients, float, float]]) -> float:
        """The largest difference, relative to the largest element of what it differs from.

        ``parts``: gradients and the two losses of each device, which are 0 where the last item is elsewhere.
        Infinite where an item is missing, or on two devices.
        """
        items = [item for gradients, _, _ in parts for item in gradients]
        if sorted(items) != sorted(self.gradients):
            return float("inf")
        errors = [
            abs(sum(p[1] for p in parts) - self.loss) / abs(self.loss),
            abs(sum(p[2] for p in parts) - self.after) / abs(self.after),
        ]
        for gradients, _, _ in parts:
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
    modules = unsplit(model, seed)
    batch = model.draw(np.random.default_rng(seed))
    loss = unsplit_loss(model, modules, batch)
    loss.backward()  # type: ignore[no-untyped-call]
    gradients = {
        item: {name: p.grad.numpy().copy() for name, p in module.named_parameters() if p.grad is not None}
        for item, module in enumerate(modules)
    }
    parameters = [p for module in modules for p in module.parameters()]
    torch.optim.SGD(parameters, RATE, MOMENTUM).step()
    with torch.no_grad():
        after = unsplit_loss(model, modules, batch)
    return Truth(gradients, float(loss.detach()), float(after))
