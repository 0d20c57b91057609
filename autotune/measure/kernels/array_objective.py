"""Objectives that are kernels over NumPy arrays: guarded outputs and the clock."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from autotune.measure.clocks import perf_counter
from autotune.measure.kernels.guarded import Array, CheckedInputs, GuardedArray, aligned, scaled_error
from autotune.measure.kernels.kernel_objective import KernelObjective
from autotune.measure.objective import Context

READING_SECONDS = 1e-3
"""The least time of a reading: ten thousand times what reading the clock takes."""


@dataclass
class _Round:
    """The arrays of one trial, and how often a reading repeats the call."""

    loaded: Any
    called: Any
    rng: np.random.Generator
    inputs: Mapping[str, Array]
    outputs: dict[str, Array]
    calls: int


class ArrayObjective(KernelObjective):
    """Base class of kernels over NumPy arrays. Metrics: ``time`` (seconds a call) and ``error``.

    Subclasses define ``make_inputs``, ``outputs``, ``reference`` and ``call``; and ``set_up`` where something
    is made of the inputs beforehand.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._round: _Round | None = None

    def set_up(self, loaded: Any, inputs: Mapping[str, Array]) -> Any:
        """Make what is made once for these inputs, such as an index or packed weights; it is not timed.

        What it returns is passed to :meth:`call` in the place of ``loaded``; default: ``loaded`` itself.
        """
        return loaded

    def _check(self, loaded: Any, rng: np.random.Generator) -> float:
        inputs = CheckedInputs(self.make_inputs(rng))
        self.constant_inputs = inputs.constant()
        expected = self.reference({name: array.copy() for name, array in inputs.arrays.items()})
        guarded = {name: GuardedArray(shape, dtype) for name, (shape, dtype) in self.outputs().items()}
        for output in guarded.values():
            output.poison()
        called = self.set_up(loaded, inputs.arrays)
        self.call(called, inputs.arrays, {name: output.array for name, output in guarded.items()})
        for name, output in guarded.items():
            output.verify(name)
        inputs.verify()
        errors = [self._error(name, output.array, expected) for name, output in guarded.items()]
        return max(errors, default=0.0)

    def _call_unseen(self, loaded: Any, rng: np.random.Generator) -> None:
        inputs = CheckedInputs(self.make_inputs(rng)).arrays
        self.call(self.set_up(loaded, inputs), inputs, self._unwritten())

    def measure(self, loaded: Any, rng: np.random.Generator) -> Mapping[str, float]:
        """Seconds a call: the mean over as many calls as the clock needs.

        Each ``rng`` has fresh inputs. Inputs and outputs begin at a multiple of 64 bytes.
        """
        this = self._round
        if this is None or this.loaded is not loaded or this.rng is not rng:
            this = self._round = self._begin(loaded, rng)
        return {"time": self._time(this, this.calls) / this.calls}

    def _begin(self, loaded: Any, rng: np.random.Generator) -> _Round:
        """Fresh arrays; then double the number of calls until they last long enough for the clock."""
        earlier = self._round
        self._round = None  # its arrays may go before the new ones come
        outputs = self._unwritten()
        inputs = {name: aligned(array) for name, array in self.make_inputs(rng).items()}
        this = _Round(loaded, self.set_up(loaded, inputs), rng, inputs, outputs, calls=1)
        if earlier is not None and earlier.loaded is loaded:
            this.calls = earlier.calls  # calibrated once a configuration
            return this
        while (seconds := self._time(this, this.calls)) < READING_SECONDS:
            aim = this.calls * READING_SECONDS / max(seconds, 1e-9)
            this.calls = min(max(math.ceil(1.2 * aim), this.calls + 1), 10 * this.calls)
        return this

    def _unwritten(self) -> dict[str, Array]:
        return {name: GuardedArray(shape, dtype).array for name, (shape, dtype) in self.outputs().items()}

    def _time(self, this: _Round, calls: int) -> float:
        call, called, inputs, outputs = self.call, this.called, this.inputs, this.outputs
        start = perf_counter()
        for _ in range(calls):
            call(called, inputs, outputs)
        return perf_counter() - start

    def _error(self, name: str, answer: Array, expected: Mapping[str, Array]) -> float:
        allowed = self._allowed(name, answer.dtype.name, expected)
        return scaled_error(name, answer, np.asarray(expected[name]), allowed)
