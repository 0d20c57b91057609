"""Waiting for a server that is away: to start it again takes seconds, and a search hours.

A call in which the server went away is begun again where that cannot write anything twice: because the
commit was not sent yet, or because the call is idempotent. Of every other call nobody knows whether it was
kept, and that is an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import isfunction, isgeneratorfunction
from typing import Any, TypeVar

import sqlalchemy as sa

from autotune.errors import StoreError
from autotune.store.databases.address import Address
from autotune.store.databases.failures import explain, is_lost

LONGEST_SECONDS = 60.0
"""How long a server may be away; most are back within ten seconds."""

NAP_SECONDS, LONGEST_NAP_SECONDS = 0.1, 2.0
"""Between two tries to connect: the first nap, and what doubling it comes to at most."""

MOST_LOSSES = 3
"""How often one call is begun again; a server that goes away each time has another problem."""

Kind = TypeVar("Kind", bound=type)
Method = TypeVar("Method", bound=Callable[..., Any])


class LostError(StoreError):
    """The server went away during a transaction. ``in_doubt``: it may have been committed all the same."""

    def __init__(self, error: sa.exc.DBAPIError, address: Address, *, in_doubt: bool) -> None:
        super().__init__(str(explain(error, address)))
        self.in_doubt = in_doubt


class Patience:
    """Lends connections; inside :meth:`waiting` also to a server that is away, once it is back."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._note: Callable[[str], None] | None = None

    @contextmanager
    def waiting(self, note: Callable[[str], None]) -> Iterator[None]:
        """Inside, a server that is away is waited for, and ``note`` is told."""
        before, self._note = self._note, note
        try:
            yield
        finally:
            self._note = before

    @property
    def waits(self) -> bool:
        return self._note is not None

    @contextmanager
    def reading(self, engine: sa.Engine) -> Iterator[sa.Connection]:
        """A connection. Raises :class:`LostError` where the server goes meanwhile."""
        with self._connect(engine) as connection, self._may_be_lost(connection, in_doubt=False):
            yield connection

    @contextmanager
    def writing(self, engine: sa.Engine) -> Iterator[sa.Connection]:
        """A transaction, kept if the block ends well. Raises :class:`LostError` where the server goes."""
        with self._connect(engine) as connection, connection.begin() as transaction:
            with self._may_be_lost(connection, in_doubt=False):
                yield connection
            with self._may_be_lost(connection, in_doubt=True):
                if transaction.is_active:  # the block may have ended it itself
                    transaction.commit()

    def _connect(self, engine: sa.Engine) -> sa.Connection:
        """Raises what SQLAlchemy does, where there is no connection and no patience (any more)."""
        try:
            return engine.connect()
        except sa.exc.OperationalError as error:
            # A wrong password looks the same: psycopg has no code for what happens before it is in.
            if self._note is None or self._address.kind != "postgresql":
                raise
            note, self._note = self._note, None  # after waiting in vain, do not wait again
            reason = str(error.orig).strip().partition("\n")[0]
            where, seconds = self._address.where, LONGEST_SECONDS
            note(f"the store {where} cannot be reached ({reason}): waiting for it, up to {seconds:g} s")
            connection = _soon(engine.connect)
            note("the store is there again")
            self._note = note
            return connection

    @contextmanager
    def _may_be_lost(self, connection: sa.Connection, *, in_doubt: bool) -> Iterator[None]:
        try:
            yield
        except sa.exc.DBAPIError as error:
            if self._address.kind != "postgresql" or not is_lost(error):
                raise
            connection.invalidate(error)  # nothing can be taken back on it either
            raise LostError(error, self._address, in_doubt=in_doubt) from error


def _soon(connect: Callable[[], sa.Connection]) -> sa.Connection:
    deadline = time.monotonic() + LONGEST_SECONDS
    nap = NAP_SECONDS
    while True:
        try:
            return connect()
        except sa.exc.OperationalError:
            if time.monotonic() > deadline:
                raise
        time.sleep(nap)
        nap = min(2 * nap, LONGEST_NAP_SECONDS)


# -- beginning again -----------------------------------------------------------------------------

_TWICE = "autotune_harmless_twice"


def harmless_twice(when: Callable[..., bool] = lambda *_, **__: True) -> Callable[[Method], Method]:
    """Marks a method as idempotent: it is called again even where it may have been kept already.

    ``when``: for which arguments, the store among them, that holds.
    """

    def mark(method: Method) -> Method:
        setattr(method, _TWICE, when)
        return method

    return mark


def begins_again(kind: Kind) -> Kind:
    """A class decorator: its public methods are called again where the server went away (see above).

    Each of them must write in at most one transaction. Generators are left alone, since they have handed out
    what they read before the server went.
    """
    for name, method in list(vars(kind).items()):
        if name[0] != "_" and isfunction(method) and not isgeneratorfunction(method):
            setattr(kind, name, _again(method))
    return kind


def _again(method: Callable[..., Any]) -> Callable[..., Any]:
    twice: Callable[..., bool] = getattr(method, _TWICE, lambda *_, **__: False)

    @wraps(method)
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        for _ in range(MOST_LOSSES):
            try:
                return method(self, *arguments, **named)
            except LostError as lost:
                if not self._database.patience.waits or (
                    lost.in_doubt and not twice(self, *arguments, **named)
                ):
                    raise
        return method(self, *arguments, **named)

    return call
