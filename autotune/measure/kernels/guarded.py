"""Aligned arrays, outputs between guard bands, inputs between bands of NaN, and the error of an answer."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from autotune.measure.objective import WrongAnswer

Array = np.ndarray[Any, Any]

GUARD_BYTES = 4096
"""The size of the band before and after each output: one page, since writes beyond a page mostly crash."""

ALIGNMENT = 64
"""The alignment of the first element in bytes: a line of the cache, and the widest vector."""

GUARD_BYTE = 0xA5
POISON_BYTE = 0xCB
"""The fillings of guard bands, and of an output before the call: bytes that kernels hardly ever write."""

FENCE_BYTE = 0xFF
"""The filling of the bands around an input, which is NaN in every floating-point format."""


def aligned(array: Array) -> Array:
    """The same contents at an aligned address; anything but a plain array in C order is returned as it is.

    An allocator only promises 16 bytes. Where a kernel reads its inputs in vectors, every second one may then
    cross a line of the cache: a matrix product without packing took half as long again in one process as in
    the next.
    """
    if not _is_plain(array) or not array.size or array.ctypes.data % ALIGNMENT == 0:
        return array
    copy = GuardedArray(array.shape, array.dtype).array
    copy[...] = array
    return copy


def _is_plain(array: Array) -> bool:
    """Whether the memory of an array is all of it; a masked array, say, has more."""
    return type(array) is np.ndarray and array.flags.c_contiguous and not array.dtype.hasobject


FEW = 64
"""An array of fewer elements may well hold one number throughout: a scale, a bias."""


class GuardedArray:
    """An output array that notices writes outside itself, or an input that shows reads outside itself.

    ``array`` has the shape and type asked for, contiguous and aligned; one guard band ends right before its
    first byte, and another begins right after its last.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self._guard = GUARD_BYTE
        kind = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        self._raw = np.empty(size + 2 * GUARD_BYTES + ALIGNMENT, dtype=np.uint8)
        start = GUARD_BYTES + (-(self._raw.ctypes.data + GUARD_BYTES)) % ALIGNMENT
        self._before = self._raw[start - GUARD_BYTES : start]
        self._behind = self._raw[start + size : start + size + GUARD_BYTES]
        self.array: Array = self._raw[start : start + size].view(kind).reshape(shape)

    def poison(self) -> None:
        """Fill the guards, and the array with what no kernel computes: NaN, or bytes of 0xCB."""
        self._fill_guards(GUARD_BYTE)
        if self.array.dtype.kind in "fc":
            self.array.fill(np.nan)
        else:
            self.array.reshape(-1).view(np.uint8)[:] = POISON_BYTE

    def hold(self, contents: Array) -> None:
        """Fill the guards with NaN, and the array with ``contents``."""
        self._fill_guards(FENCE_BYTE)
        self.array[...] = contents

    def _fill_guards(self, byte: int) -> None:
        self._guard = byte
        self._before[:] = byte
        self._behind[:] = byte

    def verify(self, name: str) -> None:
        """Raise :class:`WrongAnswer` where a guard was written to since it was filled."""
        for band, side in ((self._before, "before"), (self._behind, "behind")):
            touched = np.flatnonzero(band != self._guard)
            if touched.size:
                first = GUARD_BYTES - touched[-1] if side == "before" else touched[0] + 1
                raise WrongAnswer(f"writes outside its buffer: byte {first} {side} {name} was changed")


class CheckedInputs:
    """Copies of inputs between bands of NaN; anything but a plain array in C order is taken as it is.

    A kernel that reads past the end of an input then computes NaN, where it might have found zeros by chance.
    """

    def __init__(self, made: Mapping[str, Array]) -> None:
        self._guarded = {
            name: GuardedArray(array.shape, array.dtype) for name, array in made.items() if _is_plain(array)
        }
        for name, copy in self._guarded.items():
            copy.hold(made[name])
        self.arrays = {**made, **{name: copy.array for name, copy in self._guarded.items()}}
        self._before = {name: _fingerprint(array) for name, array in self.arrays.items()}

    def verify(self) -> None:
        """Raise :class:`WrongAnswer` where an input is not what it was, or a band was written to."""
        for name, copy in self._guarded.items():
            copy.verify(name)
        for name, array in self.arrays.items():
            if _fingerprint(array) != self._before[name]:
                raise WrongAnswer(f"changes its input {name}")

    def constant(self) -> dict[str, float]:
        """The inputs of :data:`FEW` or more floating-point numbers that are all the same, and that number."""
        arrays = {name: np.asarray(array) for name, array in self.arrays.items()}
        return {
            name: float(array.flat[0])
            for name, array in arrays.items()
            if array.dtype.kind == "f" and array.size >= FEW and (array == array.flat[0]).all()
        }


def _fingerprint(array: Array) -> bytes:
    """A hash of an array's contents, to see whether it was changed."""
    return hashlib.blake2b(
        np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, digest_size=16
    ).digest()


def scaled_error(name: str, answer: Array, reference: Array, tolerance: float) -> float:
    """The largest error of ``answer``, over the largest magnitude of ``reference``.

    Elements where both are NaN, or the same infinity, agree. Raises :class:`WrongAnswer` with the
    first bad element where the error is past ``tolerance`` (0: exactly the same).
    """
    if answer.shape != reference.shape:
        raise WrongAnswer(f"{name} has shape {answer.shape}, its reference {reference.shape}")
    answer, reference = _by_bytes(answer), _by_bytes(reference)
    kinds = answer.dtype.kind + reference.dtype.kind
    exact = not set(kinds) & set("fc")
    if exact:
        errors = (answer != reference).astype(np.float64)
        scale = 1.0
    else:
        wide = np.complex128 if "c" in kinds else np.float64
        a, b = answer.astype(wide, copy=False), reference.astype(wide, copy=False)
        finite = np.abs(b[np.isfinite(b)])
        scale = float(finite.max()) if finite.size else 1.0
        scale = scale or 1.0
        with np.errstate(invalid="ignore", over="ignore"):
            errors = np.asarray(np.abs(a - b) / scale)  # of two scalars numpy makes no array
        errors[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
        errors[np.isnan(errors)] = np.inf
    worst = float(errors.max()) if errors.size else 0.0
    if not worst <= tolerance:
        raise WrongAnswer(_first_bad(name, answer, reference, errors, tolerance, exact))
    return worst


def _by_bytes(array: Array) -> Array:
    """Flags as bytes: NumPy takes any byte but 0 for true, and so the poison too."""
    return array.view(np.uint8) if array.dtype == np.bool_ else array


def _first_bad(
    name: str, answer: Array, reference: Array, errors: Array, tolerance: float, exact: bool
) -> str:
    bad = errors > tolerance
    flat = int(np.argmax(bad))
    index = tuple(int(i) for i in np.unravel_index(flat, bad.shape))
    where = f"{name}[{', '.join(map(str, index))}]" if index else name
    got, expected = answer[index], reference[index]
    text = f"{where} is {got} instead of {expected}"
    if not exact:
        error = float(errors[index])
        text += f" (error {error:.3g} of the largest value, tolerance {tolerance:.3g})"
        if np.isnan(got):
            text += ", perhaps never written"
    share = np.count_nonzero(bad) / bad.size
    return f"{text}; {share:.3g} of {name} is wrong" if bad.size > 1 else text
