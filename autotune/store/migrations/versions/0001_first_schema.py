"""The first schema: studies, segments, sessions, trials, readings, verdicts, artefacts, environments.

Written out in full, independent of the package's own tables: a migration never changes once released.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")
OPEN = sa.text("status IN ('waiting', 'running')")
SEARCHED = sa.text("purpose = 'search'")


def key() -> sa.Column[Any]:
    return sa.Column("id", KEY, primary_key=True)


def refers(column: str, target: str, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(column, KEY, sa.ForeignKey(f"{target}.id"), nullable=nullable)


def text(name: str, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Text, nullable=nullable)


def number(name: str, kind: type[Any] = sa.Integer, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=nullable)


def upgrade() -> None:
    _studies()
    _trials()
    op.create_table(
        "readings",
        sa.Column("trial_id", KEY, sa.ForeignKey("trials.id"), primary_key=True, autoincrement=False),
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        text("metric"),
        number("value", sa.Double, nullable=True),
        number("at", sa.Double, nullable=True),
        text("discarded"),
        text("context", nullable=True),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "artifacts",
        sa.Column("hash", sa.Text, primary_key=True),
        text("kind"),
        number("size", sa.BigInteger),
        text("encoding"),
        sa.Column("content", sa.LargeBinary, nullable=False),
        number("created_at", sa.Double),
    )
    op.create_table(
        "environments",
        sa.Column("hash", sa.Text, primary_key=True),
        text("document"),
        number("created_at", sa.Double),
    )


def _studies() -> None:
    op.create_table(
        "studies",
        key(),
        *(text(name) for name in ("name", "key", "spec_text", "document", "space_hash", "objective")),
        *(text(name) for name in ("workload", "metrics", "machine_key", "environment_hash")),
        sa.Column("replayed", sa.Boolean(create_constraint=False), nullable=False),
        refers("parent_id", "studies", nullable=True),
        text("differs"),
        number("created_at", sa.Double),
        number("next_number"),
        number("next_told"),
    )
    op.create_index("studies_by_name", "studies", ["name", "key"])
    op.create_table(
        "space_revisions",
        key(),
        refers("study_id", "studies"),
        number("replaced_at", sa.Double),
        *(text(name) for name in ("spec_text", "document", "space_hash")),
    )
    op.create_index("space_revisions_by_study", "space_revisions", ["study_id"])
    op.create_table(
        "segments",
        key(),
        refers("study_id", "studies"),
        number("number"),
        *(text(name) for name in ("document", "artifacts", "reason")),
        number("created_at", sa.Double),
    )
    op.create_index("segments_by_number", "segments", ["study_id", "number"], unique=True)
    op.create_table(
        "sessions",
        key(),
        refers("study_id", "studies"),
        *(text(name) for name in ("settings", "environment_hash")),
        number("pid", sa.BigInteger),
        text("host"),
        number("started_at", sa.Double),
        number("finished_at", sa.Double, nullable=True),
        text("reason"),
    )
    op.create_index("sessions_by_study", "sessions", ["study_id"])
    op.create_table(
        "verdicts",
        key(),
        refers("study_id", "studies"),
        refers("session_id", "sessions"),
        text("document"),
        number("created_at", sa.Double),
    )
    op.create_index("verdicts_by_study", "verdicts", ["study_id"])


def _trials() -> None:
    op.create_table(
        "trials",
        key(),
        refers("study_id", "studies"),
        number("number"),
        refers("session_id", "sessions"),
        refers("segment_id", "segments"),
        *(text(name) for name in ("purpose", "configuration", "hash", "status", "strategy", "reason")),
        number("ask"),
        number("knew"),
        number("told", nullable=True),
        number("attempt"),
        text("worker"),
        number("lease_until", sa.Double),
        number("proposed_at", sa.Double),
        number("started_at", sa.Double, nullable=True),
        number("finished_at", sa.Double, nullable=True),
        text("phases"),
        text("metrics"),
        number("reading_count"),
        text("message"),
        text("phase"),
        number("exit_code", sa.BigInteger, nullable=True),
        number("signal", nullable=True),
        number("peak_memory", sa.BigInteger, nullable=True),
        *(text(name) for name in ("stderr", "facts", "environment_hash", "artifacts")),
    )
    op.create_index("trials_by_number", "trials", ["study_id", "number"], unique=True)
    op.create_index("trials_by_told", "trials", ["study_id", "told"], unique=True)
    op.create_index(
        "trials_searched_once",
        "trials",
        ["study_id", "hash"],
        unique=True,
        sqlite_where=SEARCHED,
        postgresql_where=SEARCHED,
    )
    op.create_index("trials_open", "trials", ["study_id"], sqlite_where=OPEN, postgresql_where=OPEN)
    op.create_index("trials_by_status", "trials", ["study_id", "purpose", "status"])
