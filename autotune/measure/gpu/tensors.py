"""Tensors between bands that show writes and reads outside of them, and the error of an answer.

The sibling of :mod:`autotune.measure.kernels.guarded` for PyTorch, with the same rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autotune.measure.kernels.guarded import FENCE_BYTE, FEW, GUARD_BYTE, POISON_BYTE, scaled_error
from autotune.measure.objective import WrongAnswer

Tensor = Any
"""A ``torch.Tensor``. PyTorch is heavy and optional, so this module does not import it when loaded."""

GUARD_BYTES = 256 * 1024
"""The size of the band before and after each tensor: large enough for a tile that sticks out of its
matrix."""

ALIGNMENT = 256
"""The alignment of the first element in bytes, as in CUDA's own allocations."""

NAN_BYTE = FENCE_BYTE
"""A floating-point number all of whose bytes are 0xFF is NaN in every format, of eight bits as well."""


class GuardedTensor:
    """An output that notices writes outside itself, or an input that shows reads outside itself.

    ``tensor`` has the shape and type asked for, contiguous and aligned; one guard band ends right before its
    first byte, and another begins right after its last.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any, device: Any) -> None:
        import torch

        count = 1
        for length in shape:
            count *= int(length)
        size = count * dtype.itemsize
        self._guard = GUARD_BYTE
        self._raw = torch.empty(size + 2 * GUARD_BYTES + ALIGNMENT, dtype=torch.uint8, device=device)
        start = GUARD_BYTES + (-(self._raw.data_ptr() + GUARD_BYTES)) % ALIGNMENT
        self._before = self._raw[start - GUARD_BYTES : start]
        self._bytes = self._raw[start : start + size]
        self._behind = self._raw[start + size : start + size + GUARD_BYTES]
        self._poison = NAN_BYTE if dtype.is_floating_point or dtype.is_complex else POISON_BYTE
        self.tensor: Tensor = self._bytes.view(dtype).reshape(tuple(shape))

    def poison(self) -> None:
        """Fill the guards, and the tensor with what no kernel computes: NaN, or bytes of 0xCB."""
        self._fill_guards(GUARD_BYTE)
        self._bytes.fill_(self._poison)

    def hold(self, contents: Tensor) -> None:
        """Fill the guards with NaN, and the tensor with ``contents``."""
        self._fill_guards(FENCE_BYTE)
        self.tensor.copy_(contents)

    def _fill_guards(self, byte: int) -> None:
        self._guard = byte
        self._before.fill_(byte)
        self._behind.fill_(byte)

    def untouched(self) -> bool:
        """Whether every byte of it is still poison."""
        return self._bytes.numel() > 0 and bool((self._bytes == self._poison).all())

    def verify(self, name: str) -> None:
        """Raise :class:`WrongAnswer` where a guard was written to since it was filled."""
        for band, side in ((self._before, "before"), (self._behind, "behind")):
            changed = band != self._guard
            if bool(changed.any()):
                places = changed.nonzero()
                first = GUARD_BYTES - int(places[-1]) if side == "before" else int(places[0]) + 1
                raise WrongAnswer(f"writes outside its buffer: byte {first} {side} {name} was changed")


class CheckedInputs:
    """Copies of inputs between bands of NaN; a tensor that is not contiguous is taken as it is.

    As :class:`autotune.measure.kernels.guarded.CheckedInputs`.
    """

    def __init__(self, made: Mapping[str, Tensor]) -> None:
        self._guarded = {
            name: GuardedTensor(tuple(tensor.shape), tensor.dtype, tensor.device)
            for name, tensor in made.items()
            if tensor.is_contiguous()
        }
        for name, copy in self._guarded.items():
            copy.hold(made[name])
        self.tensors = {**made, **{name: copy.tensor for name, copy in self._guarded.items()}}
        self._before = copies(self.tensors)

    def verify(self) -> None:
        """Raise :class:`WrongAnswer` where an input is not what it was, or a band was written to."""
        for name, copy in self._guarded.items():
            copy.verify(name)
        unchanged(self._before, self.tensors)

    def constant(self) -> dict[str, float]:
        """The inputs of :data:`FEW` or more floating-point numbers that are all the same, and that number."""
        return {
            name: float(_wide(tensor.reshape(-1)[:1].cpu()))
            for name, tensor in self.tensors.items()
            if tensor.is_floating_point() and tensor.numel() >= FEW and _is_constant(tensor)
        }


def copies(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copies that share no memory with their originals, in the same layout."""
    return {name: tensor.clone() for name, tensor in tensors.items()}


def unchanged(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> None:
    """Raise :class:`WrongAnswer` where any byte of an input was changed."""
    for name, tensor in after.items():
        if not same_bytes(before[name], tensor):
            raise WrongAnswer(f"changes its input {name}")


def same_bytes(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors of one type agree in every byte, those of NaN included."""
    import torch

    return bool(torch.equal(_bytes(one), _bytes(other)))


def tensor_bytes(tensors: Mapping[str, Tensor]) -> int:
    """How much memory they take together."""
    return sum(int(tensor.numel()) * int(tensor.element_size()) for tensor in tensors.values())


def tensor_error(name: str, answer: Tensor, reference: Tensor, tolerance: float) -> float:
    """The largest error of ``answer`` over the largest magnitude of ``reference``.

    As :func:`autotune.measure.kernels.guarded.scaled_error`, computed in float64 on the answer's device.
    Raises :class:`WrongAnswer` with the first bad element where the error is past ``tolerance``.
    """
    if tuple(answer.shape) != tuple(reference.shape):
        raise WrongAnswer(f"{name} has shape {tuple(answer.shape)}, its reference {tuple(reference.shape)}")
    answer, reference = _wide(answer), _wide(reference.to(answer.device))
    worst = _largest_error(answer, reference)
    if worst <= tolerance:
        return worst
    return scaled_error(name, answer.cpu().numpy(), reference.cpu().numpy(), tolerance)  # names the element


def _largest_error(answer: Tensor, reference: Tensor) -> float:
    import torch

    if answer.numel() == 0:
        return 0.0
    if not (_is_inexact(answer) or _is_inexact(reference)):
        return float((answer != reference).any())
    answer, reference = (x if x.is_complex() else x.to(torch.float64) for x in (answer, reference))
    magnitudes = reference.abs()
    finite = magnitudes[torch.isfinite(magnitudes)]
    scale = float(finite.max()) if finite.numel() else 1.0
    errors = (answer - reference).abs() / (scale or 1.0)
    agree = (answer == reference) | (torch.isnan(answer) & torch.isnan(reference))
    return float(errors.nan_to_num(nan=float("inf")).masked_fill(agree, 0.0).max())


def _wide(tensor: Tensor) -> Tensor:
    """In a type that numpy has, without loss; flags as bytes, since poison too is true as a flag."""
    import torch

    if tensor.dtype is torch.bool:
        return tensor.view(torch.uint8)
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.to(torch.float64) if tensor.is_floating_point() else tensor


def _is_inexact(tensor: Tensor) -> bool:
    return bool(tensor.is_floating_point() or tensor.is_complex())


def _is_constant(tensor: Tensor) -> bool:
    """By its bytes: not every device compares numbers of eight bits."""
    elements = _bytes(tensor).view(-1, tensor.element_size())
    return bool((elements == elements[0]).all())


def _bytes(tensor: Tensor) -> Tensor:
    import torch

    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)
