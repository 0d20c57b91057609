"""A filled data folder as arrays, which are kept as other prepared data is, and folders made of them."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from postgres_programs import Programs
from postgres_sales import Sales
from postgres_server import Server

from autotune.measure.prepared_data import Arrays, PreparedData

_FILLING: Mapping[str, str] = {
    **dict.fromkeys(("fsync", "synchronous_commit", "full_page_writes", "autovacuum"), "off"),
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "1GB",
    "min_wal_size": "32MB",
}
"""Nobody needs the folder before it is whole, and it is to hold no more of the log than it has to."""
_LEFT_OUT = ("postmaster.pid", "postmaster.opts")
_FILLED = (
    "VACUUM (FREEZE, ANALYZE)",
    "UPDATE pg_database SET datistemplate = false",
    "DROP DATABASE template0",
    "DROP DATABASE template1",
    "CHECKPOINT",
)
"""Nobody makes a database of the templates, and to copy them takes longer than the tables."""


def filled(kept: PreparedData, programs: Programs, scale: int, sales: Sales) -> Arrays:
    """The data folder of a server with pgbench's tables of this scale, and with these sales."""
    return kept.arrays(
        lambda: _fill(programs, scale, sales),
        what="a data folder of PostgreSQL",
        version=programs.version,
        scale=str(scale),
        statements=";".join((*sales.fill(), *_FILLED)),
        settings=str(sorted(_FILLING.items())),
    )


def _fill(programs: Programs, scale: int, sales: Sales) -> Mapping[str, NDArray[np.generic]]:
    server = Server(programs)
    try:
        server.initdb()
        server.start(_FILLING)
        server.bench("-i", "-q", "-s", str(scale))
        server.ask(*sales.fill(), *_FILLED)
        server.shut_down()
        return packed(server.data)
    finally:
        server.remove()


def packed(folder: Path) -> Mapping[str, NDArray[np.generic]]:
    """A folder as arrays: names of the folders and files in it, sizes, and all contents in a row."""
    inside = sorted(folder.rglob("*"))
    files = [path for path in inside if path.is_file() and path.name not in _LEFT_OUT]
    names = [str(path.relative_to(folder)) for path in files]
    return {
        "folders": np.array([str(path.relative_to(folder)) for path in inside if path.is_dir()], str),
        "names": np.array(names, str),
        "sizes": np.array([path.stat().st_size for path in files], np.int64),
        "contents": np.concatenate([np.fromfile(path, np.uint8) for path in files]),
    }


def unpack(arrays: Mapping[str, NDArray[np.generic]], folder: Path, account: str | None) -> None:
    """Make ``folder`` of what was packed, for this account. It is on the disk when this returns."""
    entry = pwd.getpwnam(account) if account else None
    owner = (entry.pw_uid, entry.pw_gid) if entry else (-1, -1)
    folders = [folder, *(folder / str(name) for name in arrays["folders"])]
    for each in folders:
        each.mkdir(mode=0o700)
        os.chown(each, *owner)
    ends = np.cumsum(arrays["sizes"])
    begins = ends - arrays["sizes"]
    descriptors = []
    try:
        for name, begin, end in zip(arrays["names"], begins, ends, strict=True):
            descriptor = os.open(folder / str(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            descriptors.append(descriptor)
            os.fchown(descriptor, *owner)
            with os.fdopen(descriptor, "wb", closefd=False) as file:
                file.write(arrays["contents"][begin:end].data)
        for descriptor in descriptors:
            os.fsync(descriptor)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    for each in folders:
        opened = os.open(each, os.O_RDONLY)
        os.fsync(opened)
        os.close(opened)
