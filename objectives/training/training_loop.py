"""One training: updates, validation, checkpoints, and its end where the loss explodes."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from training_data import Data, Part
from training_models import Blocks
from training_plan import Plan
from training_precision import Precision
from training_schedule import factor

from autotune.measure.objective import Diverged

MakeModel = Callable[[], Blocks]

CHECKED_UPDATES = 10
"""The loss of each of the first updates is looked at, and later that of every tenth: looking waits for a
GPU."""

EXPLODED = 5.0
"""A loss so many times that of guessing has exploded: no model comes back from there in time."""

MOST_SKIPPED = 25
"""Updates that loss scaling may leave out in a row."""

VALIDATION_BATCH = 512


@dataclass(frozen=True)
class Tensors:
    """A part of the data on the device."""

    inputs: Tensor
    targets: Tensor

    def __len__(self) -> int:
        return len(self.inputs)


def on_device(part: Part, device: torch.device) -> Tensors:
    # A copy: memory maps of prepared data cannot be written to, which torch does not know of.
    inputs, targets = (torch.from_numpy(np.array(array)).to(device) for array in (part.inputs, part.targets))
    return Tensors(inputs, targets)


@dataclass
class Progress:
    """How far a training has come."""

    step: int = 0
    """Steps of the resource that are done."""
    updates: int = 0
    seconds: float = 0.0
    """Of training, validation left out, over all sessions of it."""
    samples: int = 0
    reached: float | None = None
    """The seconds after which the validation loss had come to the target."""


class Training:
    """A model that is trained by a plan, from a seed, for ``steps`` steps of ``step_samples`` samples
    each."""

    def __init__(
        self,
        make: MakeModel,
        data: Data,
        plan: Plan,
        seed: int,
        steps: int,
        step_samples: int,
        device: torch.device,
    ) -> None:
        torch.manual_seed(seed)
        self.plan = plan
        self.seed = seed
        self.device = device
        self.progress = Progress()
        self._train = on_device(data.train, device)
        self._valid = on_device(data.valid, device)
        self._data = data
        self._step_samples = step_samples
        self._updates = steps * math.ceil(step_samples / plan.samples)
        self._order = _Order(len(data.train), seed)
        self._skipped = 0
        model = make()
        model.recompute = plan.recompute
        self.precision = Precision(model, plan, device)
        self.optimiser = make_optimiser(self.precision.weights.updated, plan)
        self._guess: float | None = None

    # -- training ------------------------------------------------------------------------------

    def step(self) -> float:
        """One step of the resource; the mean training loss in it. Raises :class:`Diverged`."""
        self._model.train()
        began = self._now()
        total = torch.zeros((), device=self.device)
        first = self.progress.step * self._step_samples
        for start in range(first, first + self._step_samples, self.plan.samples):
            stop = min(start + self.plan.samples, first + self._step_samples)
            loss = self._update(self._order.places(start, stop))
            total += loss * (stop - start)
        self.progress.seconds += self._now() - began
        self.progress.samples += self._step_samples
        self.progress.step += 1
        return float(total) / self._step_samples

    def _update(self, places: NDArray[np.int64]) -> Tensor:
        """One update by these samples; their mean loss."""
        chosen = torch.from_numpy(places).to(self.device)
        loss = self.accumulate(chosen)
        looked_at = self.progress.updates < CHECKED_UPDATES or self.progress.updates % CHECKED_UPDATES == 0
        if looked_at:
            self._look_at(float(loss))
        gradients = self.precision.gradients(self.optimiser)
        if self.plan.clip:
            nn.utils.clip_grad_norm_(self.precision.weights.updated, self.plan.clip)
        rate = self.plan.peak * factor(
            self.progress.updates, self._updates, self.plan.warmup, self.plan.schedule
        )
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        if self.precision.scaler.is_enabled():
            self._look_at_overflow(gradients)
        self.precision.update(self.optimiser)
        self.progress.updates += 1
        return loss

    def accumulate(self, chosen: Tensor) -> Tensor:
        """Add the gradients of the mean loss over the samples, a micro-batch at a time; that loss."""
        total = torch.zeros((), device=self.device)
        for part in chosen.split(self.plan.batch):
            inputs, targets = self._train.inputs[part], self._train.targets[part]
            loss = mean_loss(self.precision.logits(inputs), targets) * (len(part) / len(chosen))
            self.precision.backward(loss)
            total += loss.detach()
        return total

    def _look_at(self, loss: float) -> None:
        if self._guess is None:
            self._guess = max(loss, 0.1)  # before any update a model can only guess
        if not math.isfinite(loss) or loss > EXPLODED * self._guess:
            raise Diverged(f"the training loss is {loss:.4g} after {self.progress.updates} updates")

    def _look_at_overflow(self, gradients: list[Tensor]) -> None:
        usable = all(bool(torch.isfinite(g).all()) for g in gradients)
        self._skipped = 0 if usable else self._skipped + 1
        if self._skipped > MOST_SKIPPED:
            raise Diverged(f"{self._skipped} updates in a row overflowed in {self.plan.dtype}")

    # -- what it is worth ----------------------------------------------------------------------

    def validate(self) -> tuple[float, float]:
        """Loss and accuracy on what it is not trained on."""
        return self._evaluate(self._valid)

    def test(self) -> tuple[float, float]:
        """Loss and accuracy on the part that a search never sees."""
        return self._evaluate(on_device(self._data.test, self.device))

    @torch.no_grad()
    def _evaluate(self, part: Tensors) -> tuple[float, float]:
        self._model.eval()
        loss = right = 0.0
        for inputs, targets in zip(
            part.inputs.split(VALIDATION_BATCH), part.targets.split(VALIDATION_BATCH), strict=True
        ):
            logits = self.precision.logits(inputs)
            loss += float(mean_loss(logits, targets)) * len(inputs)
            right += float((logits.argmax(-1) == targets).float().mean()) * len(inputs)
        return loss / len(part), right / len(part)

    # -- checkpoints ---------------------------------------------------------------------------

    def save(self, file: Path) -> None:
        """Write all that is needed to go on, whole or not at all."""
        state = {
            "seed": self.seed,
            "plan": repr(self.plan),
            "progress": vars(self.progress),
            "guess": self._guess,
            "precision": self.precision.state(),
            "optimiser": self.optimiser.state_dict(),
        }
        draft = file.with_name(f"{file.name}.{os.getpid()}")
        torch.save(state, draft)
        draft.replace(file)

    def restore(self, file: Path) -> bool:
        """Go on from a checkpoint of this very training; ``False`` where there is none."""
        try:
            state: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
        except FileNotFoundError:
            return False
        if (state["seed"], state["plan"]) != (self.seed, repr(self.plan)):
            return False
        self.progress = Progress(**state["progress"])
        self._guess = state["guess"]
        self.precision.restore(state["precision"])
        self.optimiser.load_state_dict(state["optimiser"])
        return True

    @property
    def _model(self) -> nn.Module:
        return self.precision.weights.model

    def _now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()


class _Order:
    """An endless order of the samples: each pass over them has a new one, which follows from the seed."""

    def __init__(self, count: int, seed: int) -> None:
        self._count = count
        self._seed = seed
        self._passes: dict[int, NDArray[np.int64]] = {}

    def places(self, start: int, stop: int) -> NDArray[np.int64]:
        parts = []
        while start < stop:
            turn, within = divmod(start, self._count)
            end = min(self._count, within + stop - start)
            parts.append(self._pass(turn)[within:end])
            start += end - within
        return np.concatenate(parts)

    def _pass(self, turn: int) -> NDArray[np.int64]:
        if turn not in self._passes:
            self._passes = {turn: np.random.default_rng((self._seed, turn)).permutation(self._count)}
        return self._passes[turn]


def mean_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross entropy in nats, a mean over all targets. Logits of shape (..., classes)."""
    return nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))


def make_optimiser(updated: list[Tensor], plan: Plan) -> torch.optim.Optimizer:
    """The optimiser of a plan, over what it updates."""
    if plan.optimiser == "sgd":
        return torch.optim.SGD(
            updated,
            lr=plan.peak,
            momentum=plan.momentum,
            nesterov=plan.nesterov and plan.momentum > 0,
            weight_decay=plan.weight_decay,
        )
    betas = (plan.momentum, plan.beta2)
    return torch.optim.AdamW(updated, lr=plan.peak, betas=betas, weight_decay=plan.weight_decay)
