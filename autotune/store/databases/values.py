"""Values that autotune cannot have written: somebody has altered the database, or the disk has.

Whatever reads a row checks its values. Where one is wrong, this says where it is; and ``autotune doctor``
lists all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from autotune.store.documents import GarbledError, decode_metrics
from autotune.store.schema import Json, Number, OneOf, Real, Whole, metadata, pauses, trials

METRICS = frozenset({trials.c.metrics, pauses.c.metrics})
"""The columns that hold what ``encode_metrics`` wrote."""
AT_ONCE = 1000
"""How many rows are fetched together."""


@contextmanager
def placed(connection: sa.Connection) -> Iterator[None]:
    """Let a :class:`GarbledError` that is raised inside say where the first wrong value is."""
    try:
        yield
    except GarbledError as error:
        place = next(malformed(connection), "")
        raise GarbledError(error.detail, place) from error


def malformed(connection: sa.Connection) -> Iterator[str]:
    """Every value that cannot have been written, in a sentence with its table, row and column."""
    for table in metadata.sorted_tables:
        own = [column for column in table.c if not isinstance(column.type, sa.LargeBinary)]
        raw = (sa.type_coerce(column, sa.types.NullType()).label(column.name) for column in own)
        rows = connection.execution_options(yield_per=AT_ONCE).execute(sa.select(*raw).select_from(table))
        key = [column.name for column in table.primary_key]
        for row in rows:
            for column, value in zip(own, row, strict=True):
                if wrong := _wrong(column, value, connection.dialect):
                    which = "/".join(str(row._mapping[name])[:12] for name in key)
                    yield f"{table.name} row {which}: {column.name} {wrong}"


def _wrong(column: sa.Column[Any], value: Any, dialect: sa.Dialect) -> str:
    """What is wrong with a value as the driver gives it; empty if nothing is."""
    if value is None:
        return "" if column.nullable or isinstance(column.type, Number) else "is NULL"
    try:
        if column in METRICS:
            decode_metrics(value)
        elif isinstance(column.type, (Json, Number, OneOf, Real, Whole)):
            column.type.process_result_value(value, dialect)
    except GarbledError as error:
        return f"is wrong: {error.detail}"
    return ""
