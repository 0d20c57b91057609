"""Statements that every trial needs, compiled once and run on the driver's own cursor.

SQLAlchemy takes 15 to 30 microseconds to execute a statement that it has compiled before, SQLite itself 1 to
5. With a dozen of them a trial that is most of what a store costs, so these few go past it. How a
statement is written, and how a value of each type is encoded, remains SQLAlchemy's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.compiler import SQLCompiler

Values = Mapping[str, Any]
"""What the parameters of a statement are set to, by name."""

Row = tuple[Any, ...]
"""As the driver gives it: what is kept as JSON is still text."""


class Prepared:
    """A statement and its parameters; those of an insert are named as its ``columns``.

    It runs in the transaction that the connection is in. What the driver raises is raised as a
    :class:`sqlalchemy.exc.DBAPIError`, as though SQLAlchemy had run it.
    """

    def __init__(self, statement: sa.ClauseElement, columns: Sequence[str] | None = None) -> None:
        self._statement = statement
        self._columns = columns
        self._compiled: dict[str, _Compiled] = {}

    def rows(self, connection: sa.Connection, values: Values) -> list[Row]:
        """What it selects or returns."""
        compiled = self._for(connection.dialect)
        try:
            cursor = connection.connection.cursor()
            cursor.execute(compiled.text, compiled.encode(values))
            return cursor.fetchall()  # type: ignore[return-value]
        except connection.dialect.loaded_dbapi.Error as error:
            raise sa.exc.DBAPIError(compiled.text, None, error) from error

    def row(self, connection: sa.Connection, values: Values) -> Row | None:
        """The first of its rows, if there is any."""
        found = self.rows(connection, values)
        return found[0] if found else None

    def run(self, connection: sa.Connection, values: Values) -> int:
        """How many rows it changed."""
        compiled = self._for(connection.dialect)
        try:
            cursor = connection.connection.cursor()
            cursor.execute(compiled.text, compiled.encode(values))
            return cursor.rowcount
        except connection.dialect.loaded_dbapi.Error as error:
            raise sa.exc.DBAPIError(compiled.text, None, error) from error

    def run_for_each(self, connection: sa.Connection, many: Iterable[Values]) -> None:
        compiled = self._for(connection.dialect)
        try:
            cursor = connection.connection.cursor()
            cursor.executemany(compiled.text, [compiled.encode(values) for values in many])
        except connection.dialect.loaded_dbapi.Error as error:
            raise sa.exc.DBAPIError(compiled.text, None, error) from error

    def _for(self, dialect: Dialect) -> _Compiled:
        found = self._compiled.get(dialect.name)
        if found is None:
            found = self._compiled[dialect.name] = _Compiled(self._statement, self._columns, dialect)
        return found


class _Compiled:
    """A statement in one database's words, and what turns named values into what its driver takes."""

    def __init__(self, statement: sa.ClauseElement, columns: Sequence[str] | None, dialect: Dialect) -> None:
        compiled = statement.compile(dialect=dialect, column_keys=columns)
        assert isinstance(compiled, SQLCompiler)
        assert not compiled.post_compile_params, "a list of values would be written into the text each time"
        self.text = compiled.string
        self._order = compiled.positiontup
        named = {name: parameter for parameter, name in compiled.bind_names.items()}
        self._fixed = {name: p.value for name, p in named.items() if not p.required}
        found = {name: p.type.dialect_impl(dialect).bind_processor(dialect) for name, p in named.items()}
        self._encoders = [(name, encoder) for name, encoder in found.items() if encoder]

    def encode(self, values: Values) -> Any:
        """The parameters by place or by name, whichever the driver wants."""
        encoded = {**self._fixed, **values}
        for name, encoder in self._encoders:
            encoded[name] = encoder(encoded[name])
        return encoded if self._order is None else [encoded[name] for name in self._order]
