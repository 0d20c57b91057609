"""Whether a kernel's time depends on where its tensors lie, or on the process that runs it.

    python -m benchmarks.gpu_placement --out results/h100/placement.md

Products of a skinny shape, which are bound by memory, are read as in a finale: in several processes, and in
each of them some times with tensors that stay where they are and some times with tensors that are allocated
anew. Searches on an H100 had found such products to be of two speeds, a tenth apart: the same to 0.3 % within
a process, and another in the next. If ``moved`` differs by as much within a process as processes do, it is
where tensors lie. Takes about a minute. Ends with 2 where there is no GPU.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from autotune.measure.gpu.prospects import REQUIRED, prospects
from autotune.measure.gpu.timing import Apparatus
from autotune.measure.kernels.device_objective import DeviceObjective
from autotune.measure.loading.load import load_objective
from autotune.measure.objective import Context
from autotune.measure.phases.runner import Runner
from autotune.space.configuration import Configuration, Value
from autotune.space.reading.reader import read_spec
from autotune.status import Status
from benchmarks.gpu_search import SPACES, device_line, facts, seconds_text

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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, help="where the table is written as well")
    parser.add_argument("--one", action="store_true", help="the readings of one process, as JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(read_in_turn()))
        return 0
    missing = [one for one in prospects() if one.name in REQUIRED and not one.available]
    for one in missing:
        print(f"this needs a GPU; missing here: {one.name}: {one.detail}; {one.remedy}", file=sys.stderr)
    if missing:
        return 2
    command = [sys.executable, "-m", "benchmarks.gpu_placement", "--one"]
    found = [readings for _ in range(PROCESSES) if (readings := readings_of(command))]
    if not found:
        print("no process has read anything", file=sys.stderr)
        return 1
    text = "\n".join(["`python -m benchmarks.gpu_placement`", "", device_line(), "", *table(found), ""])
    print(text)
    if options.out:
        options.out.write_text(text)
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
    spec = read_spec(SPACES / "triton-gemm.yaml", device=facts(), workload=SKINNY)
    readings: Readings = {}
    with tempfile.TemporaryDirectory(prefix="autotune-placement-") as folder:
        context = Context(spec.workload, facts(), Path(folder), 0, None, spec.space.ruled)
        objective = load_objective(spec.objective, context, spec.metrics)
        assert isinstance(objective, DeviceObjective)
        runner, apparatus = Runner(objective, spec.metrics, spec.measure), objective.apparatus
        runner.stand_by(final=True)
        for product, knobs in PRODUCTS.items():
            configuration = spec.space.configuration({**spec.space.default(), **knobs})
            readings[product] = read_product(runner, apparatus, product, configuration)
    return readings


def read_product(
    runner: Runner, apparatus: Apparatus, product: str, configuration: Configuration
) -> dict[str, list[float]]:
    """The readings of one product in both ways; what could not be read is said, and missing."""
    made, prepared = runner.prepare(configuration)
    entered = runner.enter(configuration, lambda: prepared, 0) if made.status is Status.OK else made
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
    lines = [
        "| product | tensors | median in each process | processes differ by | within one readings do by |",
        "|---|---|---|---|---|",
    ]
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
