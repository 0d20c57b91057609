"""One call of a kernel, to be repeated on copies of its tensors."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from autotune.errors import InputError, Problem
from autotune.hook.recipes.case import is_tensor
from autotune.measure.kernels.guarded import FENCE_BYTE
from autotune.measure.objective import WrongAnswer

Tensor = Any

GUARD_BYTES = 64 * 1024
"""The size of a guard band; one lies before each copy and one behind it."""

ALIGNMENT = 16
"""In bytes. Triton compiles another kernel for pointers that are multiples of it than for others."""


@dataclass(frozen=True)
class KernelCall:
    """The arguments of a call as they were given."""

    kernel: Any
    """A kernel of Triton's: what is used is ``run(*args, grid=, warmup=, **kwargs)``."""
    grid: Any
    positional: tuple[Any, ...]
    by_name: Mapping[str, Any]
    names: tuple[str, ...]
    """The kernel's parameters, in order."""

    @property
    def arguments(self) -> dict[str, Any]:
        """All arguments by the names of their parameters."""
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
        """Launch once with the knobs ``options``, and ``tensors`` in the place of the call's own."""
        positional = [
            tensors.get(name, value) for name, value in zip(self.names, self.positional, strict=False)
        ]
        by_name = {name: tensors.get(name, value) for name, value in self.by_name.items()}
        self.kernel.run(*positional, grid=self.grid, warmup=False, **by_name, **options)

    def copies(self, changed: Collection[str] = (), band: int = FENCE_BYTE) -> Copies:
        """Copies of the tensors; two names of one tensor share a copy.

        ``band`` fills the guard bands beside those that the kernel ``changed``.
        """
        made: dict[Any, Copy] = {}
        found = {}
        for name, tensor in self.tensors.items():
            identity = (tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)
            if identity not in made:
                made[identity] = Copy(tensor, band if name in changed else FENCE_BYTE)
            found[name] = made[identity]
        return Copies(found)


class Copy:
    """A copy of a tensor, with the same strides, in memory of its own between two guard bands.

    Its address has the same remainder modulo 16 bytes as the original's, so that the same code is compiled
    for it. ``band`` is what each byte of the bands is: 0xFF is NaN in every type of floats, so that a value
    read from there is not taken for a zero.
    """

    def __init__(self, tensor: Tensor, band: int = FENCE_BYTE) -> None:
        import torch

        tensor = tensor.detach()
        width = tensor.element_size()
        lengths = zip(tensor.shape, tensor.stride(), strict=True)
        extent = 1 + sum((length - 1) * stride for length, stride in lengths) if tensor.numel() else 0
        start = GUARD_BYTES + tensor.data_ptr() % ALIGNMENT
        end = start + extent * width
        self._guard = band
        raw = torch.full((end + GUARD_BYTES,), self._guard, dtype=torch.uint8, device=tensor.device)
        self._bands = (raw[:start], raw[end:])
        memory = raw[start:end].view(tensor.dtype)
        if extent:  # the memory between the elements is copied as well
            memory.copy_(tensor.as_strided((extent,), (1,), tensor.storage_offset()))
        self.tensor = memory.as_strided(tuple(tensor.shape), tensor.stride(), memory.storage_offset())

    @property
    def is_whole(self) -> bool:
        """Whether nothing was written to its guard bands."""
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
