"""One call of a kernel, to be repeated on copies of its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autotune.errors import InputError, Problem
from autotune.hook.recipes.case import is_tensor
from autotune.measure.kernels.guarded import FENCE_BYTE, GUARD_BYTE
from autotune.measure.objective import WrongAnswer

Tensor = Any

GUARD_BYTES = 64 * 1024
"""Before and behind each copy."""

ALIGNMENT = 16
"""Bytes: kernels are compiled apart for pointers that are multiples of it."""


@dataclass(frozen=True)
class KernelCall:
    """The arguments of a call as they were given."""

    kernel: Any
    """Has ``run(*args, grid=, warmup=, **kwargs)``, as Triton's kernels do."""
    grid: Any
    positional: tuple[Any, ...]
    by_name: Mapping[str, Any]
    names: tuple[str, ...]
    """Of the kernel's parameters."""

    @property
    def arguments(self) -> dict[str, Any]:
        """Those by name."""
        return {**dict(zip(self.names, self.positional, strict=False)), **self.by_name}

    @property
    def tensors(self) -> dict[str, Tensor]:
        return {name: value for name, value in self.arguments.items() if is_tensor(value)}

    def check(self) -> None:
        """Raise :class:`InputError` where an argument cannot be copied."""
        problems = [
            Problem(
                f"the argument {name!r} ({type(value).__name__}) holds tensors that cannot be copied",
                hint="pass tensors themselves, or make the descriptor inside the kernel",
            )
            for name, value in self.arguments.items()
            if not is_tensor(value) and (is_tensor(getattr(value, "base", None)) or _holds_tensors(value))
        ]
        if problems:
            raise InputError(problems)

    def run(self, options: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Launch once with ``tensors`` in the place of those of the call."""
        positional = [
            tensors.get(name, value) for name, value in zip(self.names, self.positional, strict=False)
        ]
        by_name = {name: tensors.get(name, value) for name, value in self.by_name.items()}
        self.kernel.run(*positional, grid=self.grid, warmup=False, **by_name, **options)

    def copies(self) -> Copies:
        """Copies of the tensors; two names of one tensor share a copy."""
        made: dict[Any, Copy] = {}
        found = {}
        for name, tensor in self.tensors.items():
            identity = (tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)
            if identity not in made:
                made[identity] = Copy(tensor)
            found[name] = made[identity]
        return Copies(found)


class Copy:
    """The same values at the same strides, in memory of its own between two guard bands.

    It begins as far from a multiple of 16 bytes as the original, so that the same code is compiled for it.
    The bands of a tensor of floats are NaN: nothing that is read there passes for a zero.
    """

    def __init__(self, tensor: Tensor) -> None:
        import torch

        tensor = tensor.detach()
        width = tensor.element_size()
        lengths = zip(tensor.shape, tensor.stride(), strict=True)
        extent = 1 + sum((length - 1) * stride for length, stride in lengths) if tensor.numel() else 0
        start = GUARD_BYTES + tensor.data_ptr() % ALIGNMENT
        end = start + extent * width
        self._guard = FENCE_BYTE if tensor.is_floating_point() else GUARD_BYTE
        raw = torch.full((end + GUARD_BYTES,), self._guard, dtype=torch.uint8, device=tensor.device)
        self._bands = (raw[:start], raw[end:])
        memory = raw[start:end].view(tensor.dtype)
        if extent:  # what lies between the elements is copied as well
            memory.copy_(tensor.as_strided((extent,), (1,), tensor.storage_offset()))
        self.tensor = memory.as_strided(tuple(tensor.shape), tensor.stride(), memory.storage_offset())

    @property
    def is_whole(self) -> bool:
        """Whether its bands are as they were."""
        return not any(bool((band != self._guard).any()) for band in self._bands)


@dataclass(frozen=True)
class Copies:
    """Copies of a call's tensors by name."""

    made: Mapping[str, Copy]

    @property
    def tensors(self) -> dict[str, Tensor]:
        return {name: made.tensor for name, made in self.made.items()}

    def verify(self) -> None:
        """Raise :class:`WrongAnswer` where a kernel wrote outside a tensor."""
        for name, made in self.made.items():
            if not made.is_whole:
                raise WrongAnswer(f"writes outside {name}")


def _holds_tensors(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(map(is_tensor, value))
