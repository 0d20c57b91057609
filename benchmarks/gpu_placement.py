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
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from autotune.measure.gpu.prospects import REQUIRED, prospects
from autotune.measure.kernels.device_objective import DeviceObjective
from autotune.measure.loading.load import load_objective
from autotune.measure.objective import Context
from autotune.measure.phases.runner import Runner
from autotune.space.configuration import Value
from autotune.space.reading.reader import read_spec
from benchmarks.gpu_search import SPACES, facts, seconds_text

SKINNY: Mapping[str, Value] = {"m": 32, "n": 8192, "k": 8192}

PRODUCTS: Mapping[str, Mapping[str, Value]] = {
    "the default": {},
    "128 x 32 x 64": {"block_m": 128, "block_n": 32, "block_k": 64, "warps": 4, "stages": 4},
    "64 x 64 x 64": {"block_m": 64, "block_n": 64, "block_k": 64, "warps": 8, "stages": 4},
}

PROCESSES, READINGS = 4, 10

Readings = dict[str, dict[str, list[float]]]
"""Seconds, by product and by ``stayed`` or ``moved``."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, help="where the table is written as well")
    parser.add_argument("--one", action="store_true", help="the readings of one process, as JSON")
    options = parser.parse_args()
    missing = [one for one in prospects() if one.name in REQUIRED and not one.available]
    for one in missing:
        print(f"this needs a GPU; missing here: {one.name}: {one.detail}; {one.remedy}", file=sys.stderr)
    if missing:
        return 2
    if options.one:
        print(json.dumps(read_in_turn()))
        return 0
    command = [sys.executable, "-m", "benchmarks.gpu_placement", "--one"]
    found = [
        json.loads(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
        )
        for _ in range(PROCESSES)
    ]
    text = "\n".join(["`python -m benchmarks.gpu_placement`", "", *table(found), ""])
    print(text)
    if options.out:
        options.out.write_text(text)
    return 0


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
        move = apparatus.relocate
        for product, knobs in PRODUCTS.items():
            configuration = spec.space.configuration({**spec.space.default(), **knobs})
            _, prepared = runner.prepare(configuration)
            runner.enter(configuration, lambda prepared=prepared: prepared, 0)  # type: ignore[misc]
            for way, relocate in (("stayed", lambda gap_bytes: None), ("moved", move)):
                apparatus.relocate = relocate  # type: ignore[method-assign]
                taken = [runner.read(seed).metrics["time"].value for seed in range(READINGS)]
                readings.setdefault(product, {})[way] = taken
    return readings


def table(found: Sequence[Readings]) -> list[str]:
    """A row for each product and way: the medians of the processes, and how far readings lie apart within."""
    lines = [
        "| product | tensors | median in each process | processes differ by | within one readings do by |",
        "|---|---|---|---|---|",
    ]
    for product in found[0]:
        for way in found[0][product]:
            times = np.array([one[product][way] for one in found])
            medians = np.median(times, axis=1)
            lines.append(
                f"| {product} | {way} | {', '.join(seconds_text(float(m)) for m in medians)}"
                f" | {medians.max() / medians.min() - 1:.1%}"
                f" | {(times.max(axis=1) / times.min(axis=1) - 1).max():.1%} |"
            )
    return lines


if __name__ == "__main__":
    sys.exit(main())
