"""What pgbench is told to do, how fast it did it, and what it knows to be acknowledged."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from postgres_programs import ProgramFailed
from postgres_sales import DAYS, REGIONS, WINDOW, Sales
from postgres_server import Server

CYCLE = 100
"""Of so many transactions in a row each client does as many of a kind as its share says."""
ACCOUNTS = 100_000
"""For each unit of pgbench's scale; it has as many branches as units, and ten tellers for each."""
TELLERS = 10
_STRIDE, _APART = 37, 13
"""Coprime to the cycle: kinds alternate, and clients do not do the same at the same time."""
_MARK = 1_000_000_000
"""A transaction's mark is its client's number times this, and its own."""


@dataclass(frozen=True)
class Load:
    """Transactions of several clients: of each hundred so many read, report or analyse, the others update."""

    scale: int
    sales: Sales
    clients: int
    each: int
    """Transactions of a client."""
    reads: int
    reports: int
    analyses: int
    begin: int = 0
    """The number of the transaction before the first of each client."""

    @property
    def count(self) -> int:
        return self.clients * self.each

    @property
    def updates(self) -> int:
        """How many of them update."""
        numbers = self.begin + np.arange(1, self.each + 1)
        places = numbers[:, None] * _STRIDE + np.arange(self.clients) * _APART
        return int((places % CYCLE >= self.analyses + self.reports + self.reads).sum())

    def script(self) -> str:
        """The script of a client."""
        return "\n".join(
            (
                r"\set n :n + 1",
                rf"\set place (:n * {_STRIDE} + :client_id * {_APART}) % {CYCLE}",
                rf"\if :place < {self.analyses}",
                rf"\set day random(0, {DAYS - WINDOW})",
                *(f"{query};" for query in Sales.analysis),
                rf"\elif :place < {self.analyses + self.reports}",
                rf"\set region random(0, {REGIONS - 1})",
                f"{Sales.of_a_region};",
                rf"\elif :place < {self.analyses + self.reports + self.reads}",
                rf"\set aid random(1, {ACCOUNTS * self.scale})",
                rf"\set customer random(0, {self.sales.customers - 1})",
                "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;",
                f"{Sales.of_a_customer};",
                r"\else",
                rf"\set mark :client_id * {_MARK} + :n",
                rf"\set aid random(1, {ACCOUNTS * self.scale})",
                rf"\set tid random(1, {TELLERS * self.scale})",
                rf"\set bid random(1, {self.scale})",
                r"\set delta random(-5000, 5000)",
                "BEGIN;",
                "UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;",
                "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;",
                "UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;",
                "UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;",
                "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime, filler)"
                " VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP, :mark);",
                "END;",
                r"\endif",
            )
        )


@dataclass(frozen=True)
class Done:
    """What pgbench has done, as it says."""

    seconds: float
    """From the first transaction to the last answer; connecting took place before."""
    latencies: NDArray[np.float64]
    """Of each transaction, in seconds."""


def run(server: Server, load: Load, seed: int) -> Done:
    """Let pgbench do all of the load. Raises :class:`ProgramFailed` where a transaction failed."""
    with tempfile.TemporaryDirectory(dir=server.home) as folder:
        said = server.bench(*_told(Path(folder), load, seed))
        per_second = re.search(r"^tps = ([\d.]+)", said, re.MULTILINE)
        lines = list(_logged(Path(folder)))
        if per_second is None or len(lines) != load.count:
            raise ProgramFailed(f"pgbench: {len(lines)} of {load.count} transactions were logged")
        latencies = np.array([int(line[2]) for line in lines]) / 1e6
    return Done(load.count / float(per_second[1]), latencies)


def run_until_killed(server: Server, load: Load, seed: int, wanted: int) -> list[int]:
    """Kill the server once so many updates are there; how many transactions each client knows of.

    Where the load ends before, the server is killed all the same.
    """
    folder = Path(tempfile.mkdtemp(dir=server.home))
    try:
        with server.benching(*_told(folder, load, seed)):
            server.ask(_WAITING.format(wanted=wanted))
            server.kill()
        acknowledged = [0] * load.clients
        for line in _logged(folder):
            acknowledged[int(line[0])] += 1
        return acknowledged
    finally:
        shutil.rmtree(folder)


_WAITING = (
    "DO $$ BEGIN FOR turn IN 1..10000 LOOP"
    " EXIT WHEN (SELECT count(*) FROM pgbench_history) >= {wanted}; PERFORM pg_sleep(0.001);"
    " END LOOP; END $$"
)


def last_number(server: Server) -> int:
    """The largest number of a transaction so far, of all clients."""
    return server.number(f"SELECT coalesce(max(filler::bigint % {_MARK}), 0) FROM pgbench_history")


def numbers_after(server: Server, begin: int, clients: int) -> list[list[int]]:
    """The numbers of the later transactions that are there, in order, by client."""
    found: list[list[int]] = [[] for _ in range(clients)]
    own = "SELECT filler::bigint FROM pgbench_history"
    for (mark,) in server.ask(f"{own} WHERE filler::bigint % {_MARK} > {begin} ORDER BY 1"):
        client, number = divmod(int(mark), _MARK)
        found[client].append(number)
    return found


def _told(folder: Path, load: Load, seed: int) -> tuple[str, ...]:
    script = folder / "script.sql"
    script.write_text(load.script())
    return (
        *("-M", "prepared", "-c", str(load.clients), "-t", str(load.each), "-D", f"n={load.begin}"),
        *("-f", str(script), f"--random-seed={seed}", "-l", f"--log-prefix={folder / 'log'}"),
    )


def _logged(folder: Path) -> Iterable[list[str]]:
    """A line for each transaction that was acknowledged: client, number, microseconds ..."""
    for log in folder.glob("log*"):
        yield from (line.split() for line in log.read_text().splitlines())
