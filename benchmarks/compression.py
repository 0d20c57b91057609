"""A perceptron with part of its weights left out: microseconds a picture and bytes, where accuracy may drop.

    python -m benchmarks.compression --time 100 --out benchmarks/results/compression.md

Each row is a search of ``model-compression`` under a bound of the drop on the validation part, and its winner
as the interleaved re-measurement has it. A study that ``--store`` holds already is not searched again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from autotune.provenance.device import device_facts
from autotune.session.result import Result
from autotune.space.reading.reader import read_spec
from autotune.space.spec import StudySpec
from benchmarks.publishing import machine, software
from benchmarks.running import run_as_command
from benchmarks.searched_rows import Searched, interval, over, ratio, row, search, searched_rows

SPACE = Path(__file__).parents[1] / "searchspaces" / "model-compression.yaml"
DROPS = (0.01, 0.03)
"""Of the pictures of the validation part."""


def bounded(spec: StudySpec, drop: float) -> StudySpec:
    """The space with another bound of the drop."""
    metrics = tuple(replace(m, at_most=drop) if m.name == "drop" else m for m in spec.metrics)
    return replace(spec, metrics=metrics)


def rows(seconds: float, store: str) -> Iterator[str]:
    """One search after the other, as lines of the table."""
    spec = read_spec(SPACE, device=device_facts())
    for drop in DROPS:
        yield _line(drop, search(f"a drop of {drop:g}", bounded(spec, drop), seconds, store))


def _line(drop: float, result: Result) -> str:
    time = result.metrics["time"]
    tested = result.metrics.get("test_drop")
    return row(
        result,
        f"{100 * drop:g} %",
        interval(time, ".1f", 1e6),
        ratio(result.speedup),
        over(result, "int8"),
        f"{result.metrics['bytes'].value / 1024:,.0f}",
        f"{100 * result.metrics['drop'].value:.1f} %",
        "-" if tested is None else f"{100 * tested.value:.1f} %",
    )


def _about() -> tuple[str, ...]:
    workload = read_spec(SPACE, device=device_facts()).workload
    return (
        f"{software('torch', 'numpy')}; {machine()}, of which one measures; two hidden layers of"
        f" {workload['width']:,}, scikit-learn's digits, a picture at a time; strategy auto, seed 0.",
        "*Bound*: by how much of the validation part it may be worse than the dense perceptron. Speed-ups"
        " with 95 % intervals, from the interleaved re-measurement, over the default of the space (dense,"
        " float32) and over dense int8. *Test drop* is of a part that the search never sees.",
    )


if __name__ == "__main__":
    columns = "bound | us a picture | over the default | dense int8 | KiB | drop | test drop"
    searched = Searched("A perceptron with part of its weights left out", _about, columns, rows)
    run_as_command(lambda: searched_rows(__file__, __doc__, 100, searched))
