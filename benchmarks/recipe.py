"""What ``autotune.recipe`` costs: asked again, looked at again, and the first time in a process.

    OMP_NUM_THREADS=1 python -m benchmarks.recipe --out benchmarks/results/recipe.md

Asked again: batches of calls, the questions interleaved, so that what else runs on the machine falls on all
alike. The mean over all batches counts the second looks at the files as well (one in every 10 ms). The first
time: whole processes beside ``import autotune``, with a file of recipes alone and with a store of studies.
"""

from __future__ import annotations

import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import autotune
from autotune.hook import recipe as module
from autotune.hook.recipes.case import Case
from autotune.hook.recipes.file import write_known
from autotune.hook.recipes.recipe import Known, Metric, Recipe, Speedup
from autotune.hook.recipes.stored import import_known
from autotune.hook.recipes.this_device import this_device
from autotune.store.store import Store
from benchmarks.options import Options
from benchmarks.publishing import head, machine, page, publish, software
from benchmarks.running import at_least_one, at_least_two, run_as_command

CALLS = 200
"""In a batch: long enough for the clock, short enough that many batches are left alone by the scheduler."""

LOOKS = 300
"""Calls that look at the files again."""

FACTS = {
    "m": 960,
    "n": 960,
    "k": 960,
    "dtype": "float32",
    "layout": "row",
    "batch": 8,
    "heads": 16,
    "causal": True,
}


def recipes(count: int, device: str) -> Known:
    """``count`` recipes of one name, each for a workload of its own, and one for each size of question."""
    knobs = {f"knob_{n}": n for n in range(12)}

    def recipe(name: str, workload: dict[str, object]) -> Recipe:
        metric, speedup = Metric("time", 0.0041, 0.004, 0.0042, "s"), Speedup(3.1, 3.0, 3.2)
        return Recipe(name, device, Case(workload), knobs, metric, speedup, defended=True, trials=200)

    own = [recipe("gemm-c", {**dict(list(FACTS.items())[:4]), "m": 960 + n}) for n in range(count)]
    sizes = [recipe(f"facts-{n}", dict(list(FACTS.items())[:n])) for n in (0, 1, 3, 8)]
    return Known((*own, *sizes))


def questions(file: Path, store: Path) -> dict[str, Callable[[], object]]:
    """What is asked again and again."""
    where = {"recipes": file, "store": store}
    three, four, eight = (dict(list(FACTS.items())[:n]) for n in (3, 4, 8))
    ask = autotune.recipe
    os.environ["AUTOTUNE_RECIPES"], os.environ["AUTOTUNE_STORE"] = str(file), str(store)
    answers: dict[tuple[object, ...], object] = {(960, 960, 960): ask("facts-3", three)}
    return {
        "no workload": lambda: ask("facts-0"),
        "1 fact": lambda: ask("facts-1", {"m": 960}),
        "3 facts": lambda: ask("facts-3", workload={"m": 960, "n": 960, "k": 960}),
        "3 facts, the dictionary at hand": lambda: ask("facts-3", three),
        "4 facts, one of them a text": lambda: ask("gemm-c", four),
        "8 facts, a flag among them": lambda: ask("facts-8", eight),
        "3 facts, file and store named": lambda: ask("facts-3", three, **where),
        "a dictionary of one's own, for comparison": lambda: answers[three["m"], three["n"], three["k"]],
    }


def seconds_a_call(ask: Callable[[], object]) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        ask()
    return (time.perf_counter() - start) / CALLS


def asked_again(file: Path, store: Path, batches: int) -> list[str]:
    """A table: seconds a call, by question."""
    asked = questions(file, store)
    taken: dict[str, list[float]] = {name: [] for name in asked}
    order, shuffled = list(asked), random.Random(0)
    for batch in range(batches + 1):
        shuffled.shuffle(order)
        for name in order:
            elapsed = seconds_a_call(asked[name])
            if batch:  # the first one looks it up
                taken[name].append(elapsed)
    lines = head("asked again | median us | best us | 95 % below | mean")
    for name, times in taken.items():
        figures = (
            statistics.median(times),
            min(times),
            statistics.quantiles(times, n=20)[-1],
            statistics.mean(times),
        )
        lines.append(f"| {name} | " + " | ".join(f"{1e6 * x:.2f}" for x in figures) + " |")
    return lines


def second_look(file: Path, store: Path) -> float:
    """Microseconds of a call that looks at the files again and finds them as they were."""
    before, module.EVERY_SECONDS = module.EVERY_SECONDS, -1.0
    module.forget()
    try:
        autotune.recipe("facts-3", {"m": 960, "n": 960, "k": 960}, recipes=file, store=store)
        taken = []
        for _ in range(LOOKS):
            start = time.perf_counter()
            autotune.recipe("facts-3", {"m": 960, "n": 960, "k": 960}, recipes=file, store=store)
            taken.append(time.perf_counter() - start)
    finally:
        module.EVERY_SECONDS = before
    return 1e6 * statistics.median(taken)


ASK = "import autotune; autotune.recipe('facts-3', {W}, "
PROGRAMS = {
    "`python -c pass`": "pass",
    "`import autotune`": "import autotune",
    "the recipe of this workload, from a file": f"{ASK}recipes={{F}})",
    "the recipe of this workload, from a store": f"{ASK}store={{S}})",
}


def first_time(file: Path, store: Path, folder: Path, runs: int) -> list[str]:
    """A table: seconds of a whole process."""
    words = {"W": "{'m': 960, 'n': 960, 'k': 960}", "F": repr(str(file)), "S": repr(str(store))}
    environment = {n: v for n, v in os.environ.items() if not n.startswith("AUTOTUNE_")}
    taken: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for run in range(runs + 1):
        for name, program in PROGRAMS.items():
            for word, text in words.items():
                program = program.replace(f"{{{word}}}", text)
            start = _seconds_of_children()
            subprocess.run([sys.executable, "-c", program], check=True, env=environment, cwd=folder)
            if run:  # the first round warms the disk cache
                taken[name].append(_seconds_of_children() - start)
    lines = head("a whole process | median CPU s | min | max")
    for name, t in taken.items():
        lines.append(f"| {name} | {statistics.median(t):.3f} | {min(t):.3f} | {max(t):.3f} |")
    return lines


def _seconds_of_children() -> float:
    """On a processor, so that what else runs on the machine counts for less."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = Options(__file__, __doc__)
    parser.add_argument(
        "--recipes", type=at_least_one, default=100, help="how many the file and the store have"
    )
    parser.add_argument("--batches", type=at_least_two, default=500)
    parser.add_argument("--runs", type=at_least_one, default=10, help="of whole processes")
    options = parser.read()
    here = this_device()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file, store = folder / "tuned.json", folder / "store.db"
        known = recipes(options.recipes, str(here))
        write_known(file, known)
        with Store.open(store) as opened:
            import_known(opened, known)
        load = os.getloadavg()[0]
        again = asked_again(file, store, options.batches)
        look = second_look(file, store)
        first = first_time(file, store, folder, options.runs)
    about = (
        f"{software()}; {machine()}, load {load:.1f} when it began."
        f" {options.recipes} recipes in the file and in the store. Batches of"
        f" {CALLS} calls, the questions in a new random order each round; the order is seeded."
        " Median and best are of batches that were left alone; the mean counts second looks, and what else"
        " ran on the machine."
    )
    looked = f"A call that finds the files as they were, looking at them: {look:.0f} us (median of {LOOKS})."
    publish(page("What a recipe costs", options.command, about, again, looked, first), options.out)


if __name__ == "__main__":
    run_as_command(main)
