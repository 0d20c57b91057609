"""How long a report of a long study takes, how much memory, and how large it is; and ``autotune show`` of it.

    python -m benchmarks.report_size --trials 100000 --out benchmarks/results/report_size.md

Each verb runs as a user runs it, in a process of its own, some times; the quickest counts.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.options import Options
from benchmarks.publishing import head, machine, page, publish, software
from benchmarks.running import at_least_one, run_as_command


@dataclass(frozen=True)
class Cost:
    """What a verb took: seconds of the wall clock and of the processor, the most memory, what it wrote."""

    wall: float
    processor: float
    megabytes: float
    written: int


def main() -> None:
    parser = Options(__file__, __doc__)
    parser.add_argument("--trials", type=at_least_one, default=100_000)
    parser.aside("--store", help="a store that benchmarks.big_study wrote  [default: a new one]")
    parser.add_argument("--repeats", type=at_least_one, default=3)
    options = parser.read()
    with tempfile.TemporaryDirectory() as folder:
        place = options.store or f"{folder}/big.db"
        if options.store is None:
            # In a process of its own: a child's most memory includes what its parent had when it was forked.
            making = [sys.executable, "-m", "benchmarks.big_study", "--trials", str(options.trials)]
            subprocess.run([*making, "--store", place], check=True, stdout=subprocess.DEVNULL)
        rows = []
        for name, words in _verbs(place).items():
            rows.append((name, _best(words, Path(folder), options.repeats)))
            print(name, rows[-1][1], file=sys.stderr)
    about = (
        f"A generated study of {options.trials:,} trials (seed 0), with failures, pruned trials, readings and"
        " replicates, in a SQLite store. Each verb in a process of its own, the best of"
        f" {options.repeats}. The limits are 20 s, 1 GB and 15 MB for the report, and 1 s for `show`."
    )
    on = f"{software()}; {machine()}. The load was {os.getloadavg()[0]:.1f} at the end, of which this is 1."
    publish(page("Reports of a long study", options.command, about, _table(rows), on), options.out)


def _verbs(place: str) -> dict[str, list[str]]:
    return {
        "report -o report.html": ["report", "-o", "report.html", "--store", place],
        "report --format md": ["report", "-o", "report.md", "--store", place],
        "show": ["show", "--store", place],
        "show --study big": ["show", "--study", "big", "--store", place],
        "importance": ["importance", "--store", place],
        "spend": ["spend", "--store", place],
    }


def _best(words: list[str], folder: Path, repeats: int) -> Cost:
    return min((_run(words, folder) for _ in range(repeats)), key=lambda cost: cost.wall)


def _run(words: list[str], folder: Path) -> Cost:
    began = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-m", "autotune", *words], cwd=folder, stdout=subprocess.PIPE)
    assert child.stdout is not None
    said = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - began
    if child.returncode != 0:
        raise SystemExit(f"autotune {' '.join(words)} ended with {child.returncode}")
    files = [folder / word for word in words if word.startswith("report.")]
    written = sum(file.stat().st_size for file in files) or len(said)
    return Cost(wall, usage.ru_utime + usage.ru_stime, _megabytes(usage), written)


def _megabytes(usage: resource.struct_rusage) -> float:
    return usage.ru_maxrss * 1024 / 1e6


def _table(rows: list[tuple[str, Cost]]) -> list[str]:
    lines = head("autotune ... | seconds | of a processor | memory, MB | written, kB")
    for name, cost in rows:
        numbers = f"{cost.wall:.2f} | {cost.processor:.2f} | {cost.megabytes:.0f} | {cost.written / 1000:.1f}"
        lines.append(f"| `{name}` | {numbers} |")
    return lines


if __name__ == "__main__":
    run_as_command(main)
