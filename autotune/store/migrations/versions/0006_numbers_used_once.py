"""Numbers that people note down, those of studies, sessions and trials, are given once.

SQLite gave the number of a row that was deleted to the next one, if it was the highest. PostgreSQL never did.
"""

import json

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

NUMBERED = ("studies", "sessions", "trials")


def upgrade() -> None:
    if op.get_context().dialect.name != "sqlite":
        return
    for table in NUMBERED:
        _count_up(op.get_bind(), table)
    _skip_mentioned(op.get_bind())


def _count_up(connection: sa.Connection, table: str) -> None:
    """Make the table again: else SQLite gives it no counter. Foreign keys must not be enforced meanwhile."""
    known = sa.text(
        "SELECT sql FROM sqlite_master WHERE tbl_name = :name AND type = :type AND sql IS NOT NULL"
    )
    made = connection.scalars(known, {"name": table, "type": "table"}).one()
    indexes = connection.scalars(known, {"name": table, "type": "index"}).all()
    counting = made.replace("id INTEGER NOT NULL", "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT", 1)
    # Tables that refer to this one go on doing so by its name.
    connection.exec_driver_sql("PRAGMA legacy_alter_table = ON")
    connection.exec_driver_sql(f"ALTER TABLE {table} RENAME TO earlier_{table}")
    connection.exec_driver_sql("PRAGMA legacy_alter_table = OFF")
    connection.exec_driver_sql(counting.replace("PRIMARY KEY (id), ", "", 1))
    connection.exec_driver_sql(f"INSERT INTO {table} SELECT * FROM earlier_{table}")
    connection.exec_driver_sql(f"DROP TABLE earlier_{table}")
    for index in indexes:
        connection.exec_driver_sql(index)


def _skip_mentioned(connection: sa.Connection) -> None:
    """Do not give a number to a study that sessions name for one that is gone, from which they learned."""
    mentions = connection.exec_driver_sql(
        "SELECT settings FROM sessions WHERE settings LIKE '%\"sources\":%'"
    )
    sources = [source for (settings,) in mentions for source in json.loads(settings).get("sources") or ()]
    highest = max((source.get("study") or 0 for source in sources), default=0)
    counter = "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'studies'"
    connection.exec_driver_sql(counter, (highest,))
