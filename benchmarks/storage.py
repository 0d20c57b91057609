"""Keys and values in SQLite: what tuning its settings brings, for several mixes of reading and writing.

    python -m benchmarks.storage --time 120 --out benchmarks/results/storage.md

Each row is a search of ``sqlite-store`` for another workload, and its winner as the interleaved
re-measurement has it. A study that ``--store`` holds already is not searched again.
"""

from __future__ import annotations

import sqlite3
from functools import partial
from pathlib import Path

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

SPACE = Path(__file__).parents[1] / "searchspaces" / "sqlite-store.yaml"
WORKLOADS = {
    "as in the space": {},
    "mostly read": {"transactions": 5},
    "mostly written": {"reads": 300, "misses": 100, "scans": 10},
    "large values": {"rows": 6000, "value_bytes": 3000},
}


def _line(name: str, result: Result) -> str:
    rate = result.metrics["rate"]
    return row(
        result,
        name,
        interval(rate, ",.0f"),
        ratio(result.speedup),
        over(result, "recommended"),
        over(result, "recommended-clustered"),
        f"{result.metrics['write_p95'].value * 1e3:.1f}",
        f"{result.metrics['space'].value:.2f}",
        f"{result.metrics['written'].value:.0f}",
    )


def _about() -> tuple[str, ...]:
    return (
        f"{software()}, SQLite {sqlite3.sqlite_version}; {machine()}, of which one measures; strategy auto,"
        " seed 0. All of it is durable (`synchronous = EXTRA`), and lies in the page cache of the system.",
        say_workloads(SPACE, WORKLOADS),
        "Speed-ups of the rate with 95 % intervals, from the interleaved re-measurement: over SQLite's"
        " defaults, over what is recommended (a write-ahead log, a cache of 64 MiB, mapped), and over the"
        " same with rows in the order of their keys. *p95*: of a transaction, in ms. *Space*, *written*:"
        " bytes for a byte.",
    )


if __name__ == "__main__":
    columns = (
        "workload | operations/s | over the default | recommended | and clustered | p95 | space | written"
    )
    rows = partial(workload_rows, SPACE, WORKLOADS, _line)
    searched = Searched("Keys and values in SQLite", _about, columns, rows)
    run_as_command(lambda: searched_rows(__file__, __doc__, 120, searched))
