"""``model-compression``: how fast a perceptron tells a digit, where part of its weights are left out.

The dense perceptron is trained once. A configuration keeps the largest weights of its hidden layers, trains
these further, and keeps each layer dense, in one of three types of numbers, or as sparse rows. How much worse
it tells the validation part (``drop``, as a share of the pictures) has a bound; ``test_drop`` is the same on
a part that no search sees, looked at in the re-measurement alone.

The check holds the compressed answers, alone and many at once, against those of the same pruned weights in a
dense perceptron in float64, and counts these weights. So speed comes from no other model than the one whose
accuracy is said.

Workload: ``width`` of the two hidden layers, ``epochs`` of the first training, ``seed``. Baseline: dense, in
int8. The default is dense, in float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from compressed_layers import Compressed, layer_of
from pruned_perceptron import RECIPE, kept, linears, network_of, pruned, trained
from torch import Tensor, nn
from training_data import Arrays, Data, Part, digits

from autotune.measure.clocks import perf_counter
from autotune.measure.objective import Baseline, Context, Objective, WrongAnswer
from autotune.space.configuration import Configuration

TOLERANCES: Mapping[str, float] = {"float32": 1e-5, "bfloat16": 0.02, "int8": 0.03}
"""Of the largest logit: what rounding may explain."""
ALONE = 32
"""So many pictures are answered one at a time, in a check and in a reading."""


@dataclass(frozen=True)
class Prepared:
    """The weights of a configuration, zeros where they are left out."""

    weights: Arrays
    densities: tuple[float, ...]
    layouts: tuple[str, ...]
    numbers: str


@dataclass(frozen=True)
class Loaded:
    prepared: Prepared
    answer: Compressed
    test_drop: float | None
    """``None`` while a search is on."""


class ModelCompression(Objective):
    """Metrics: ``time`` (seconds a picture), ``bytes``, ``drop``, ``error``; ``test_drop`` at the end."""

    workload_facts = ("width", "epochs", "seed")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.width, self.epochs = context.size("width"), context.size("epochs")
        self.seed = context.size("seed", 0, least=0)
        torch.set_num_threads(1)

    @cached_property
    def data(self) -> Data:
        return digits(self.prepared_data)

    @cached_property
    def dense(self) -> Arrays:
        """The perceptron that is compressed."""

        def make() -> Arrays:
            return trained(self.data.train, self.width, self.epochs, self.seed)

        sizes = {"width": str(self.width), "epochs": str(self.epochs), "seed": str(self.seed)}
        how = f"a perceptron, {RECIPE}, torch {torch.__version__}, digits {self.data.sha256}"
        return self.prepared_data.arrays(make, what=how, **sizes)

    # -- a configuration -----------------------------------------------------------------------

    def prepare(self, configuration: Configuration) -> Prepared:
        return self._prepared(configuration)

    def _prepared(self, knobs: Mapping[str, Any]) -> Prepared:
        densities = (float(knobs["first_density"]), float(knobs["second_density"]), 1.0)
        layouts = (str(knobs.get("first_layout", "dense")), str(knobs.get("second_layout", "dense")), "dense")
        weights = self.dense
        if min(densities) < 1:
            weights = pruned(weights, densities, self.data.train, int(knobs["fine_tune"]), self.seed)
        return Prepared(weights, densities, layouts, str(knobs["numbers"]))

    def load(self, prepared: Prepared) -> Loaded:
        layers = zip(linears(network_of(prepared.weights)), prepared.layouts, strict=True)
        answer = Compressed([layer_of(linear, layout, prepared.numbers) for linear, layout in layers])
        return Loaded(prepared, answer, self._drop(answer, self.data.test) if self.final else None)

    def measure(self, loaded: Loaded, rng: np.random.Generator) -> Mapping[str, float]:
        """The median of some pictures, one after the other: what a busy machine holds up is out of it."""
        some, took = self._pictures(self.data.valid, rng).split(1), []
        with torch.inference_mode():
            for picture in some:
                start = perf_counter()
                loaded.answer(picture)
                took.append(perf_counter() - start)
        tested = {} if loaded.test_drop is None else {"test_drop": loaded.test_drop}
        return {"time": float(np.median(took)), **tested}

    # -- the oracle ----------------------------------------------------------------------------

    def check(self, loaded: Loaded, rng: np.random.Generator) -> Mapping[str, float]:
        right = network_of(loaded.prepared.weights).double()
        self._require_density(loaded.prepared)
        return {
            "error": self._error(loaded, right, rng),
            "bytes": float(loaded.answer.bytes),
            "drop": self._drop(loaded.answer, self.data.valid),
        }

    def _require_density(self, prepared: Prepared) -> None:
        for number, density in enumerate(prepared.densities):
            weight = prepared.weights[f"weight{number}"]
            there, most = int(np.count_nonzero(weight)), kept(weight.size, density)
            if there > most:
                raise WrongAnswer(
                    f"layer {number} keeps {there:,} weights, where its density allows {most:,}"
                )

    def _error(self, loaded: Loaded, right: nn.Module, rng: np.random.Generator) -> float:
        """Over the largest logit; of real pictures and of noise, alone and together."""
        noise = torch.from_numpy(rng.random((ALONE, 64), dtype=np.float32))
        inputs = torch.cat([self._pictures(self.data.valid, rng), noise])
        before = inputs.clone()
        with torch.inference_mode():
            expected = right(inputs.double())
            alone = torch.cat([loaded.answer(picture) for picture in inputs.split(1)])
            together = loaded.answer(inputs)
        if not torch.equal(inputs, before):
            raise WrongAnswer("it changes its inputs")
        allowed = TOLERANCES[loaded.prepared.numbers]
        error = 0.0
        for how, answers in (("one at a time", alone), ("together", together)):
            off = float((answers - expected).abs().max() / expected.abs().max())
            if not off <= allowed:
                raise WrongAnswer(
                    f"{how}, its answers are off by {off:.3g} of the largest one from those that its weights"
                    f" give in float64; {loaded.prepared.numbers} explains {allowed:g}"
                )
            error = max(error, off)
        return error

    def _drop(self, answer: Compressed, part: Part) -> float:
        """How many more pictures it gets wrong than the dense perceptron in float64, as a share."""
        inputs = torch.tensor(part.inputs)
        with torch.inference_mode():
            dense = network_of(self.dense).double()(inputs.double())
            return _accuracy(dense, part) - _accuracy(answer(inputs), part)

    def _pictures(self, part: Part, rng: np.random.Generator) -> Tensor:
        return torch.from_numpy(part.inputs[rng.integers(0, len(part), ALONE)])

    def baselines(self) -> tuple[Baseline, ...]:
        return (Baseline("int8", "dense, in int8: torch.ao.quantization.quantize_dynamic, by channel"),)

    def load_baseline(self, baseline: Baseline) -> Loaded:
        return self.load(self._prepared({**DEFAULT, "numbers": "int8"}))


def _accuracy(logits: Tensor, part: Part) -> float:
    return float((logits.argmax(dim=1).numpy() == part.targets).mean())


DEFAULT: Mapping[str, Any] = {"first_density": 1.0, "second_density": 1.0, "numbers": "float32"}
"""Nothing is left out."""
