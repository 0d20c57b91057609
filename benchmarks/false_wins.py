"""How often a knob without any effect wins, and how often one with a small effect is found.

    python -m benchmarks.false_wins --cases sets,numpy,c --seeds 20 --out benchmarks/results/false_wins.md

Ordinary Python (sets and dictionaries, NumPy), a C kernel and a program that runs anew for each reading are
searched over one knob of thirty values. As a *placebo* it does nothing: whatever wins over the default has
won by chance. *Five per cent* is the same, with a twentieth more work where the knob has its default. Each
search has 16 trials and ends with the finale of a session. ``in one process`` counts the wins that rounds
in one process of each contender would have told of; ``in fresh processes`` are those that are told of.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import autotune
from autotune.store.store import Store
from benchmarks.options import Options
from benchmarks.publishing import head, machine, page, publish, software
from benchmarks.running import at_least_one, known_names, run_as_command

SETS = """
import time
TABLE = {"alpha": 1, "beta": 2, "gamma": 3, "delta": 4, "epsilon": 5}
MISSING = ["zeta", "eta", "theta", "iota", "kappa"]
NAMES = set(TABLE)

def measure(x):
    began = time.perf_counter()
    for _ in range(2000 + MORE * (x == 1)):
        for name in MISSING:
            name in NAMES
            TABLE.get(name)
    return time.perf_counter() - began
"""

ARRAYS = """
import time
import numpy as np
A = np.random.default_rng(0).random((200, 200))

def measure(x):
    began = time.perf_counter()
    for _ in range(40 + MORE // 50 * (x == 1)):
        np.sort(A @ A, axis=1)
    return time.perf_counter() - began
"""

KERNEL = """
import ctypes, os, subprocess, time
from pathlib import Path
import numpy as np

SOURCE = '''
void axpy(double *y, const double *x, int n, int times) {
    for (int t = 0; t < times; t++)
        for (int i = 0; i < n; i++) y[i] = 0.5 * y[i] + x[i];
}
'''
own = Path(__file__).with_name(f"axpy{os.getpid()}")  # others build at the same time
own.with_suffix(".c").write_text(SOURCE)
subprocess.run(["gcc", "-O3", "-shared", "-fPIC", "-o", own, own.with_suffix(".c")], check=True)
axpy = ctypes.CDLL(str(own)).axpy
X, Y = np.ones(20_000), np.zeros(20_000)
POINTERS = [array.ctypes.data_as(ctypes.c_void_p) for array in (Y, X)]

def measure(x):
    began = time.perf_counter()
    axpy(*POINTERS, len(X), 200 + MORE // 10 * (x == 1))
    return time.perf_counter() - began
"""

PROGRAM = """
import sys
x = int(sys.argv[1])
total = 0
for number in range(400_000 + MORE * 200 * (x == 1)):
    total += number ^ x
"""


@dataclass(frozen=True)
class Case:
    """Something to be measured; ``MORE`` in its text is what it does besides with the default."""

    name: str
    """In the table."""
    text: str
    program: bool = False

    def write(self, folder: Path, more: int) -> Path:
        """The space file."""
        (folder / "work.py").write_text(self.text.replace("MORE", str(more)))
        program = "command: {run: [python3, work.py, '{x}'], metrics: wall}"
        objective = program if self.program else "objective: work.py:measure"
        lines = ["autotune: 1", "name: work", objective]
        lines += ["metrics: {time: {goal: minimize, unit: s}}"]
        lines += ["knobs: {x: {range: [1, 30], default: 1}}", "budget: {trials: 16}"]
        (folder / "space.yaml").write_text("\n".join([*lines, ""]))
        return folder / "space.yaml"


CASES = {
    "sets": Case("sets and dictionaries", SETS),
    "numpy": Case("NumPy", ARRAYS),
    "c": Case("C kernel", KERNEL),
    "program": Case("program", PROGRAM, program=True),
}
"""By their names for ``--cases``. A search of the program takes ten times as long as the others."""
EFFECTS = {"placebo": 0, "five per cent": 100}


@dataclass(frozen=True)
class Told:
    """What a search told of."""

    before: bool
    """Whether rounds in one process had found a win."""
    win: bool
    low: float
    """The lower end of the speed-up."""
    processes: int


def told(case: Case, more: int, seed: int) -> Told:
    with tempfile.TemporaryDirectory() as folder:
        file = case.write(Path(folder), more)
        result = autotune.search(file, seed=seed, store=Path(folder) / "s.db")
        with Store.open(Path(folder) / "s.db", readonly=True) as store:
            verdict = store.verdicts(result.study.id)[-1].document
    win = not result.is_default
    low = result.speedup.low if result.speedup is not None else 1.0
    return Told(win or "in_one_process" in verdict, win, low, result.processes)


def rows(cases: Sequence[Case], seeds: int) -> Iterator[str]:
    yield from head(
        "what | knob | searches | wins in one process | in fresh processes | their largest lower end"
    )
    for case in cases:
        for effect, more in EFFECTS.items():
            found = [told(case, more, seed) for seed in range(seeds)]
            yield _row(case, effect, found)


def _row(case: Case, effect: str, found: Sequence[Told]) -> str:
    wins = [one for one in found if one.win]
    largest = f"{max(one.low for one in wins):.3f}" if wins else ""
    before = "each reading is one" if case.program else f"{sum(one.before for one in found)}"
    return f"| {case.name} | {effect} | {len(found)} | {before} | {len(wins)} | {largest} |"


def main() -> None:
    parser = Options(__file__, __doc__)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--seeds", type=at_least_one, default=20)
    options = parser.read()
    cases = known_names(options.cases, "case", CASES)
    made = []
    for row in rows([CASES[name] for name in cases], options.seeds):
        print(row, flush=True)
        made.append(row)
    publish(page("False wins", options.command, f"{software('numpy')}; {machine()}.", made), options.out)


if __name__ == "__main__":
    run_as_command(main)
