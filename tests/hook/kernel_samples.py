"""Kernels of somebody who knows nothing of tuning; imported where Triton is, in a process of its own."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def faulty(x, out, n, stride, BLOCK: tl.constexpr, FAULT: tl.constexpr):  # noqa: N803
    """Doubles every ``stride``-th element of ``x`` in place; by FAULT it does it wrong."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + at * stride, mask=inside)
    if FAULT == 1:  # the last one is forgotten
        tl.store(out + at * stride, 2 * value, mask=at < n - 1)
    elif FAULT == 2:  # writes past the end
        tl.store(out + at * stride, 2 * value, mask=at < n + 1)
    elif FAULT == 3:  # does nothing at all
        pass
    elif FAULT == 4:  # changes its input
        tl.store(x + at * stride, value + 1, mask=inside)
        tl.store(out + at * stride, 2 * value, mask=inside)
    elif FAULT == 5:  # is a little wrong
        tl.store(out + at * stride, 2.01 * value, mask=inside)
    else:
        tl.store(out + at * stride, 2 * value, mask=inside)


@triton.jit
def strided_add(x, y, y_stride, out, n, BLOCK: tl.constexpr):  # noqa: N803
    """``out = x + y``, where the elements of ``y`` are ``y_stride`` apart: none, where it was expanded."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + at, mask=inside) + tl.load(y + at * y_stride, mask=inside)
    tl.store(out + at, value, mask=inside)


@triton.jit
def total(x, out, n, BLOCK: tl.constexpr):  # noqa: N803
    """The sum of ``x``. It has no masks, and is right where BLOCK divides ``n``."""
    found = 0.0
    for start in range(0, n, BLOCK):
        found += tl.sum(tl.load(x + start + tl.arange(0, BLOCK)))
    tl.store(out, found)


@triton.jit
def copy(x, out, BLOCK: tl.constexpr):  # noqa: N803
    """``out = x``. It has no masks, and is right where BLOCK divides their length."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at))
