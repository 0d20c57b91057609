"""How long it takes to start: the help of the command line and the import of the package.

    python -m benchmarks.startup --runs 20 --out benchmarks/results/startup.md

Whole processes, interleaved; `python -c pass` beside them, since that is what nobody can go below.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.publishing import machine, publish, software
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=at_least_one, default=20)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for run in range(options.runs + 1):
        for name, command in COMMANDS.items():
            elapsed = seconds(command)
            if run:  # the first round warms the disk cache
                taken[name].append(elapsed)
    lines = [
        "# Starting",
        "",
        f"`python -m benchmarks.startup --runs {options.runs}`, {software()}; "
        f"{machine()}, load average {load:.1f} before the run.",
        "",
        "| command | median s | min | max |",
        "|---|---|---|---|",
        *(f"| `{n}` | {statistics.median(t):.3f} | {min(t):.3f} | {max(t):.3f} |" for n, t in taken.items()),
        "",
    ]
    publish("\n".join(lines), options.out)


if __name__ == "__main__":
    run_as_command(main)
