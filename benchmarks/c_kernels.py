"""The ready kernels in C, each searched as its space file says, held against what this machine can do.

    python -m benchmarks.c_kernels --time 60 --out benchmarks/results/c_kernels.md

A study that ``--store`` holds already is not searched again, only written down. The peaks are measured on
one core as each row is made: multiply-adds in registers, and ``c = a + 2 b`` over three float32 arrays of
2^20 elements. *Share* is the floor of the roofline (the least operations
over the one, or the least bytes over the other, whichever takes longer) over the measured time.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from autotune.measure.kernels.compiled_c import c_function, compile_c
from autotune.measure.kernels.roofline import Peaks, Work, roofline
from autotune.measure.loading.load import load_objective
from autotune.measure.objective import Context
from autotune.provenance.device import device_facts
from autotune.session.result import Result
from autotune.space.reading.reader import read_spec
from benchmarks.options import Options
from benchmarks.publishing import head, machine, page, publish, software
from benchmarks.running import run_as_command
from benchmarks.searched_rows import over, ratio, search

ROOT = Path(__file__).parents[1]
NAMES = ("gemm-c", "convolution-c", "stencil-c", "nms-c")
PLAIN_C = "plain"
"""What the kernels call the baseline of plain loops."""
ELEMENTS = 1 << 20
TRIES = 20
TABLE = head(
    "kernel | workload | ms | over the default | over plain C | over a library | GFLOP/s | peak GFLOP/s"
    " | peak GB/s | share of the roof | tries"
)


@dataclass(frozen=True)
class Row:
    """One search."""

    name: str
    result: Result
    work: Work
    peaks: Peaks

    @property
    def seconds(self) -> float:
        return self.result.metrics["time"].value

    def line(self) -> str:
        floor = roofline(self.work, self.peaks)
        assert floor is not None
        result, workload = self.result, self.result.study.workload
        problem = ", ".join(f"{name} {value}" for name, value in workload.items())
        cells = [
            self.name,
            problem,
            f"{1e3 * self.seconds:.3f}",
            ratio(result.speedup),
            over(result, PLAIN_C),
            self._over_the_strongest_library,
            f"{self.work.operations / self.seconds / 1e9:.0f}",
            f"{self.peaks.operations['float32'] / 1e9:.0f}",
            f"{self.peaks.bandwidth / 1e9:.0f}",
            f"{floor.share(self.seconds):.0%} ({floor.bound})",
            str(sum(result.statuses.values())),
        ]
        return f"| {' | '.join(cells)} |"

    @property
    def _over_the_strongest_library(self) -> str:
        libraries = [one for one in self.result.baselines if one.against != PLAIN_C]
        strongest = min(libraries, key=lambda one: one.estimate, default=None)
        return f"{ratio(strongest)} {strongest.against}" if strongest else "-"


def measured_peaks() -> Peaks:
    """Of the last core that this process may use, where searches measure too."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        with tempfile.TemporaryDirectory() as folder:
            library = compile_c(Path(__file__).with_name("peak.c"), ("-O3",), Path(folder))
            pointer, number = ctypes.c_void_p, ctypes.c_int
            operations, bandwidth = np.zeros(1), np.zeros(1)
            c_function(library, "peak_operations", (pointer, number))(operations, TRIES)
            c_function(library, "peak_bandwidth", (pointer, number, number))(bandwidth, ELEMENTS, 10 * TRIES)
    finally:
        os.sched_setaffinity(0, allowed)
    return Peaks(float(bandwidth[0]), {"float32": float(operations[0])})


def searched(seconds: float, store: str) -> Iterator[Row]:
    """One search after the other."""
    for name in NAMES:
        file = ROOT / "searchspaces" / f"{name}.yaml"
        peaks = measured_peaks()
        result = search(name, file, seconds, store)
        spec = read_spec(file, device=device_facts())
        context = Context(spec.workload, device_facts(), Path())
        work = load_objective(spec.objective, context).work()  # type: ignore[attr-defined]
        yield Row(name, result, work, peaks)


def main() -> None:
    parser = Options(__file__, __doc__)
    parser.add_argument("--time", type=float, default=60, help="seconds of each search")
    parser.aside("--store", default="", help="where the studies are kept; default: nowhere")
    options = parser.read()
    with tempfile.TemporaryDirectory() as folder:
        lines, winners = [], []
        for row in searched(options.time, options.store or f"{folder}/studies.db"):
            lines.append(row.line())
            best: Mapping[str, object] = row.result.best or {}
            winners.append(f"- {row.name}: " + ", ".join(f"{name} {value}" for name, value in best.items()))
            print(lines[-1], winners[-1], sep="\n", flush=True)
    rows = [*TABLE, *lines]
    publish(page("Kernels in C", options.command, _about(), rows, "The winners:", winners), options.out)


def _about() -> list[str]:
    return [
        f"{software('numpy')}; {machine()}, of which one measures; strategy auto, seed 0.",
        "",
        "Speed-ups with 95 % intervals, from the interleaved re-measurement: over the default of the space,",
        "over the plain loops in C at -O3, over the strongest library that is installed. The peaks of one",
        f"core and the load average of five minutes, {os.getloadavg()[1]:.1f}, are as they were when this",
        "was written: what is above 1 are other programs, which slow all that is timed and widen the",
        "intervals.",
    ]


if __name__ == "__main__":
    run_as_command(main)
