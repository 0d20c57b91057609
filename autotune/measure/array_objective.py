"""Objectives that are kernels over arrays: inputs, guarded outputs, an oracle, and the clock."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from autotune.measure.gpu.work import Work
from autotune.measure.guarded import Array, GuardedArray, fingerprint, scaled_error, unchanged
from autotune.measure.objective import Context, Objective, WrongAnswer

READING_SECONDS = 1e-3
"""A reading lasts at least so long: ten thousand times what reading the clock takes."""

VARIATIONS = 8
"""So many ragged shapes, each with data of its own: what is wrong for every other one passes once in 256."""

TOLERANCES: Mapping[str, float] = {
    "float16": 1e-2,
    "bfloat16": 5e-2,
    "float32": 1e-4,
    "complex64": 1e-4,
    "float64": 1e-10,
    "complex128": 1e-10,
}
"""Largest error, over the largest value of the reference, that rounding may explain; else none."""


@dataclass
class _Round:
    """The arrays of one trial, and how often a reading repeats the call."""

    loaded: Any
    rng: np.random.Generator
    inputs: Mapping[str, Array]
    outputs: dict[str, Array]
    calls: int


class ArrayObjective(Objective):
    """Base class of kernels over arrays. Metrics: ``time`` (seconds a call) and ``error``.

    Subclasses say how inputs are made, what outputs there are, what is right (``reference``) and how
    the kernel is called. A check runs the kernel once on fresh inputs with poisoned outputs between
    guard bands: it is ``wrong`` where it writes outside an output, changes an input, leaves an element
    unwritten, or errs by more than ``tolerance``. It does the same for what :meth:`vary` gives.

    ``error`` is the largest error of any output over the largest magnitude of its reference.
    """

    tolerance: ClassVar[float | Mapping[str, float] | None] = None
    """The largest ``error`` that is right, for all outputs or by name; ``None``: by :data:`TOLERANCES`."""

    variations: ClassVar[int] = VARIATIONS
    """How many variations of the workload a check tries, where :meth:`vary` gives some."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._round: _Round | None = None

    def make_inputs(self, rng: np.random.Generator) -> Mapping[str, Array]:
        """Fresh random inputs by name."""
        raise NotImplementedError(f"{type(self).__name__} must define make_inputs()")

    def outputs(self) -> Mapping[str, tuple[tuple[int, ...], Any]]:
        """Shape and dtype of each output by name."""
        raise NotImplementedError(f"{type(self).__name__} must define outputs()")

    def reference(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """The right outputs, in float64 or exact."""
        raise NotImplementedError(f"{type(self).__name__} must define reference()")

    def call(self, loaded: Any, inputs: Mapping[str, Array], outputs: dict[str, Array]) -> None:
        """Run the kernel once: this is what is timed."""
        raise NotImplementedError(f"{type(self).__name__} must define call()")

    def work(self) -> Work | None:
        """The least bytes and operations of the problem; ``None`` where nobody counted them."""
        return None

    def vary(self, rng: np.random.Generator) -> Mapping[str, Any] | None:
        """Facts of another workload, small and ragged, that what was loaded must be right for as well.

        Default: ``None``, there is none.
        """
        return None

    def check(self, loaded: Any, rng: np.random.Generator) -> Mapping[str, float]:
        """Run the kernel on fresh inputs against the reference, and on variations of the workload.

        Returns ``{"error": ...}`` of the workload itself.
        """
        error = self._check(loaded, rng)
        for _ in range(self.variations):
            facts = self.vary(rng)
            if facts is None:
                break
            other = replace(self.context, workload={**self.context.workload, **facts})
            try:
                type(self)(other)._check(loaded, rng)
            except WrongAnswer as wrong:
                shape = ", ".join(f"{name} {value}" for name, value in facts.items())
                raise WrongAnswer(f"where the workload has {shape}: {wrong}") from wrong
        return {"error": error}

    def _check(self, loaded: Any, rng: np.random.Generator) -> float:
        inputs = self.make_inputs(rng)
        expected = self.reference({name: array.copy() for name, array in inputs.items()})
        before = {name: fingerprint(array) for name, array in inputs.items()}
        guarded = {name: GuardedArray(shape, dtype) for name, (shape, dtype) in self.outputs().items()}
        for output in guarded.values():
            output.poison()
        self.call(loaded, inputs, {name: output.array for name, output in guarded.items()})
        for name, output in guarded.items():
            output.verify(name)
        unchanged(before, inputs)
        errors = [self._error(name, output.array, expected) for name, output in guarded.items()]
        return max(errors, default=0.0)

    def measure(self, loaded: Any, rng: np.random.Generator) -> Mapping[str, float]:
        """Seconds a call: the mean over as many calls as the clock needs. Each ``rng`` has fresh inputs."""
        this = self._round
        if this is None or this.loaded is not loaded or this.rng is not rng:
            this = self._round = self._begin(loaded, rng)
        return {"time": self._time(this, this.calls) / this.calls}

    def _begin(self, loaded: Any, rng: np.random.Generator) -> _Round:
        """Fresh arrays; then double the number of calls until they last long enough for the clock."""
        earlier = self._round
        self._round = None  # its arrays may go before the new ones come
        outputs = {name: GuardedArray(shape, dtype).array for name, (shape, dtype) in self.outputs().items()}
        this = _Round(loaded, rng, self.make_inputs(rng), outputs, calls=1)
        if earlier is not None and earlier.loaded is loaded:
            this.calls = earlier.calls  # calibrated once a configuration
            return this
        while (seconds := self._time(this, this.calls)) < READING_SECONDS:
            aim = this.calls * READING_SECONDS / max(seconds, 1e-9)
            this.calls = min(max(math.ceil(1.2 * aim), this.calls + 1), 10 * this.calls)
        return this

    def _time(self, this: _Round, calls: int) -> float:
        call, loaded, inputs, outputs = self.call, this.loaded, this.inputs, this.outputs
        start = time.perf_counter()
        for _ in range(calls):
            call(loaded, inputs, outputs)
        return time.perf_counter() - start

    def _error(self, name: str, answer: Array, expected: Mapping[str, Array]) -> float:
        if name not in expected:
            raise TypeError(f"reference() gives no {name!r}; it gives {', '.join(expected) or 'nothing'}")
        allowed = self.tolerance
        if isinstance(allowed, Mapping):
            allowed = allowed.get(name)
        if allowed is None:
            allowed = TOLERANCES.get(answer.dtype.name, 0.0)
        return scaled_error(name, answer, np.asarray(expected[name]), allowed)


__all__ = ["READING_SECONDS", "TOLERANCES", "VARIATIONS", "ArrayObjective", "WrongAnswer"]
