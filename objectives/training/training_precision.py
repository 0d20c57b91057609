"""What a model computes in, and what its weights are updated in: always float32."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from training_plan import Plan

TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class Weights:
    """The weights of a model, and what an optimiser updates for them: themselves, or float32 masters."""

    def __init__(self, model: nn.Module, dtype: torch.dtype, masters: bool) -> None:
        self.model = model
        self._masters = masters and dtype is not torch.float32
        if self._masters:
            self.updated = [p.detach().clone().float() for p in model.parameters()]
            for master in self.updated:
                master.requires_grad_(True)
            model.to(dtype)
        else:
            self.updated = list(model.parameters())

    def gather(self) -> None:
        """Hand the gradients of the model to what is updated."""
        if self._masters:
            for master, p in zip(self.updated, self.model.parameters(), strict=True):
                master.grad = None if p.grad is None else p.grad.float()
                p.grad = None

    @torch.no_grad()
    def publish(self) -> None:
        """Hand what was updated back to the model."""
        if self._masters:
            for master, p in zip(self.updated, self.model.parameters(), strict=True):
                p.copy_(master)

    def forget_gradients(self) -> None:
        for p in (*self.updated, *self.model.parameters()):
            p.grad = None

    def state(self) -> list[Tensor]:
        return [p.detach().cpu().clone() for p in self.updated]

    @torch.no_grad()
    def restore(self, state: Iterable[Tensor]) -> None:
        for p, saved in zip(self.updated, state, strict=True):
            p.copy_(saved)
        self.publish()


class Precision:
    """Casting, loss scaling and the weights of one run."""

    def __init__(self, model: nn.Module, plan: Plan, device: torch.device) -> None:
        self.dtype = TYPES[plan.dtype]
        self.device = device
        self.weights = Weights(model.to(device), self.dtype, plan.masters)
        self._cast_inputs = plan.masters
        self._autocast = self.dtype is not torch.float32 and not plan.masters
        scaled = self.dtype is torch.float16
        self._fixed = float(plan.loss_scale) if scaled and plan.scaling == "static" else None
        scale = plan.loss_scale if self._fixed else 2.0**16
        self.scaler = torch.amp.GradScaler(device.type, init_scale=scale, growth_interval=100, enabled=scaled)

    def logits(self, inputs: Tensor) -> Tensor:
        """What the model says of ``inputs``, in float32."""
        if self._cast_inputs and inputs.is_floating_point():
            inputs = inputs.to(self.dtype)
        with self._casting():
            said: Tensor = self.weights.model(inputs)
        return said.float()

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of a loss to those that are there."""
        self.scaler.scale(loss).backward()

    def gradients(self, optimiser: torch.optim.Optimizer) -> list[Tensor]:
        """The gradients of what is updated, in float32 and unscaled."""
        self.weights.gather()
        self.scaler.unscale_(optimiser)
        return [p.grad for p in self.weights.updated if p.grad is not None]

    def update(self, optimiser: torch.optim.Optimizer) -> None:
        """One update by the gradients; left out where scaling made them overflow."""
        self.scaler.step(optimiser)
        self.scaler.update(self._fixed)
        self.weights.publish()
        self.weights.forget_gradients()

    def state(self) -> dict[str, Any]:
        return {"weights": self.weights.state(), "scaler": self.scaler.state_dict()}

    def restore(self, state: dict[str, Any]) -> None:
        self.weights.restore(state["weights"])
        self.scaler.load_state_dict(state["scaler"])

    def _casting(self) -> AbstractContextManager[Any]:
        if not self._autocast:
            return nullcontext()
        return torch.autocast(self.device.type, self.dtype)
