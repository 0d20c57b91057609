"""How fast a training is fed: samples a second of PyTorch's ``DataLoader``, told what a search found.

    python -m benchmarks.input_pipeline --time 90 --out benchmarks/results/input_pipeline.md

Each row is a search of ``input-pipeline``, and its winner as the interleaved re-measurement has it. Of *more
than memory holds* the decoded pictures are past the bound of the space; *a slower training* has so many
filters that its own work is most of an epoch. A study that ``--store`` holds already is not searched again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from autotune.provenance.device import device_facts
from autotune.session.result import Result
from autotune.space.configuration import Value
from autotune.space.reading.reader import read_spec
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

SPACE = Path(__file__).parents[1] / "searchspaces" / "input-pipeline.yaml"
WORKLOADS: Mapping[str, Mapping[str, Value]] = {
    "as in the space": {},
    "more than memory holds": {"samples": 6144},
    "a slower training": {"filters": 256},
}


def _line(name: str, result: Result) -> str:
    rate = result.metrics["rate"]
    return row(
        result,
        name,
        interval(rate, ",.0f"),
        ratio(result.speedup),
        over(result, "workers"),
        f"{result.metrics['kept'].value / 2**20:.0f}",
    )


def _about() -> tuple[str, ...]:
    spec = read_spec(SPACE, device=device_facts())
    most = next(metric.at_most for metric in spec.metrics if metric.name == "kept") or 0.0
    return (
        f"{software('torch', 'numpy')}; {machine()}, of which {spec.measure.cores} are used; strategy auto,"
        " seed 0.",
        say_workloads(SPACE, WORKLOADS),
        "Speed-ups of the rate with 95 % intervals, from the interleaved re-measurement, over a loader that"
        " is told nothing, and over a worker for each core. *Kept*: MiB of memory that samples are kept in,"
        f" of which {most / 2**20:.0f} may be used.",
    )


if __name__ == "__main__":
    columns = "workload | samples/s | over the default | a worker for each core | kept"
    searched = Searched(
        "Feeding a training", _about, columns, partial(workload_rows, SPACE, WORKLOADS, _line)
    )
    run_as_command(lambda: searched_rows(__file__, __doc__, 90, searched))
