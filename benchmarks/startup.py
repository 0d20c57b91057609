"""How long it takes to start: the help of the command line and the import of the package.

    python -m benchmarks.startup --runs 20 --out benchmarks/results/startup.md

Whole processes, interleaved; `python -c pass` beside them, since that is what nobody can go below.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.options import Options
from benchmarks.publishing import head, machine, page, publish, software
from benchmarks.running import at_least_one, run_as_command

COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import autotune": [sys.executable, "-c", "import autotune"],
    "autotune --help": [str(Path(sys.executable).with_name("autotune")), "--help"],
    "autotune search --help": [str(Path(sys.executable).with_name("autotune")), "search", "--help"],
}


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    parser = Options(__file__, __doc__)
    parser.add_argument("--runs", type=at_least_one, default=20)
    options = parser.read()
    load = os.getloadavg()[0]
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for run in range(options.runs + 1):
        for name, command in COMMANDS.items():
            elapsed = seconds(command)
            if run:  # the first round warms the disk cache
                taken[name].append(elapsed)
    about = f"{software()}; {machine()}, load average {load:.1f} before the run."
    lines = head("command | median s | min | max")
    lines += (
        f"| `{n}` | {statistics.median(t):.3f} | {min(t):.3f} | {max(t):.3f} |" for n, t in taken.items()
    )
    publish(page("Starting", options.command, about, lines), options.out)


if __name__ == "__main__":
    run_as_command(main)
