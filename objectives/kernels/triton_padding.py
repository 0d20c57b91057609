"""Copies of matrices in which every row begins at a round address, with zeros behind the ends of the rows.

A row of an odd length begins anywhere. It is read an element at a time, and tensor descriptors refuse it. Its
copy is read 16 bytes at a time, or by a descriptor, and the zeros add nothing to a product.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from triton_compile import Launch

ALIGNED_BYTES = 16
"""What Triton reads at once from rows that are a multiple of it; a descriptor takes no others."""

ROW_BYTES = 128
"""What the rows of a copy are a multiple of: a line of the cache, so that rows of a tile share none."""

TILE = 2048
"""Elements that one program copies: 16 a thread, which reads them one by one without waiting for any."""

TILE_COLUMNS = 256
"""At most; a program has several rows."""

THREAD_BYTES = 4
"""What a thread writes at once: of a warp that is a line of the cache. Two elements at least, since threads
that write single ones are put side by side down the columns by Triton 3.6."""


@dataclass(frozen=True)
class Matrix:
    """A tensor of a launch by its name, row after row without gaps."""

    name: str
    rows: int
    columns: int


@triton.jit
def copy_padded(
    x, copy, rows, columns, copy_rows, copy_columns,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, TOGETHER: tl.constexpr,
):  # fmt: skip
    """One tile of the copy: what x has there, and zeros behind the ends of its rows and of its columns."""
    tiles_across = tl.cdiv(copy_columns, COLUMNS)
    tile = tl.program_id(0)
    row = tile // tiles_across * ROWS + tl.arange(0, ROWS)
    # A thread writes so many columns at once, and reads them one by one. Triton would give it 16 bytes, and
    # each read of a warp would be spread over four lines of the cache.
    column = tl.max_contiguous(tile % tiles_across * COLUMNS + tl.arange(0, COLUMNS), TOGETHER)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    values = tl.load(x + (row.to(tl.int64) * columns)[:, None] + column[None, :], mask=inside, other=0.0)
    written = (row < copy_rows)[:, None] & (column < copy_columns)[None, :]
    tl.store(copy + (row.to(tl.int64) * copy_columns)[:, None] + column[None, :], values, mask=written)


def aligned(elements: int, dtype: torch.dtype) -> bool:
    """Whether rows of so many elements all begin at a multiple of :data:`ALIGNED_BYTES`."""
    return elements * dtype.itemsize % ALIGNED_BYTES == 0


def padded(elements: int, dtype: torch.dtype) -> int:
    """Of how many elements a row of the copy is."""
    step = ROW_BYTES // dtype.itemsize
    return triton.cdiv(elements, step) * step


def copy_launch(matrix: Matrix, copy: Matrix, dtype: torch.dtype) -> Launch:
    """Copies a matrix, and writes all of ``copy``, which has as many rows and columns or more."""
    columns = min(TILE_COLUMNS, triton.next_power_of_2(copy.columns))
    rows = TILE // columns
    return Launch(
        copy_padded,
        (triton.cdiv(copy.rows, rows) * triton.cdiv(copy.columns, columns),),
        {
            "x": matrix.name, "copy": copy.name, "rows": matrix.rows, "columns": matrix.columns,
            "copy_rows": copy.rows, "copy_columns": copy.columns,
        },
        {"ROWS": rows, "COLUMNS": columns, "TOGETHER": max(2, THREAD_BYTES // dtype.itemsize)},
    )  # fmt: skip
