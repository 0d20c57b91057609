"""The rows of a frame, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def rows_of(frame: pd.DataFrame) -> Iterator[Any]:
    """Each row with its columns as attributes; what types they have, a frame does not say."""
    yield from frame.itertuples(index=False)
