"""The tables. One trial is one row, so that it is written, read and counted in one statement.

::

    studies ◀── space_revisions                     environments   (by hash)
       ▲  ▲──── segments ◀─┐                        artifacts      (by hash)
       │  ▲──── sessions ◀─┤◀── asks
       │  ▲──── verdicts   │
       └─────── trials ────┘◀── readings, reports, pauses
                                                    recipes        (imported: of studies in other stores)

This module describes the newest version: a new SQLite file gets its tables from here, every other database
from the migrations, and a test holds the two against each other.

Environments and artefacts are content-addressed and named by hash without a foreign key: a result is never
refused because the description of its machine did not arrive.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

from autotune.status import Status
from autotune.store.documents import GarbledError, checked, clean, decode, encode

VERSION = "0006"
"""The newest migration. Versions are four digits, so that a later one sorts after an earlier one."""

VERSION_TABLE = "autotune_version"
"""Not alembic's usual name, so that a database can be shared with another program that uses alembic."""


class Words(sa.types.TypeDecorator[str]):
    """Text from anywhere, with what a database refuses replaced."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if type(value) is str and value.isascii() and "\0" not in value:  # nearly always
            return value
        return None if value is None else clean(str(value))


class Json(sa.types.TypeDecorator[Any]):
    """A JSON document, kept as text: read as it was written, by any version of any database.

    ``form`` says what it is: an object, unless it is a list.
    """

    impl = sa.Text
    cache_ok = True

    def __init__(self, form: type = dict) -> None:
        super().__init__()
        self.form = form

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else encode(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else decode(value, self.form)


class Goals(Json):
    """The metrics of a study, which are objects with these parts."""

    cache_ok = True

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        found = super().process_result_value(value, dialect)
        if not all(isinstance(one, dict) and {"name", "goal", "unit"} <= one.keys() for one in found or ()):
            raise GarbledError(f"{value!r:.40} is no list of metrics")
        return found


class OneOf(sa.types.TypeDecorator[str]):
    """One of a few words."""

    impl = sa.Text
    cache_ok = True

    def __init__(self, words: tuple[str, ...]) -> None:
        super().__init__()
        self.words = words

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        if value is not None and value not in self.words:
            raise GarbledError(f"{value!r:.40} is none of {', '.join(self.words)}")
        return value


class Whole(sa.types.TypeDecorator[int]):
    """An integer; SQLite itself takes a text for one."""

    impl = sa.Integer
    cache_ok = True

    def process_result_value(self, value: int | None, dialect: Dialect) -> int | None:
        return None if value is None else checked(value, int)


class Large(Whole):
    """An integer of 64 bits."""

    impl = sa.BigInteger
    cache_ok = True


class Count(Whole):
    """How many, or which one of them: 0 or more."""

    cache_ok = True

    def process_result_value(self, value: int | None, dialect: Dialect) -> int | None:
        found = super().process_result_value(value, dialect)
        if found is not None and found < 0:
            raise GarbledError(f"{found} is no count")
        return found


class Real(sa.types.TypeDecorator[float]):
    """A float that is a number; SQLite itself takes a text for one."""

    impl = sa.Double
    cache_ok = True

    def process_result_value(self, value: float | None, dialect: Dialect) -> float | None:
        return None if value is None else checked(value, float)


class Number(sa.types.TypeDecorator[float]):
    """A 64-bit float with every bit of it. SQLite turns NaN into NULL, so NULL means NaN."""

    impl = sa.Double
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: Dialect) -> float | None:
        return None if value is None or value != value else float(value)

    def process_result_value(self, value: float | None, dialect: Dialect) -> float:
        return float("nan") if value is None else checked(value, float)


Key = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # only INTEGER PRIMARY KEY counts up by itself there

NEVER_AGAIN = True
"""Of tables whose numbers people note down: else SQLite gives that of a row that is gone to the next one."""

metadata = sa.MetaData()


def _study() -> sa.Column[int]:
    return sa.Column("study_id", Key, sa.ForeignKey("studies.id"), nullable=False)


studies = sa.Table(
    "studies",
    metadata,
    sa.Column("id", Key, primary_key=True),
    sa.Column("name", Words, nullable=False),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("spec_text", Words, nullable=False),
    sa.Column("document", Json, nullable=False),
    sa.Column("space_hash", sa.Text, nullable=False),
    sa.Column("objective", Words, nullable=False),
    sa.Column("workload", Json, nullable=False),
    sa.Column("metrics", Goals(list), nullable=False),
    sa.Column("machine_key", sa.Text, nullable=False),
    sa.Column("environment_hash", sa.Text, nullable=False),
    sa.Column("replayed", sa.Boolean(create_constraint=False), nullable=False),
    sa.Column("parent_id", Key, sa.ForeignKey("studies.id")),
    sa.Column("differs", Json, nullable=False),
    sa.Column("created_at", Real, nullable=False),
    # The next numbers to give out. Whoever writes holds this row, so they are given out in order.
    sa.Column("next_number", Count, nullable=False),
    sa.Column("next_told", Count, nullable=False),
    sa.Index("studies_by_name", "name", "key"),
    sqlite_autoincrement=NEVER_AGAIN,
)

space_revisions = sa.Table(
    "space_revisions",
    metadata,
    sa.Column("id", Key, primary_key=True),
    _study(),
    sa.Column("replaced_at", Real, nullable=False),
    sa.Column("spec_text", Words, nullable=False),
    sa.Column("document", Json, nullable=False),
    sa.Column("space_hash", sa.Text, nullable=False),
    sa.Index("space_revisions_by_study", "study_id"),
)

segments = sa.Table(
    "segments",
    metadata,
    sa.Column("id", Key, primary_key=True),
    _study(),
    sa.Column("number", Count, nullable=False),
    sa.Column("document", Json, nullable=False),
    sa.Column("artifacts", Json, nullable=False),
    sa.Column("reason", Words, nullable=False),
    sa.Column("created_at", Real, nullable=False),
    sa.Index("segments_by_number", "study_id", "number", unique=True),
)

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("id", Key, primary_key=True),
    _study(),
    sa.Column("settings", Json, nullable=False),
    sa.Column("environment_hash", sa.Text, nullable=False),
    sa.Column("pid", Large, nullable=False),
    sa.Column("host", Words, nullable=False),
    sa.Column("started_at", Real, nullable=False),
    sa.Column("finished_at", Real),
    sa.Column("reason", Words, nullable=False),
    sa.Index("sessions_by_study", "study_id"),
    sqlite_autoincrement=NEVER_AGAIN,
)

OPEN = "status IN ('waiting', 'running')"
SEARCHED = "purpose = 'search'"

trials = sa.Table(
    "trials",
    metadata,
    sa.Column("id", Key, primary_key=True),
    _study(),
    sa.Column("number", Count, nullable=False),
    sa.Column("session_id", Key, sa.ForeignKey("sessions.id"), nullable=False),
    sa.Column("segment_id", Key, sa.ForeignKey("segments.id"), nullable=False),
    sa.Column("purpose", OneOf(("search", "final", "default", "baseline")), nullable=False),
    sa.Column("configuration", Json, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
    sa.Column("status", OneOf(tuple(status.value for status in Status)), nullable=False),
    sa.Column("strategy", Words, nullable=False),
    sa.Column("reason", Json, nullable=False),
    sa.Column("ask", Whole, nullable=False),
    sa.Column("knew", Count, nullable=False),
    sa.Column("told", Count),
    sa.Column("attempt", Count, nullable=False),
    sa.Column("worker", Words, nullable=False),
    sa.Column("lease_until", Real, nullable=False),
    sa.Column("proposed_at", Real, nullable=False),
    sa.Column("started_at", Real),
    sa.Column("finished_at", Real),
    sa.Column("phases", Json, nullable=False),
    sa.Column("metrics", sa.Text, nullable=False),  # JSON, encoded by documents.encode_metrics
    sa.Column("reading_count", Count, nullable=False),
    sa.Column("message", Words, nullable=False),
    sa.Column("phase", Words, nullable=False),
    sa.Column("exit_code", Large),
    sa.Column("signal", Whole),
    sa.Column("peak_memory", Large),
    sa.Column("stderr", Words, nullable=False),
    sa.Column("facts", Json, nullable=False),
    sa.Column("environment_hash", sa.Text, nullable=False),
    sa.Column("artifacts", Json, nullable=False),
    sa.Index("trials_by_number", "study_id", "number", unique=True),
    sa.Index("trials_by_told", "study_id", "told", unique=True),
    # These two are of some rows in PostgreSQL as well, where the migrations make them: to say so here, too,
    # would load its dialect into every process.
    # No two searches of a study ever measure the same: the database itself refuses it.
    sa.Index("trials_searched_once", "study_id", "hash", unique=True, sqlite_where=sa.text(SEARCHED)),
    # A handful of rows however long the study: what expire() and close_session() look at.
    sa.Index("trials_open", "study_id", sqlite_where=sa.text(OPEN)),
    # Counting reads this index alone and none of the wide rows.
    sa.Index("trials_by_status", "study_id", "purpose", "status"),
    sqlite_autoincrement=NEVER_AGAIN,
)

# One row for each reading. One JSON text for each trial would be as fast to write (0.05 ms for 30 readings),
# but larger (102 to 137 bytes a reading, not 76), and not every SQL tool could use it.
readings = sa.Table(
    "readings",
    metadata,
    sa.Column("trial_id", Key, sa.ForeignKey("trials.id"), primary_key=True, autoincrement=False),
    sa.Column("seq", Count, primary_key=True, autoincrement=False),
    sa.Column("metric", Words, nullable=False),
    sa.Column("value", Number),
    sa.Column("at", Number),
    sa.Column("discarded", Words, nullable=False),
    sa.Column("context", Json),  # NULL where empty
    sqlite_with_rowid=False,
)

# What a strategy knew when it was asked, and which trials came of it (null: another session had that one
# already; -1: the budget was spent). Beside the trials, since one of those may go from the session that
# proposed it to another.
asks = sa.Table(
    "asks",
    metadata,
    sa.Column("id", Key, primary_key=True),
    _study(),
    sa.Column("session_id", Key, sa.ForeignKey("sessions.id"), nullable=False),
    sa.Column("number", Count, nullable=False),
    sa.Column("wanted", Count, nullable=False),
    sa.Column("trials_known", Count, nullable=False),
    sa.Column("results_known", Count, nullable=False),
    sa.Column("trials", Json(list), nullable=False),
    sa.Index("asks_by_study", "study_id"),
)

# What a trial says while it runs. The id counts up, so that a reader asks for what is new to it.
reports = sa.Table(
    "reports",
    metadata,
    sa.Column("id", Key, primary_key=True),
    sa.Column("trial_id", Key, sa.ForeignKey("trials.id"), nullable=False),
    sa.Column("step", Large, nullable=False),
    sa.Column("at", Real, nullable=False),
    sa.Column("metrics", Json, nullable=False),
    sa.Index("reports_by_trial", "trial_id"),
)

# What was known of a trial when it was paused. It has a place in the order of results, and what the trial
# ends with has another, so that what a strategy was told follows from one number.
pauses = sa.Table(
    "pauses",
    metadata,
    sa.Column("id", Key, primary_key=True),
    _study(),
    sa.Column("trial_id", Key, sa.ForeignKey("trials.id"), nullable=False),
    sa.Column("told", Count, nullable=False),
    sa.Column("step", Large, nullable=False),
    sa.Column("phases", Json, nullable=False),
    sa.Column("metrics", sa.Text, nullable=False),  # JSON, encoded by documents.encode_metrics
    sa.Column("peak_memory", Large),
    sa.Column("facts", Json, nullable=False),
    sa.Index("pauses_by_told", "study_id", "told", unique=True),
    sa.Index("pauses_by_trial", "trial_id", "step", unique=True),
)

verdicts = sa.Table(
    "verdicts",
    metadata,
    sa.Column("id", Key, primary_key=True),
    _study(),
    sa.Column("session_id", Key, sa.ForeignKey("sessions.id"), nullable=False),
    sa.Column("document", Json, nullable=False),
    sa.Column("created_at", Real, nullable=False),
    sa.Index("verdicts_by_study", "study_id"),
)

# Winners of studies in other stores. The winners of this store's own studies are in their verdicts.
recipes = sa.Table(
    "recipes",
    metadata,
    sa.Column("id", Key, primary_key=True),
    sa.Column("name", Words, nullable=False),
    sa.Column("device", Words, nullable=False),
    sa.Column("case", Words, nullable=False),
    sa.Column("document", Json, nullable=False),
    sa.Column("imported_at", Real, nullable=False),
    sa.Index("recipes_by_name", "name"),
)

artifacts = sa.Table(
    "artifacts",
    metadata,
    sa.Column("hash", sa.Text, primary_key=True),
    sa.Column("kind", Words, nullable=False),
    sa.Column("size", Large, nullable=False),
    sa.Column("encoding", sa.Text, nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Column("created_at", Real, nullable=False),
)

environments = sa.Table(
    "environments",
    metadata,
    sa.Column("hash", sa.Text, primary_key=True),
    sa.Column("document", Json, nullable=False),
    sa.Column("created_at", Real, nullable=False),
)
