"""Is the database sound? ``autotune doctor --store`` asks, and fault tests after all that they do."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa

from autotune.errors import StoreError
from autotune.store.databases.failures import is_damage
from autotune.store.databases.values import malformed
from autotune.store.documents import content_hash, unpack
from autotune.store.schema import artifacts, readings, trials

AT_ONCE = 20
"""Files that are held in memory at once."""


def findings(connection: sa.Connection) -> list[str]:
    """What is wrong, each in a sentence. Where pages are damaged, the rows are not looked at."""
    sqlite = connection.dialect.name == "sqlite"
    if sqlite and (damaged := list(_damaged_pages(connection))):
        return damaged
    dangling = _dangling(connection) if sqlite else ()
    return [*dangling, *malformed(connection), *_miscounted(connection), *_altered(connection)]


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


def _altered(connection: sa.Connection) -> Iterator[str]:
    query = sa.select(artifacts.c.hash, artifacts.c.kind, artifacts.c.encoding, artifacts.c.content)
    for digest, kind, encoding, content in connection.execution_options(yield_per=AT_ONCE).execute(query):
        try:
            same = content_hash(unpack(encoding, content)) == digest
        except StoreError:
            same = False
        if not same:
            yield f"the file {digest[:12]} ({kind}) is not what it was when it was stored"
