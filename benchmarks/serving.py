"""A model behind a socket: the rate that is sustained within a limit of latency, for several loads.

    python -m benchmarks.serving --time 120 --out benchmarks/results/serving.md

Each row is a search of ``serving`` for another workload, and its winner as the interleaved
re-measurement has it. A study that ``--store`` holds already is not searched again.
"""

from __future__ import annotations

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

SPACE = Path(__file__).parents[1] / "searchspaces" / "serving.yaml"
WORKLOADS = {
    "as in the space": {},
    "mostly popular": {"repeated": 0.9},
}


def _line(name: str, result: Result) -> str:
    rate = result.metrics["rate"]
    return row(
        result,
        name,
        interval(rate, ",.0f"),
        ratio(result.speedup),
        over(result, "batches-of-8"),
        over(result, "batches-of-32"),
        f"{result.metrics['p99'].value * 1e3:.0f}",
    )


def _about() -> tuple[str, ...]:
    return (
        f"{software('numpy')}; {machine()}, which the server and who asks it share; strategy auto, seed 0.",
        say_workloads(SPACE, WORKLOADS),
        "The highest rate at which 99 of 100 requests are answered within the limit. Ratios with 95 %"
        " intervals, from the interleaved re-measurement: over a server that answers one request after the"
        " other, and over batches of up to 8 and 32 that wait for up to 2 and 5 ms. *p99*, in ms, is that of"
        " the last try that held.",
    )


if __name__ == "__main__":
    columns = "load | requests/s | over the default | batches of 8 | batches of 32 | p99"
    rows = partial(workload_rows, SPACE, WORKLOADS, _line)
    searched = Searched("A model behind a socket", _about, columns, rows)
    run_as_command(lambda: searched_rows(__file__, __doc__, 120, searched))
