"""What a database's refusal means for the reader."""

from __future__ import annotations

import pytest

from autotune.store.databases.address import read_address
from autotune.store.databases.failures import explain

ADDRESS = read_address("postgresql://me@server/studies")


@pytest.mark.parametrize(
    ("kind", "away"), [("OperationalError", True), ("ConnectionTimeout", True), ("DataError", False)]
)
def test_what_the_driver_refuses_itself_is_no_server_that_is_away(kind: str, away: bool) -> None:
    """Neither has a code of the server's."""
    psycopg = pytest.importorskip("psycopg")
    error = getattr(psycopg, kind, None) or getattr(psycopg.errors, kind)
    said = str(explain(error("text fields cannot contain NUL"), ADDRESS))
    assert ("cannot be reached" in said) is away and "NUL" in said
