"""PostgreSQL's settings under pgbench's load: what tuning them brings, for several mixes of transactions.

    python -m benchmarks.postgres --time 100 --out benchmarks/results/postgres.md

Each row is a search of ``postgres-store`` for another workload, and its winner as the interleaved
re-measurement has it. A study that ``--store`` holds already is not searched again.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from autotune.provenance.postgres import NoServerError, server_programs
from autotune.session.result import Result
from benchmarks.publishing import machine, software
from benchmarks.running import run_as_command
from benchmarks.searched_rows import (
    Searched,
    interval,
    over,
    ratio,
    row,
    say_workloads,
    searched_rows,
    workload_rows,
)

SPACE = Path(__file__).parents[1] / "searchspaces" / "postgres-store.yaml"
WORKLOADS = {
    "as in the space": {},
    "updates": {"reads": 0, "reports": 0, "analyses": 0},
    "analyses": {"reads": 60, "reports": 10, "analyses": 8, "transactions": 200},
}


def _line(name: str, result: Result) -> str:
    return row(
        result,
        name,
        interval(result.metrics["rate"], ",.0f"),
        ratio(result.speedup),
        over(result, "pgtune"),
        f"{result.metrics['p95'].value * 1e3:.1f}",
        f"{result.metrics['wal'].value / 1e3:.1f}",
    )


def _version() -> str:
    try:
        return server_programs().version
    except NoServerError:
        return "missing"


def _about() -> tuple[str, ...]:
    return (
        f"{software()}, PostgreSQL {_version()}; {machine()}, which server and load share; strategy auto,"
        " seed 0. All of it is durable (`fsync`, `synchronous_commit` and `full_page_writes` are on), and"
        " lies in the page cache of the system.",
        say_workloads(SPACE, WORKLOADS),
        "Speed-ups of the rate with 95 % intervals, from the interleaved re-measurement: over PostgreSQL's"
        " defaults, and over what PGTune advises for this machine. *p95*: of a transaction, in ms. *wal*: kB"
        " of log for a transaction.",
    )


if __name__ == "__main__":
    columns = "workload | transactions/s | over the default | PGTune | p95 | wal"
    rows = partial(workload_rows, SPACE, WORKLOADS, _line)
    searched = Searched("PostgreSQL's settings under pgbench's load", _about, columns, rows)
    run_as_command(lambda: searched_rows(__file__, __doc__, 100, searched))
