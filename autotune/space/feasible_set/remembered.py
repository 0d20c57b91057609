"""What the states of a layer remember of a term: its values or, where states were merged, their bounds."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from autotune.space.feasible_set import bounds
from autotune.space.feasible_set.bounds import Span
from autotune.space.feasible_set.columns import Array, Column

Remembered: TypeAlias = Column | Span
"""With one entry per state."""


def bounded(one: Remembered, rows: slice | None = None) -> Span:
    """The bounds of each entry, or of those in ``rows``."""
    if rows is not None:
        one = take(one, rows)
    return one if isinstance(one, Span) else bounds.of_column(one)


def upright(one: Remembered) -> Remembered:
    """As a matrix of one column, with one row per state."""
    if isinstance(one, Column):
        return one.reshape(-1, 1)
    return Span(one.low[:, None], one.high[:, None], one.sure[:, None])


def take(one: Remembered, rows: Array | slice) -> Remembered:
    """The entries at ``rows``."""
    if isinstance(one, Column):
        return one.take(rows)
    return Span(one.low[rows], one.high[rows], one.sure[rows])


def flat(one: Remembered, rows: int) -> Remembered:
    """With one entry for each of ``rows`` rows, whatever it was broadcast from."""
    if isinstance(one, Column):
        return flat_column(one, rows)
    return Span(*(np.broadcast_to(part, rows) for part in (one.low, one.high, one.sure)))


def flat_column(one: Column, rows: int) -> Column:
    """As :func:`flat`."""
    undefined = None if one.undefined is None else np.broadcast_to(one.undefined, rows)
    return Column(np.broadcast_to(one.data, rows), undefined)


def filled(one: Remembered, rows: NDArray[np.bool_]) -> Remembered:
    """``one``, with the value of the first of ``rows`` in all of them."""
    if not rows.any():
        return one
    source = np.where(rows, np.argmax(rows), np.arange(len(rows)))
    return take(one, source)
