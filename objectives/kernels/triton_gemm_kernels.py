"""The kernels of ``triton-gemm``: a product through pointers, one by descriptors, the sum of partial sums.

A and B may have zeros behind k, and B behind n: ``a_depth`` and ``b_depth`` count the elements along k and
``b_columns`` those along n, zeros included. Reads are masked behind these, not behind k and n: Triton reads
several elements at once only where a mask cannot part them.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def place(tile, tiles_m, tiles_n, GROUP: tl.constexpr):
    """Row and column of a tile among the tiles, which are numbered down bands of GROUP rows of them."""
    band = tile // (GROUP * tiles_n)
    within = tile % (GROUP * tiles_n)
    height = min(tiles_m - band * GROUP, GROUP)
    return band * GROUP + within % height, within // height


@triton.jit
def store_tile(c, values, m, n, c_row, tile_m, tile_n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Write a tile of C through pointers, but for what of it lies past the edge."""
    rows = tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_N)
    row_inside = rows < m - tile_m * BLOCK_M
    column_inside = columns < n - tile_n * BLOCK_N
    c += (tile_m * BLOCK_M).to(tl.int64) * c_row + tile_n * BLOCK_N
    c_tile = c + rows[:, None] * c_row + columns[None, :]
    tl.store(c_tile, values.to(c.dtype.element_ty), mask=row_inside[:, None] & column_inside[None, :])


@triton.jit
def product(
    a, b, c, m, n, k, a_depth, b_depth, b_columns, a_row, a_column, b_row, b_column, c_row, part_stride,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr, SPLIT: tl.constexpr,
    EVEN_M: tl.constexpr, EVEN_N: tl.constexpr, EVEN_K: tl.constexpr,
    PRECISION: tl.constexpr, WIDEN: tl.constexpr,
):  # fmt: skip
    """One tile of C, or of one of its SPLIT partial sums."""
    tile_m, tile_n = place(tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), GROUP)
    part = tl.program_id(1)
    steps = tl.cdiv(k, BLOCK_K * SPLIT)
    begin = part * steps * BLOCK_K
    rows = tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    # 64 bits for the tile's corner; offsets within a tile have as many only where they need them.
    a += (tile_m * BLOCK_M).to(tl.int64) * a_row + begin.to(tl.int64) * a_column
    b += (tile_n * BLOCK_N).to(tl.int64) * b_column + begin.to(tl.int64) * b_row
    a_tile = a + rows[:, None] * a_row + depth[None, :] * a_column
    b_tile = b + depth[:, None] * b_row + columns[None, :] * b_column
    row_inside = rows < m - tile_m * BLOCK_M
    column_inside = columns < b_columns - tile_n * BLOCK_N

    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(steps):
        a_inside = depth < a_depth - begin - step * BLOCK_K
        b_inside = depth < b_depth - begin - step * BLOCK_K
        if EVEN_M and EVEN_K:
            a_values = tl.load(a_tile)
        elif EVEN_K:
            a_values = tl.load(a_tile, mask=row_inside[:, None], other=0.0)
        else:
            a_values = tl.load(a_tile, mask=row_inside[:, None] & a_inside[None, :], other=0.0)
        if EVEN_N and EVEN_K:
            b_values = tl.load(b_tile)
        elif EVEN_K:
            b_values = tl.load(b_tile, mask=column_inside[None, :], other=0.0)
        else:
            b_values = tl.load(b_tile, mask=b_inside[:, None] & column_inside[None, :], other=0.0)
        if WIDEN:
            a_values = a_values.to(tl.float32)
            b_values = b_values.to(tl.float32)
        total = tl.dot(a_values, b_values, total, input_precision=PRECISION)
        a_tile += BLOCK_K * a_column
        b_tile += BLOCK_K * b_row

    c_part = c + part.to(tl.int64) * part_stride
    store_tile(c_part, total, m, n, c_row, tile_m, tile_n, BLOCK_M, BLOCK_N)


@triton.jit
def described_product(
    a, b, c, m, n, k, a_depth, b_depth, b_columns, c_row,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr, PROGRAMS: tl.constexpr, COLUMN_B: tl.constexpr, DESCRIBE_C: tl.constexpr,
    PRECISION: tl.constexpr, WIDEN: tl.constexpr,
):  # fmt: skip
    """Every PROGRAMS-th tile of C, by descriptors: past the edge zeros are read and nothing is written.

    C is written through pointers where its rows allow no descriptor.
    """
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    a_tiles = tl.make_tensor_descriptor(a, [m, a_depth], [a_depth, 1], [BLOCK_M, BLOCK_K])
    if COLUMN_B:
        b_tiles = tl.make_tensor_descriptor(b, [b_columns, b_depth], [b_depth, 1], [BLOCK_N, BLOCK_K])
    else:
        b_tiles = tl.make_tensor_descriptor(b, [b_depth, b_columns], [b_columns, 1], [BLOCK_K, BLOCK_N])
    if DESCRIBE_C:
        c_tiles = tl.make_tensor_descriptor(c, [m, n], [n, 1], [BLOCK_M, BLOCK_N])
    for tile in range(tl.program_id(0), tiles_m * tiles_n, PROGRAMS):
        tile_m, tile_n = place(tile, tiles_m, tiles_n, GROUP)
        row = tile_m * BLOCK_M
        column = tile_n * BLOCK_N
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for step in range(tl.cdiv(k, BLOCK_K)):
            a_values = a_tiles.load([row, step * BLOCK_K])
            if COLUMN_B:
                b_values = b_tiles.load([column, step * BLOCK_K]).T
            else:
                b_values = b_tiles.load([step * BLOCK_K, column])
            if WIDEN:
                a_values = a_values.to(tl.float32)
                b_values = b_values.to(tl.float32)
            total = tl.dot(a_values, b_values, total, input_precision=PRECISION)
        if DESCRIBE_C:
            c_tiles.store([row, column], total.to(c.dtype.element_ty))
        else:
            store_tile(c, total, m, n, c_row, tile_m, tile_n, BLOCK_M, BLOCK_N)


@triton.jit
def sum_parts(parts, c, size, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    """C from its SPLIT partial sums in float32, each of ``size`` elements."""
    begin = tl.program_id(0).to(tl.int64) * BLOCK
    elements = tl.arange(0, BLOCK)
    inside = elements < size - begin
    parts += begin
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for _ in range(SPLIT):
        total += tl.load(parts + elements, mask=inside, other=0.0)
        parts += size
    tl.store(c + begin + elements, total.to(c.dtype.element_ty), mask=inside)
