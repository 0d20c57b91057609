"""A baseline that is a library's own function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Tensors = Mapping[str, Any]


@dataclass(frozen=True)
class LibraryCall:
    """A function of a library, which may make a tensor of its own where a kernel writes to a given one.

    What it returns is copied to the outputs only where they are looked at: in a reading that would be counted
    as the library's time.
    """

    function: Callable[[Any, Tensors, Tensors], Any]
    """Called with the objective (of the workload, or of a variation of it), the inputs and the outputs. It
    writes to the outputs and returns ``None``, or returns a tensor, or as many as there are outputs."""

    def run(self, objective: Any, inputs: Tensors, outputs: Tensors) -> None:
        """As it is timed: whatever it returns is let go of."""
        self.function(objective, inputs, outputs)

    def answer(self, objective: Any, inputs: Tensors, outputs: Tensors) -> bool:
        """The same, with the answer in ``outputs``. Whether it had to be copied there."""
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
