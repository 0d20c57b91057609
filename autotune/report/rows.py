"""Iterating over the rows of a DataFrame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def rows_of(frame: pd.DataFrame) -> Iterator[Any]:
    """Each row with its columns as attributes, untyped since pandas does not know their types."""
    yield from frame.itertuples(index=False)
