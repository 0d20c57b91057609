"""The base of kernels over arrays and over tensors: what a subclass defines, and how answers are checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from autotune.measure.kernels.roofline import Work
from autotune.measure.objective import Objective, WrongAnswer

VARIATIONS = 8
"""The number of ragged shapes that are tried: a kernel that is wrong for every other one passes once in
256."""

TOLERANCES: Mapping[str, float] = {
    "float8_e5m2": 0.13,
    "float8_e4m3fn": 0.07,
    "bfloat16": 5e-2,
    "float16": 1e-2,
    "float32": 1e-4,
    "complex64": 1e-4,
    "float64": 1e-10,
    "complex128": 1e-10,
}
"""The largest error, over the largest value of the reference, that rounding explains; 0 for other types."""


class KernelObjective(Objective):
    """Subclasses say how inputs are made, what outputs there are, what is right and how the kernel is called.

    A check runs the kernel on fresh inputs between bands of NaN, with poisoned outputs between guard bands.
    It is ``wrong`` if it writes outside an output or an input, changes an input, uses values outside of one,
    leaves an element unwritten, or errs by more than ``tolerance``. The same is done for the workloads that
    :meth:`vary` gives. On each of these, or on its own workload if there are none, the kernel runs on other
    inputs first, so that what it kept from before (an answer, packed weights) does not pass for right.
    ``error`` is the largest error of any output over the largest magnitude of its reference.
    """

    tolerance: ClassVar[float | Mapping[str, float] | None] = None
    """The largest ``error`` that counts as right, for all outputs or by name; ``None``:
    :data:`TOLERANCES`."""

    variations: ClassVar[int] = VARIATIONS
    """How many variations of the workload a check tries, where :meth:`vary` gives some."""

    def make_inputs(self, rng: np.random.Generator) -> Mapping[str, Any]:
        """Fresh random inputs by name."""
        raise NotImplementedError(f"{type(self).__name__} must define make_inputs()")

    def outputs(self) -> Mapping[str, tuple[tuple[int, ...], Any]]:
        """Shape and dtype of each output by name."""
        raise NotImplementedError(f"{type(self).__name__} must define outputs()")

    def reference(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """The right outputs, in float64 or exact. ``inputs`` are copies."""
        raise NotImplementedError(f"{type(self).__name__} must define reference()")

    def call(self, loaded: Any, inputs: Mapping[str, Any], outputs: dict[str, Any]) -> None:
        """Run the kernel once, which is what is timed."""
        raise NotImplementedError(f"{type(self).__name__} must define call()")

    def work(self) -> Work | None:
        """The least bytes and operations of the problem; ``None`` where nobody counted them."""
        return None

    def vary(self, rng: np.random.Generator) -> Mapping[str, Any] | None:
        """Facts of another small and ragged workload for which the loaded kernel must be right as well.

        Default: ``None``, for none.
        """
        return None

    def check(self, loaded: Any, rng: np.random.Generator) -> Mapping[str, float]:
        """Compare the kernel with the reference on fresh inputs, also for variations of the workload.

        Returns ``{"error": ...}`` for the workload itself.
        """
        if type(self).vary is KernelObjective.vary:
            self._call_unseen(loaded, rng)
        error = self._check(loaded, rng)
        for _ in range(self.variations):
            facts = self.vary(rng)
            if facts is None:
                break
            other = self._varied(facts)
            try:
                other._call_unseen(loaded, rng)
                other._check(loaded, rng)
            except WrongAnswer as wrong:
                shape = ", ".join(f"{name} {value}" for name, value in facts.items())
                raise WrongAnswer(f"where the workload has {shape}: {wrong}") from wrong
        return {"error": error}

    def _check(self, loaded: Any, rng: np.random.Generator) -> float:
        """The error of one check on this workload; raises :class:`WrongAnswer`."""
        raise NotImplementedError(f"{type(self).__name__} must define _check()")

    def _call_unseen(self, loaded: Any, rng: np.random.Generator) -> None:
        """One call on fresh inputs, whatever its answer."""
        raise NotImplementedError(f"{type(self).__name__} must define _call_unseen()")

    def _varied(self, facts: Mapping[str, Any]) -> Self:
        """The same objective for another workload."""
        return type(self)(replace(self.context, workload={**self.context.workload, **facts}))

    def _allowed(self, name: str, dtype: str, expected: Mapping[str, Any]) -> float:
        """The error that output ``name`` of type ``dtype`` may have."""
        if name not in expected:
            raise TypeError(f"reference() gives no {name!r}; it gives {', '.join(expected) or 'nothing'}")
        allowed = self.tolerance
        if isinstance(allowed, Mapping):
            allowed = allowed.get(name)
        return TOLERANCES.get(dtype, 0.0) if allowed is None else allowed
