"""A baseline that is a library's own function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Tensors = Mapping[str, Any]


@dataclass(frozen=True)
class LibraryCall:
    """A function of a library, which may return new tensors where a kernel writes to given ones.

    What it returns is copied to the outputs only for a check: in a reading the copy would count as the
    library's time.
    """

    function: Callable[[Any, Tensors, Tensors], Any]
    """Called with the objective (for the workload, or for a variation of it), the inputs and the outputs. It
    writes to the outputs and returns ``None``, or it returns a tensor for each output."""

    def run(self, objective: Any, inputs: Tensors, outputs: Tensors) -> None:
        """One call as it is timed: what it returns is dropped."""
        self.function(objective, inputs, outputs)

    def answer(self, objective: Any, inputs: Tensors, outputs: Tensors) -> bool:
        """One call whose answer is then in ``outputs``. Returns whether it had to be copied there."""
        returned = self.function(objective, inputs, outputs)
        if returned is None:
            return False
        tensors = returned if isinstance(returned, tuple) else (returned,)
        copied = False
        for output, tensor in zip(outputs.values(), tensors, strict=True):
            if tensor.data_ptr() != output.data_ptr():
                output.copy_(tensor.reshape(output.shape))
                copied = True
        return copied
