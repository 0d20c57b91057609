"""Whether a kernel's time depends on where its tensors lie, or on the process that runs it.

    python -m benchmarks.gpu_placement --out results/h100/placement.md

Products of a skinny shape, which are bound by memory, are read as in a finale: in several processes, and in
each of them some times with tensors that stay where they are and some times with tensors that are allocated
anew. Searches on an H100 had found such products to be of two speeds, a tenth apart: the same to 0.3 % within
a process, and another in the next. If ``moved`` differs by as much within a process as processes do, it is
where tensors lie. Takes about a minute. Ends with 2 where there is no GPU.
"""

from __future__ import annotations

import itertools
import json
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from autotune.measure.gpu.prospects import prospects
from autotune.measure.gpu.timing import Apparatus
from autotune.measure.phases.runner import Runner
from autotune.space.configuration import Configuration, Value
from autotune.status import Status
from benchmarks.gpu_products import is_missing, products
from benchmarks.gpu_search import device_line, facts, seconds_text
from benchmarks.options import Options
from benchmarks.publishing import head, page, publish

ROOT = Path(__file__).parents[1]

SKINNY: Mapping[str, Value] = {"m": 32, "n": 8192, "k": 8192}

PRODUCTS: Mapping[str, Mapping[str, Value]] = {
    "the default": {},
    "128 x 32 x 64": {"block_m": 128, "block_n": 32, "block_k": 64, "warps": 4, "stages": 4},
    "64 x 64 x 64": {"block_m": 64, "block_n": 64, "block_k": 64, "warps": 8, "stages": 4},
}

PROCESSES, READINGS = 4, 10

MOST_SECONDS = 120.0
"""Of a process: it takes some fifteen, most of which is loading PyTorch and compiling."""

Readings = dict[str, dict[str, list[float]]]
"""Seconds, by product and by ``stayed`` or ``moved``. What could not be read is missing."""


def main() -> int:
    parser = Options(__file__, __doc__)
    parser.aside("--one", action="store_true", help="the readings of one process, as JSON")
    options = parser.read()
    if options.one:
        print(json.dumps(read_in_turn()))
        return 0
    if is_missing(prospects()):
        return 2
    command = [sys.executable, "-m", "benchmarks.gpu_placement", "--one"]
    found = [readings for _ in range(PROCESSES) if (readings := readings_of(command))]
    if not found:
        print("no process has read anything", file=sys.stderr)
        return 1
    title = "Whether a time depends on where tensors lie"
    publish(page(title, options.command, device_line(), table(found)), options.out)
    return 0


def readings_of(command: Sequence[str], seconds: float = MOST_SECONDS) -> Readings:
    """What a process has read; nothing where it failed or did not end, which is said."""
    try:
        done = subprocess.run(
            command, check=False, stdout=subprocess.PIPE, text=True, timeout=seconds, cwd=ROOT
        )  # its errors are shown as they come
    except subprocess.TimeoutExpired:
        print(f"a process was ended, since it was not done after {seconds:.0f} s", file=sys.stderr)
        return {}
    try:
        readings: Readings = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        print(f"a process ended with {done.returncode} and without readings", file=sys.stderr)
        return {}
    return readings


def read_in_turn() -> Readings:
    """Each product some times where its tensors are, then as often with tensors that are moved."""
    with products(facts(), final=True, workload=SKINNY) as here:
        read = partial(read_product, here.runner, here.objective.apparatus)
        made = {product: here.prepare(product, knobs) for product, knobs in PRODUCTS.items()}
        return {product: read(product, *one) if one else {} for product, one in made.items()}


def read_product(
    runner: Runner, apparatus: Apparatus, product: str, configuration: Configuration, prepared: Any
) -> dict[str, list[float]]:
    """The readings of one product in both ways; what could not be read is said, and missing."""
    entered = runner.enter(configuration, lambda: prepared, 0)
    if entered.status is not Status.OK:  # whatever entered before it would be read in its place
        print(f"{product} is left out: {entered.status}: {entered.message}", file=sys.stderr)
        return {}
    found = {}
    move = apparatus.relocate
    for way, relocate in (("stayed", lambda gap_bytes: None), ("moved", move)):
        apparatus.relocate = relocate  # type: ignore[method-assign]
        outcomes = [runner.read(seed) for seed in range(READINGS)]
        failed = [outcome for outcome in outcomes if "time" not in outcome.metrics]
        if failed:
            how = f"{failed[0].status}: {failed[0].message}"
            print(f"{product}, {way}: {len(failed)} of {READINGS} readings: {how}", file=sys.stderr)
        if taken := [outcome.metrics["time"].value for outcome in outcomes if "time" in outcome.metrics]:
            found[way] = taken
    return found


def table(found: Sequence[Readings]) -> list[str]:
    """A row for each product and way: the medians of the processes, and how far readings lie apart within."""
    lines = head(
        "product | tensors | median in each process | processes differ by | within one readings do by"
    )
    for product, way in itertools.product(PRODUCTS, ("stayed", "moved")):
        times = [one[product][way] for one in found if way in one.get(product, {})]
        if not times:
            lines.append(f"| {product} | {way} | could not be read | - | - |")
            continue
        medians = [statistics.median(own) for own in times]
        within = max(max(own) / min(own) for own in times)
        lines.append(
            f"| {product} | {way} | {', '.join(seconds_text(m) for m in medians)}"
            f" | {max(medians) / min(medians) - 1:.1%} | {within - 1:.1%} |"
        )
    return lines


if __name__ == "__main__":
    sys.exit(main())
