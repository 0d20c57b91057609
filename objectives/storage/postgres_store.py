"""``postgres-store``: PostgreSQL under a load of pgbench's, with a server of its own for each configuration.

A reading is a fixed number of transactions of several clients: reads (an account, and the sales of a
customer), reports (on a region, a 64th of the sales), analyses (a join, an aggregate and a sort of many
sales), and else updates as TPC-B has them. There are as many of each kind in all readings. What a server puts
off is paid within the reading: it ends with a checkpoint. The page cache of the system holds all of the data.

The server has a copy of a data folder that was filled once, settings on its command line, a Unix socket and
no network. As root it runs as another account. What was acknowledged survives a loss of power, and no
configuration can weaken that. The check looks at the settings, compares answers with what is true, asks the
kernel whether anything of an acknowledged transaction is only in memory, and kills all processes of the
server by SIGKILL in the midst of updates. After recovery each acknowledged transaction is there, at most one
more of each client, and the balances of accounts, tellers and branches agree with the history. A
configuration with which the server does not start is infeasible, in the server's words.

Workload: ``scale`` (pgbench's; 100,000 accounts each), ``sales`` (rows), ``clients``, ``transactions`` (of a
reading; of all clients), and of each hundred of them ``reads``, ``reports`` and ``analyses``.

Metrics: ``rate`` (transactions a second), ``p95`` (s, of a transaction), ``wal`` (bytes of log for a
transaction). Beside each reading stands ``sync``, what it took just then to bring a page to the disk, and
``checkpoint``, the seconds of the one at its end. Baseline: PGTune's advice. ``AUTOTUNE_POSTGRES`` names the
folder of the server's programs, where the newest that is found is not meant.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from files_of_kernel import IN_MEMORY, file_system, sync_seconds
from numpy.typing import NDArray
from postgres_check import (
    MOST_SEED,
    check_answers,
    check_killed,
    check_on_disk,
    check_settings,
    check_sums,
)
from postgres_filled import filled, unpack
from postgres_load import CYCLE, Load, run
from postgres_programs import find_programs, server_account
from postgres_sales import Sales
from postgres_server import DURABLE, Server, ServerRefused
from postgres_settings import pgtune, settings_of

from autotune.measure.clocks import perf_counter
from autotune.measure.objective import Baseline, Context, Infeasible, Objective
from autotune.measure.prepared_data import Arrays
from autotune.measure.readings import Sample

KINDS = ("reads", "reports", "analyses")


class Running:
    """A server with a configuration."""

    def __init__(self, server: Server, told: Mapping[str, str]) -> None:
        self.server, self.told = server, told


class PostgresStore(Objective):
    workload_facts = ("scale", "sales", "clients", "transactions", *KINDS)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.programs = find_programs()
        server_account()  # or there is none
        self.load_of_reading = _load(context)
        folder = Path(tempfile.gettempdir())
        self._file_system = file_system(folder)
        if self._file_system in IN_MEMORY:
            raise Infeasible(
                f"{folder} is on a {self._file_system}, where nothing reaches a disk; set TMPDIR to a"
                " folder on one (TMPDIR=/var/tmp)"
            )
        self._server: Server | None = None

    @cached_property
    def _filled(self) -> Arrays:
        load = self.load_of_reading
        return filled(self.prepared_data, self.programs, load.scale, load.sales)

    def stand_by(self) -> None:
        """Fill the folder, or find it filled."""
        self._filled  # noqa: B018

    def standing(self) -> frozenset[int]:
        """The server, which the next configuration ends; in a finale it is stopped while others are read."""
        return self._server.processes() if self._server and not self.final else frozenset()

    def tidy(self) -> None:
        """End the server."""
        if self._server is not None:
            self._server.remove()
            self._server = None

    def load(self, prepared: Mapping[str, Any]) -> Running:
        self.tidy()
        arrays = self._filled
        self._server = server = Server(self.programs)
        unpack(arrays, server.data, server.account)
        told = {**settings_of(prepared), **dict.fromkeys(DURABLE, "on")}
        try:
            server.start(told)
        except ServerRefused as error:
            raise Infeasible(str(error)) from None
        return Running(server, told)

    def measure(self, loaded: Running, rng: np.random.Generator) -> Sample:
        server, load = loaded.server, self.load_of_reading
        where, rows = "SELECT pg_current_wal_insert_lsn() - '0/0'", "SELECT count(*) FROM pgbench_history"
        [(log_before,), (rows_before,)] = server.ask(where, rows)
        done = run(server, load, int(rng.integers(MOST_SEED)))
        began = perf_counter()
        server.ask("CHECKPOINT")
        checkpoint = perf_counter() - began
        log = server.number(where) - int(log_before)
        check_sums(server, load.scale, int(rows_before) + load.updates, accounts=False)
        values = {
            "rate": load.count / (done.seconds + checkpoint),
            "p95": float(np.percentile(done.latencies, 95)),
            "wal": log / load.count,
        }
        context = {"sync": sync_seconds(server.home), "checkpoint": checkpoint}
        return Sample(values, context, facts=self._facts(done.latencies))

    def _facts(self, latencies: NDArray[np.float64]) -> dict[str, object]:
        return {
            "postgres": self.programs.version,
            "file_system": self._file_system,
            "p99": float(np.percentile(latencies, 99)),
        }

    def check(self, loaded: Running, rng: np.random.Generator) -> Mapping[str, float]:
        server, load = loaded.server, self.load_of_reading
        check_settings(server, loaded.told)
        check_answers(server, load.sales, rng)
        check_on_disk(server)
        check_killed(server, load, loaded.told, rng)
        return {}

    # -- baselines -----------------------------------------------------------------------------

    def baselines(self) -> tuple[Baseline, ...]:
        return (Baseline("pgtune", "what PGTune advises for this machine and a mixed load"),)

    def load_baseline(self, baseline: Baseline) -> Running:
        device = self.context.device
        return self.load(pgtune(int(device["memory_bytes"]), int(device["cores"])))


def _load(context: Context) -> Load:
    """The load of a reading, as the workload has it."""
    clients, transactions = context.size("clients"), context.size("transactions")
    if transactions % clients:
        raise Infeasible(f"transactions should be a multiple of clients ({clients}), and is {transactions}")
    kinds = [context.size(name, least=0) for name in KINDS]
    if sum(kinds) > CYCLE:
        raise Infeasible(f"{', '.join(KINDS)} are of {CYCLE} transactions, and {sum(kinds)} together")
    sales = Sales(context.size("sales"))
    return Load(context.size("scale"), sales, clients, transactions // clients, *kinds)
