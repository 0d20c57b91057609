"""``model-inference``: how long a model in PyTorch takes to answer a batch on the CPU, and how it is run.

What has to be compiled is compiled beforehand, for this batch and for another, and never in a reading:
``compile_seconds`` is what it takes until the first answer. The oracle is the model run eagerly in float64,
for several batches, also of another size; and, where the workload says that weights change, after others were
copied into the model: what keeps those that it has seen is wrong then.

Workload: ``model`` (``convolutional`` or ``transformer``) with its ``width`` and ``layers``; ``batch``;
``weights`` (``fixed``, or ``change`` while the model serves) and the ``seed`` they are drawn from;
``threads``, the most that may be used (``measure: {cores: ...}`` has to be as many).

Baselines: ``torch.compile`` as it comes, and with ``mode="max-autotune"``. The default is eager.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import torch
from inference_engines import DEFAULT, Knobs, Served, serve, stand_by
from inference_models import CLASSES, HEADS, MODELS, input_shape, made
from torch import Tensor, nn

from autotune.measure.clocks import perf_counter
from autotune.measure.kernels.array_objective import ArrayObjective
from autotune.measure.objective import Baseline, Context, Infeasible
from autotune.space.configuration import Configuration

Arrays = dict[str, np.ndarray]

MORE = 3
"""By so much the other batch is larger."""
BASELINES: Mapping[str, Knobs] = {
    "torch-compile": {"engine": "compiled"},
    "max-autotune": {"engine": "compiled", "max_autotune": True},
}
"""On a CPU max-autotune is Inductor's option of that name; its other part are graphs of a GPU."""


@dataclass(frozen=True)
class Prepared:
    """What was compiled for a configuration, and how long that took when it was."""

    knobs: Knobs
    folder: Path
    compile_seconds: float


@dataclass(frozen=True)
class Loaded:
    served: Served
    compile_seconds: float


@contextmanager
def _alone_at(folder: Path) -> Iterator[None]:
    """A finalist may be what a baseline is: one of them compiles, and the other waits."""
    with folder.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:  # by hand, for processes that a compiler has forked have it open too
            fcntl.flock(lock, fcntl.LOCK_UN)


class ModelInference(ArrayObjective):
    """Metrics: ``time`` (seconds a call), ``compile_seconds``, and ``error`` over the largest logit."""

    workload_facts = ("model", "width", "layers", "batch", "weights", "seed", "threads")
    tolerance = 1e-5
    variations = 4

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.model = context.choice("model", MODELS, "convolutional")
        self.width, self.layers = context.size("width"), context.size("layers")
        if self.model == "transformer" and self.width % HEADS:
            raise Infeasible(f"the width of a transformer should be a multiple of {HEADS}, not {self.width}")
        self.batch = context.size("batch")
        self._batches = cycle((self.batch + MORE, self.batch))
        self.weights = context.choice("weights", ("fixed", "change"), "fixed")
        self.seed, self.threads = context.size("seed", 0, least=0), context.size("threads", 1)

    @cached_property
    def network(self) -> nn.Module:
        """The model with the weights of this workload; nothing changes it."""
        return made(self.model, self.width, self.layers, self.seed)

    @cached_property
    def _right(self) -> nn.Module:
        return deepcopy(self.network).double()

    def make_inputs(self, rng: np.random.Generator) -> Arrays:
        shape = (self.batch, *input_shape(self.model, self.width))
        return {"x": rng.standard_normal(shape, dtype=np.float32)}

    def outputs(self) -> Mapping[str, tuple[tuple[int, ...], Any]]:
        return {"logits": ((self.batch, CLASSES), np.float32)}

    def reference(self, inputs: Mapping[str, np.ndarray]) -> Arrays:
        with torch.no_grad():
            return {"logits": self._right(torch.from_numpy(inputs["x"]).double()).numpy()}

    def vary(self, rng: np.random.Generator) -> Mapping[str, Any]:
        """By turns another batch and this one, with other weights where they change."""
        facts = {"batch": next(self._batches)}
        return facts if self.weights == "fixed" else {**facts, "seed": int(rng.integers(1, 1 << 31))}

    # -- a configuration -----------------------------------------------------------------------

    def prepare(self, configuration: Configuration) -> Prepared:
        return self._prepared(dict(configuration))

    def _prepared(self, knobs: Knobs) -> Prepared:
        """Compile it, in a folder of its own; what lies there already took as long as it says."""
        name = hashlib.sha256(json.dumps(knobs, sort_keys=True).encode()).hexdigest()[:16]
        folder = self.context.cache / f"inference-{name}"
        told = folder / "compiled.json"
        with _alone_at(folder):
            if not told.exists():
                # One that was killed has left half of it, and what is compiled anew would take as long as
                # the rest.
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                told.write_text(json.dumps(self._compile(knobs, folder)))
        return Prepared(knobs, folder, float(json.loads(told.read_text())))

    def _compile(self, knobs: Knobs, folder: Path) -> float:
        """Seconds until the first answer; the other batch is compiled after that."""
        stand_by(knobs, self.context.cache)
        start = perf_counter()
        serve(deepcopy(self.network), self._examples[:1], knobs, folder)
        seconds = perf_counter() - start
        serve(deepcopy(self.network), self._examples, knobs, folder)
        return seconds

    @property
    def _examples(self) -> list[Tensor]:
        shape = input_shape(self.model, self.width)
        with torch.inference_mode():  # as those that come: they are of another kind
            return [torch.zeros(batch, *shape) for batch in (self.batch, self.batch + MORE)]

    def load(self, prepared: Prepared) -> Loaded:
        stand_by(prepared.knobs, self.context.cache)
        served = serve(deepcopy(self.network), self._examples, prepared.knobs, prepared.folder)
        return Loaded(served, prepared.compile_seconds)

    def set_up(self, loaded: Loaded, inputs: Mapping[str, np.ndarray]) -> Loaded:
        """Where weights change, this workload's are copied into the model that serves."""
        if self.weights == "change":
            loaded.served.network.load_state_dict(self.network.state_dict())
        return loaded

    def call(self, loaded: Loaded, inputs: Mapping[str, np.ndarray], outputs: Arrays) -> None:
        with torch.inference_mode():
            outputs["logits"][...] = loaded.served.answer(torch.from_numpy(inputs["x"])).numpy()

    def measure(self, loaded: Loaded, rng: np.random.Generator) -> Mapping[str, float]:
        return {**super().measure(loaded, rng), "compile_seconds": loaded.compile_seconds}

    # -- what it is held against ---------------------------------------------------------------

    def baselines(self) -> tuple[Baseline, ...]:
        return (
            Baseline("torch-compile", "torch.compile as it comes, for batches of one size"),
            Baseline("max-autotune", 'torch.compile(mode="max-autotune")'),
        )

    def load_baseline(self, baseline: Baseline) -> Loaded:
        return self.load(self._prepared({**DEFAULT, "threads": self.threads, **BASELINES[baseline.name]}))
