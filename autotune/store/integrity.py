"""Is the database sound? What the fault tests ask after everything that they do to it."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa

from autotune.store.failures import is_damage
from autotune.store.schema import readings, trials


def findings(connection: sa.Connection) -> list[str]:
    """What is wrong, each in a sentence. Where the pages are damaged the rows are not asked at all."""
    if connection.dialect.name != "sqlite":
        return list(_miscounted(connection))
    return list(_damaged_pages(connection)) or [*_dangling(connection), *_miscounted(connection)]


def _damaged_pages(connection: sa.Connection) -> Iterator[str]:
    try:
        for line in connection.exec_driver_sql("PRAGMA integrity_check").scalars():
            if line != "ok":
                yield f"integrity check: {line}"
    except sa.exc.DatabaseError as error:  # damaged so badly that the check itself gives up
        if not is_damage(error):
            raise
        yield f"integrity check: {error.orig}"


def _dangling(connection: sa.Connection) -> Iterator[str]:
    for table, row, target, _ in connection.exec_driver_sql("PRAGMA foreign_key_check"):
        yield f"{table} row {row} refers to a missing row of {target}"


def _miscounted(connection: sa.Connection) -> Iterator[str]:
    has = sa.func.count(readings.c.seq)
    query = (
        sa.select(trials.c.id, trials.c.reading_count, has)
        .outerjoin(readings, readings.c.trial_id == trials.c.id)
        .group_by(trials.c.id)
        .having(has != trials.c.reading_count)
    )
    for trial, should, found in connection.execute(query):
        yield f"trial {trial} should have {should} readings and has {found}"
