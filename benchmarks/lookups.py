"""Lookups in sorted keys: nanoseconds a lookup against the bytes of an index, for keys of several kinds.

    python -m benchmarks.lookups --time 60 --out benchmarks/results/lookups.md

Each row is a search of ``index-c`` in which the index may take so much of what the keys take, and its winner
as the interleaved re-measurement has it. A study that ``--store`` holds already is not searched again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from autotune.provenance.device import device_facts
from autotune.session.result import Result
from autotune.space.configuration import FrozenMap
from autotune.space.reading.reader import read_spec
from autotune.space.spec import StudySpec
from benchmarks.publishing import machine, software
from benchmarks.running import run_as_command
from benchmarks.searched_rows import Searched, interval, over, ratio, row, search, searched_rows

SPACE = Path(__file__).parents[1] / "searchspaces" / "index-c.yaml"
DISTRIBUTIONS = ("uniform", "lognormal", "clustered")
SHARES = (1 / 4, 1 / 64, 1 / 1024)
"""Of the bytes of the keys, that an index may take."""
KEY_BYTES = 8


def bounded(spec: StudySpec, distribution: str, share: float) -> StudySpec:
    """The space with other keys and another bound."""
    workload = FrozenMap({**spec.workload, "distribution": distribution})
    most = share * KEY_BYTES * int(str(spec.workload["keys"]))
    metrics = tuple(replace(m, at_most=most) if m.name == "bytes" else m for m in spec.metrics)
    return replace(spec, workload=workload, metrics=metrics)


def rows(seconds: float, store: str) -> Iterator[str]:
    """One search after the other, as lines of the table."""
    spec = read_spec(SPACE, device=device_facts())
    for distribution in DISTRIBUTIONS:
        for share in SHARES:
            name = f"{distribution}, 1/{1 / share:.0f}"
            result = search(name, bounded(spec, distribution, share), seconds, store)
            yield _line(distribution, share, result)


def _line(distribution: str, share: float, result: Result) -> str:
    lookups, time = int(str(result.study.workload["lookups"])), result.metrics["time"]
    return row(
        result,
        distribution,
        f"1/{1 / share:.0f}",
        interval(time, ".1f", 1e9 / lookups),
        f"{result.metrics['bytes'].value / 1024:.0f}",
        ratio(result.speedup, 1),
        over(result, "plain", 1),
        over(result, "numpy", 1),
    )


def _about() -> tuple[str, ...]:
    workload = read_spec(SPACE, device=device_facts()).workload
    return (
        f"{software('numpy')}; {machine()}, of which one measures; {workload['keys']:,} keys of {KEY_BYTES}"
        f" bytes, {workload['lookups']:,} lookups a call; strategy auto, seed 0.",
        "*Bound*: what an index may take of what the keys take. Speed-ups with 95 % intervals, from the"
        " interleaved re-measurement, over the default of the space (the keys halved without a branch, a"
        " query at a time), over the keys halved as a C programmer writes it, and over `numpy.searchsorted`.",
    )


if __name__ == "__main__":
    columns = "keys | bound | ns a lookup | KiB | over the default | plain C | numpy"
    searched = Searched("Lookups in sorted keys", _about, columns, rows)
    run_as_command(lambda: searched_rows(__file__, __doc__, 60, searched))
