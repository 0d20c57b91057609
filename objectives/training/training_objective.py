"""What the training objectives have in common: one reading is one training, from a seed of its own.

Workload: the sizes of the model, and

* ``epochs``: steps of a whole training where the space sets no early stopping;
* ``step_samples``: samples in a step; 0, as in an epoch: each sample of the training part once;
* ``device``: ``cpu``, ``cuda`` or ``auto``;
* ``target``: a validation loss that the run is to come to; ``until: target`` ends it there, and makes a run
  that does not get there ``wrong``. With ``until: budget`` it goes on, and ``time_to_target`` is only
  recorded.

Metrics: ``loss`` and ``accuracy`` on the validation part; ``seconds`` of training alone; ``samples_per_s``;
``time_to_target`` in seconds of training, where it was reached; ``gap``, by how much the loss is above the
target; ``peak_memory`` in bytes (of the process, or allocated on the GPU); in the re-measurement also
``test_loss`` and ``test_accuracy``, on the part that no search sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from training_data import Data
from training_loop import Training
from training_models import Blocks
from training_oracle import computing, gradient_error, tiny_updates_survive
from training_plan import Plan
from training_range_test import suggested_rate

from autotune.measure.libc import trim_heap
from autotune.measure.memory import forget_peak, peak_resident
from autotune.measure.objective import (
    Baseline,
    Context,
    Diverged,
    Infeasible,
    Objective,
    OutOfMemory,
    WrongAnswer,
)
from autotune.measure.readings import Sample

CHECKPOINT = "training.pt"
_DEVICE = re.compile(r"cpu|cuda(:\d+)?")
MOST_SEED = 2**31


@dataclass(frozen=True)
class Textbook:
    """A way to train that people take over as it is."""

    name: str
    description: str
    plan: Plan


class TrainingObjective(Objective):
    """Base class. Subclasses say what the data and the model are, and what the textbooks do."""

    default: ClassVar[Plan] = Plan()
    """That of the ready space, for the range test to find a rate for."""
    textbooks: ClassVar[tuple[Textbook, ...]] = ()
    training_facts: ClassVar[tuple[str, ...]] = ("epochs", "step_samples", "device", "target", "until")
    """What a workload may say of any training: a part of a subclass's ``workload_facts``."""
    least_sizes: ClassVar[tuple[tuple[str, int], ...]] = ()
    """What the workload says of the model's size, and the least that each may be."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.sizes = {name: context.size(name, least=least) for name, least in self.least_sizes}
        self._checked: dict[Plan, float] = {}
        self.device = find_device(str(context.workload.get("device", "auto")))
        context.size("epochs", 1)  # a space with early stopping need not say
        context.size("step_samples", 0, least=0)
        said = context.workload.get("target")
        self.target = None if said is None else context.amount("target")
        self.until = context.choice("until", ("budget", "target"), default="budget")
        if self.until == "target" and self.target is None:
            raise Infeasible("workload.until is 'target', but there is no workload.target")

    def make_data(self) -> Data:
        raise NotImplementedError(f"{type(self).__name__} must define make_data()")

    def make_model(self) -> Blocks:
        raise NotImplementedError(f"{type(self).__name__} must define make_model()")

    @cached_property
    def data(self) -> Data:
        return self.make_data()

    @property
    def step_samples(self) -> int:
        return self.context.size("step_samples", 0, least=0) or len(self.data.train)

    # -- the way of a configuration ------------------------------------------------------------

    def load(self, prepared: Any) -> Plan:
        plan = prepared if isinstance(prepared, Plan) else Plan.of(prepared)
        if plan.samples > self.step_samples:
            raise Infeasible(
                f"an update of {plan.samples} samples is more than a step of {self.step_samples}"
            )
        return plan

    def check(self, loaded: Plan, rng: np.random.Generator) -> Mapping[str, float]:
        """The gradient is that of the whole batch in float32, and tiny updates are not lost.

        Rate and schedule have no part in that. So plans that compute alike are checked once a process:
        checking costs as much as an epoch of digits.
        """
        alike = computing(loaded)
        if alike not in self._checked:
            seed = int(rng.integers(MOST_SEED))
            with refusals():
                tiny_updates_survive(alike, self.device)
                error = gradient_error(self.make_model, self.data, alike, seed, self.device)
            self._checked[alike] = error
        return {"gradient_error": self._checked[alike]}

    def measure(self, loaded: Plan, rng: np.random.Generator) -> Sample | Mapping[str, float]:
        """One training."""
        self.forget_memory()
        steps = self.report.steps or self.context.size("epochs")
        seed = int(rng.integers(MOST_SEED))
        with refusals():
            training = Training(
                self.make_model, self.data, loaded, seed, steps, self.step_samples, self.device
            )
            metrics = self._train(training, steps)
            if self.final:
                metrics["test_loss"], metrics["test_accuracy"] = training.test()
        return Sample(metrics, facts={"data_sha256": self.data.sha256, "seed": seed})

    def _train(self, training: Training, steps: int) -> dict[str, float]:
        file = self.report.folder / CHECKPOINT if self.report.folder is not None else None
        if file is not None:
            training.restore(file)
        progress = training.progress
        metrics: dict[str, float] = {}
        for step in range(progress.step + 1, steps + 1):
            training.step()
            loss, accuracy = training.validate()
            if not np.isfinite(loss):
                raise Diverged(f"the validation loss is {loss} after {step} steps")
            if self.target is not None and progress.reached is None and loss <= self.target:
                progress.reached = progress.seconds
            metrics = self._metrics(training, loss, accuracy)
            if file is not None and self.report.may_pause(step):
                training.save(file)  # before the report, which may be the last thing that happens
            self.report(step, metrics)
            if self.until == "target" and progress.reached is not None:
                return metrics
        if self.until == "target":
            raise WrongAnswer(
                f"the validation loss is {metrics['loss']:.4g} after {steps} steps, and the target "
                f"{self.target}",
                metrics,
            )
        return metrics

    def _metrics(self, training: Training, loss: float, accuracy: float) -> dict[str, float]:
        progress = training.progress
        metrics = {
            "loss": loss,
            "accuracy": accuracy,
            "seconds": progress.seconds,
            "samples_per_s": progress.samples / progress.seconds,
            "peak_memory": float(self.peak_memory()),
        }
        if progress.reached is not None:
            metrics["time_to_target"] = progress.reached
        if self.target is not None:
            metrics["gap"] = loss - self.target
        return metrics

    # -- memory --------------------------------------------------------------------------------

    def forget_memory(self) -> None:
        """What an earlier training left behind is no part of this one's peak."""
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(self.device)
        else:
            trim_heap()
            forget_peak()

    def peak_memory(self) -> int:
        if self.device.type == "cuda":
            return int(torch.cuda.max_memory_allocated(self.device))
        return peak_resident()

    # -- baselines -----------------------------------------------------------------------------

    def baselines(self) -> tuple[Baseline, ...]:
        found = Baseline("lr-finder", "the default, with the rate that a range test suggests")
        return (*(Baseline(t.name, t.description) for t in self.textbooks), found)

    def load_baseline(self, baseline: Baseline) -> Plan:
        for textbook in self.textbooks:
            if textbook.name == baseline.name:
                return self.load(textbook.plan)
        plan = self.load(self.default)
        with refusals():
            rate = suggested_rate(self.make_model, self.data, plan, self.context.seed, self.device)
        return replace(plan, rate=rate)


def find_device(name: str) -> torch.device:
    """The device of that name; ``auto``: a GPU where there is one. Raises :class:`Infeasible` for one that is
    not here."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if not _DEVICE.fullmatch(name):
        raise Infeasible(f"device should be auto, cpu, cuda or the like of cuda:1, and is {name!r}")
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise Infeasible(f"there is no GPU for the device {name!r} here; auto takes what there is")
    return device


@contextmanager
def refusals() -> Iterator[None]:
    """What PyTorch cannot compute in a type on a device is infeasible; memory that the CPU does not have,
    typed.

    Both are plain ``RuntimeError`` in PyTorch, which leaves only their text.
    """
    try:
        yield
    except RuntimeError as error:
        if "not implemented for" in str(error):
            raise Infeasible(f"PyTorch refuses it here: {error}") from error
        if "can't allocate memory" in str(error):
            raise OutOfMemory(str(error).strip().splitlines()[0][:300]) from error
        raise
