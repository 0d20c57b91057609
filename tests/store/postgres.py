"""A PostgreSQL server of our own, in a temporary folder, for the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USER = "postgres"
NAME = "store"
"""The database that each test empties before it uses it."""


def why_not() -> str:
    """Why there can be no server here; empty where there can."""
    if shutil.which("initdb") is None or shutil.which("pg_ctl") is None:
        return "no PostgreSQL server (initdb, pg_ctl) on the PATH"
    try:
        import psycopg as _  # noqa: F401
    except ImportError:
        return "psycopg is not installed: pip install 'psycopg[binary]'"
    return ""


@contextmanager
def server() -> Iterator[Path]:
    """Runs a server without network; gives the folder of its socket."""
    folder = Path(tempfile.mkdtemp(prefix="autotune-postgres-"))
    account = _account()
    if account:
        shutil.chown(folder, USER)
    data = folder / "data"
    try:
        _run(
            ["initdb", "-D", str(data), "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync"], account, folder
        )
        start(folder)
        try:
            yield folder
        finally:
            stop(folder, "immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def start(folder: Path) -> None:
    options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
    log, data = str(folder / "log"), str(folder / "data")
    _run(["pg_ctl", "-D", data, "-l", log, "-w", "-o", options, "start"], _account(), folder)


def stop(folder: Path, how: str = "fast") -> None:
    _run(["pg_ctl", "-D", str(folder / "data"), "-m", how, "-w", "stop"], _account(), folder)


def _account() -> dict[str, str]:
    """The server refuses to run as root."""
    return {"user": USER} if os.getuid() == 0 else {}


def make_database(socket: Path, name: str, encoding: str = "UTF8") -> str:
    """A new, empty database; its URL."""
    import psycopg

    how = f"ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    with psycopg.connect(f"host={socket} user={USER} dbname=postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} {how}")
    return f"postgresql://{USER}@/{name}?host={socket}"


def emptied(url: str) -> str:
    """``url``, with the database as it was when it was new, and nobody connected to it.

    A new one has three hundred files: to delete those of a database a test took longer than the tests.
    """
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return url


def as_user(url: str, name: str, *grants: str) -> str:
    """The URL of the same database for a new user, who may do there what the SQL ``grants`` say."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN")
        for grant in grants:
            connection.execute(f"GRANT {grant} TO {name}")
    return url.replace(f"//{USER}@", f"//{name}@")


def drop_connections(socket: Path, name: str) -> int:
    """End every connection to a database, as a restarted server or a broken network would; how many."""
    import psycopg

    with psycopg.connect(f"host={socket} user={USER} dbname=postgres", autocommit=True) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
        )
        return len(ended.fetchall())


def _run(command: list[str], account: dict[str, str], folder: Path) -> None:
    # Into a file, not a pipe: the server inherits it and would keep a pipe open.
    with (folder / "output").open("a") as output:
        done = subprocess.run(command, stdout=output, stderr=output, cwd=folder, **account)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{(folder / 'output').read_text()}")
