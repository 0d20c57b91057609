"""Statements that every trial needs, compiled once and run on the driver's own connection.

SQLAlchemy takes 15 to 30 microseconds to execute a statement that it has compiled before and 30 to begin and
commit, SQLite itself 1 to 5; with eight writers on two cores, whose caches hold none of it, several
times that. That was most of the cost of a trial, so the statements that every trial needs bypass it.
SQLAlchemy still writes their text and encodes their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.compiler import SQLCompiler

Values = Mapping[str, Any]
"""What the parameters of a statement are set to, by name."""

Row = tuple[Any, ...]
"""As the driver gives it: what is kept as JSON is still text."""


@dataclass(frozen=True, slots=True)
class Direct:
    """A connection of the driver's own, in whatever transaction it is in."""

    dialect: Dialect
    driver: Any

    @classmethod
    def through(cls, connection: sa.Connection) -> Self:
        """The one below a connection of SQLAlchemy's."""
        return cls(connection.dialect, connection.connection.dbapi_connection)


class Prepared:
    """A statement and its parameters; those of an insert are named as its ``columns``.

    What the driver raises is raised as a :class:`sqlalchemy.exc.DBAPIError`, as though SQLAlchemy had
    run it. Where databases need different words, ``statement`` is a function of the dialect.
    """

    def __init__(
        self,
        statement: sa.ClauseElement | Callable[[Dialect], sa.ClauseElement],
        columns: Sequence[str] | None = None,
    ) -> None:
        self._statement = statement
        self._columns = columns
        self._compiled: dict[str, _Compiled] = {}

    def rows(self, direct: Direct, values: Values) -> list[Row]:
        """What it selects or returns."""
        compiled = self._for(direct.dialect)
        try:
            cursor = direct.driver.cursor()
            cursor.execute(compiled.text, compiled.encode(values))
            found: list[Row] = cursor.fetchall()
        except direct.dialect.loaded_dbapi.Error as error:
            raise sa.exc.DBAPIError(compiled.text, None, error) from error
        return found

    def row(self, direct: Direct, values: Values) -> Row | None:
        """The first of its rows, if there is any."""
        found = self.rows(direct, values)
        return found[0] if found else None

    def run(self, direct: Direct, values: Values) -> int:
        """How many rows it changed."""
        compiled = self._for(direct.dialect)
        try:
            cursor = direct.driver.cursor()
            cursor.execute(compiled.text, compiled.encode(values))
            changed: int = cursor.rowcount
        except direct.dialect.loaded_dbapi.Error as error:
            raise sa.exc.DBAPIError(compiled.text, None, error) from error
        return changed

    def run_for_each(self, direct: Direct, many: Iterable[Values]) -> None:
        compiled = self._for(direct.dialect)
        try:
            cursor = direct.driver.cursor()
            cursor.executemany(compiled.text, [compiled.encode(values) for values in many])
        except direct.dialect.loaded_dbapi.Error as error:
            raise sa.exc.DBAPIError(compiled.text, None, error) from error

    def _for(self, dialect: Dialect) -> _Compiled:
        found = self._compiled.get(dialect.name)
        if found is None:
            statement = self._statement(dialect) if callable(self._statement) else self._statement
            found = self._compiled[dialect.name] = _Compiled(statement, self._columns, dialect)
        return found


class _Compiled:
    """A statement in one database's words, and what turns named values into what its driver takes."""

    def __init__(self, statement: sa.ClauseElement, columns: Sequence[str] | None, dialect: Dialect) -> None:
        compiled = statement.compile(dialect=dialect, column_keys=columns)
        assert isinstance(compiled, SQLCompiler)
        assert not compiled.post_compile_params, "a list of values would be written into the text each time"
        self.text = compiled.string
        named = {name: parameter for parameter, name in compiled.bind_names.items()}
        self._fixed = {name: p.value for name, p in named.items() if not p.required}
        encoders = {name: p.type.dialect_impl(dialect).bind_processor(dialect) for name, p in named.items()}
        self._positional = compiled.positiontup is not None
        self._plan = [(name, encoders[name]) for name in compiled.positiontup or named]

    def encode(self, values: Values) -> Any:
        """The parameters by place or by name, whichever the driver wants."""
        given = {**self._fixed, **values} if self._fixed else values
        if self._positional:
            return [encoder(given[name]) if encoder else given[name] for name, encoder in self._plan]
        return {name: encoder(given[name]) if encoder else given[name] for name, encoder in self._plan}


def insert_into(dialect: Dialect, table: sa.Table) -> Any:
    """An insert in the dialect of one database, which can say what to do on a conflict."""
    if dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert as insert_postgresql

        return insert_postgresql(table)
    from sqlalchemy.dialects.sqlite import insert as insert_sqlite

    return insert_sqlite(table)
