"""Writes recordings of made-up kernels on made-up devices, to search beside those of real ones.

    python -m benchmarks.made_up_kernels --out DIR --first 0 --kernels 24
    python -m benchmarks.search_efficiency --spaces DIR --strategies NAMES --seeds N --jobs J --out RUNS.jsonl

Six recorded spaces are few, and what was chosen by them may suit nothing else. These are many, and each is
different: which knobs there are and which values they have, how wide a warp is, how many registers and how
much shared memory a multiprocessor has, what of the time is traffic and what is arithmetic. They are no
measurements, and no figure of theirs is one of a device. What they share with real kernels is where it hurts:

* A launch fails where threads times registers are more than there are. Registers grow with the tile of a
  thread and with what is unrolled, so that no product of knobs says where failures begin, and the best is
  often next to them.
* How many blocks fit on a multiprocessor is a whole number, and so is the number of waves: steps, no slopes.
* Narrow blocks waste memory transactions, wide tiles waste the rim of the problem, registers spill.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.running import run_as_command

Floats = NDArray[np.float64]
Knobs = dict[str, list[int]]

BLOCK_X = (
    [8, 16, 32, 64, 128],
    [1, 2, 4, 8, *range(16, 257, 16)],
    [*range(32, 1025, 32)],
    [16, 32, 48, 64, 96, 112, 128, 160, 192, 256],
)
BLOCK_Y = ([1, 2, 4, 8, 16, 32], [*range(4, 65, 4)], [1, 2, 4, 8, 16], [1, 2, 3, 4, 6, 8, 12, 16])
TILES = ([1, 2, 4, 8], [1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 4])
UNROLLS = ([0, 1, 2, 4, 8, 16], [1, 2, 4, 8], [1, 2, 3, 4, 6, 8, 12])
OTHERS: dict[str, tuple[float, list[int]]] = {
    "vector": (0.6, [1, 2, 4, 8]),
    "shared": (0.8, [0, 1]),
    "padding": (0.5, [0, 1]),
    "stages": (0.5, [1, 2, 3, 4]),
    "read_only": (0.4, [0, 1]),
    "method": (0.4, [0, 1, 2, 3]),
    "min_blocks": (0.3, [0, 1, 2, 4]),
}
"""With what probability a kernel has each of these knobs, and its values."""
SIZES = (1_500, 90_000)
"""Kernels of fewer or more configurations are left out: recordings of real ones are of this size."""
THREADS = (32, 1024)
"""So many there may be in a block."""
REGISTERS = 65_536
"""Of a multiprocessor."""
MOST_REGISTERS = 255
"""Of a thread; what it needs beyond that spills."""


@dataclass(frozen=True)
class Kernel:
    """All configurations of one, and how long each takes."""

    knobs: Knobs
    columns: Mapping[str, NDArray[np.int64]]
    """The value of each knob, one entry a configuration."""
    milliseconds: Floats
    """NaN where it fails."""


def kernel(seed: int) -> Kernel | None:
    """The kernel of this seed; ``None`` where it would have too few configurations or too many."""
    rng = np.random.default_rng(seed)
    knobs = _knobs(rng)
    columns = _feasible(knobs, rng)
    count = len(columns["block_x"])
    if not SIZES[0] <= count <= SIZES[1]:
        return None
    return Kernel(knobs, columns, _milliseconds(columns, rng))


def _knobs(rng: np.random.Generator) -> Knobs:
    def one_of(lists: tuple[list[int], ...]) -> list[int]:
        return lists[rng.integers(len(lists))]

    knobs = {name: one_of(lists) for name, lists in (("block_x", BLOCK_X), ("block_y", BLOCK_Y))}
    knobs |= {"tile_x": one_of(TILES), "tile_y": one_of(TILES)}
    if rng.random() < 0.7:
        knobs["unroll"] = one_of(UNROLLS)
    return knobs | {name: values for name, (there, values) in OTHERS.items() if rng.random() < there}


def _feasible(knobs: Knobs, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
    """What keeps the rules that somebody would state."""
    table = np.meshgrid(*map(np.array, knobs.values()), indexing="ij")
    columns = dict(zip(knobs, (each.ravel() for each in table), strict=True))
    threads = columns["block_x"] * columns["block_y"]
    keeps = (threads >= THREADS[0]) & (threads <= THREADS[1])
    if rng.random() < 0.5:
        keeps &= threads % 32 == 0
    if "vector" in columns:
        keeps &= columns["vector"] <= columns["tile_x"]
    if "padding" in columns and "shared" in columns:
        keeps &= columns["padding"] <= columns["shared"]
    return {name: column[keeps] for name, column in columns.items()}


def _milliseconds(columns: Mapping[str, NDArray[np.int64]], rng: np.random.Generator) -> Floats:
    """The time of each configuration on a device that is drawn here; NaN where the launch fails."""

    def of(name: str, without: float) -> Floats:
        column = columns.get(name)
        return np.full(len(threads), without) if column is None else column.astype(float)

    threads = (columns["block_x"] * columns["block_y"]).astype(float)
    block_x, tile_x, tile_y = of("block_x", 1), of("tile_x", 1), of("tile_y", 1)
    unroll, vector, shared = np.maximum(of("unroll", 1), 0.7), of("vector", 1), of("shared", 0)
    padding, stages, least_blocks = of("padding", 0), of("stages", 1), of("min_blocks", 0)
    draw = rng.uniform
    width, height, work = block_x * tile_x, of("block_y", 1) * tile_y, tile_x * tile_y
    rim = int(rng.choice([0, 1, 2, 7]))
    warp = int(rng.choice([32, 32, 64]))
    warps = np.ceil(threads / warp)

    # What a block takes of a multiprocessor, and so how many fit on it.
    needed = (
        draw(14, 40) + draw(0.5, 6) * work + draw(0, 1.5) * unroll + 2 * vector + draw(0, 10) * (stages - 1)
    )
    allowed = np.where(least_blocks > 0, REGISTERS / (np.maximum(least_blocks, 1) * threads), MOST_REGISTERS)
    allowed = np.minimum(allowed, MOST_REGISTERS)
    held = np.minimum(np.ceil(needed / 8) * 8, allowed) * warps * warp
    element = float(rng.choice([1, 4, 4, 8]))
    staged = shared * element * (width + 2 * rim + padding) * (height + 2 * rim) * stages + 1
    memory, most_warps = (
        1024 * float(rng.choice([48, 64, 100, 164])),
        float(rng.choice([32, 48, 64])) * 32 / warp,
    )
    blocks = np.minimum(np.minimum(REGISTERS // held, most_warps // warps), np.minimum(memory // staged, 32))
    busy = np.maximum(blocks * warps, 0.5) / most_warps

    # What one element costs: traffic, arithmetic, and the latency that too few warps do not hide.
    twice = (width + 2 * rim) * (height + 2 * rim) / (width * height)
    narrow = 1 + draw(0.3, 3) * np.maximum(1 - block_x * vector / warp, 0) * (1 - draw(0, 0.7) * shared)
    narrow += draw(0, 0.5) * (block_x % warp != 0)
    reuse = width ** -draw(0.1, 0.6) * height ** -draw(0.1, 0.6)
    traffic = draw(0.3, 2) * twice * narrow * (reuse / np.median(reuse) + draw(0.1, 0.6))
    traffic *= (1 - draw(0, 0.4) * shared) * (1 - 0.1 * draw(-1, 2) * of("read_only", 0))
    traffic /= 1 + draw(0, 0.4) * np.log2(vector)
    conflicts = 1 + draw(0, 0.6) * shared * (1 - padding) * (width % 32 == 0)
    arithmetic = draw(0.3, 2) * twice ** draw(0, 1) * (1 + draw(0.1, 0.8) / unroll + draw(0.2, 1.5) / work)
    arithmetic *= conflicts * (1 + 0.03 * draw(0, 2) * np.abs(of("method", 0) - rng.integers(4)))
    latency = draw(0.02, 0.6) / (busy * work ** draw(0, 0.6) * stages ** draw(0, 0.7))
    time = np.maximum(traffic, arithmetic) + draw(0.05, 0.6) * np.minimum(traffic, arithmetic) + latency
    time *= 1 + np.maximum(needed - allowed, 0) / draw(15, 80)

    # Waves of blocks, of which the last is not full, and blocks past the edge of the problem.
    across, down = rng.choice([512, 1024, 2048, 4096], 2)
    grid = np.ceil(across / width) * np.ceil(down / height)
    slots = float(rng.choice([20, 46, 80, 108, 220])) * np.maximum(blocks, 1)
    time *= np.clip(np.ceil(grid / slots) * slots / grid, 1, 6) ** draw(0.2, 1)
    time *= np.ceil(across / width) * width / across * np.ceil(down / height) * height / down
    time *= np.exp(rng.normal(0, rng.choice([0.002, 0.01, 0.03]), len(time))) * draw(0.1, 20)
    return np.where(blocks >= 1, time, np.nan)


def recording(kernel: Kernel, name: str) -> dict[str, object]:
    """The kernel as a cache file of Kernel Tuner has it."""
    rows = np.column_stack(list(kernel.columns.values())).tolist()
    cache = {}
    for row, milliseconds in zip(rows, kernel.milliseconds.tolist(), strict=True):
        works = milliseconds == milliseconds
        entry = {"time": milliseconds, "times": [milliseconds]} if works else {"time": "RuntimeFailedConfig"}
        cache[",".join(map(str, row))] = dict(zip(kernel.knobs, row, strict=True)) | entry
    return {
        "device_name": "made up",
        "kernel_name": name,
        "tune_params_keys": list(kernel.knobs),
        "tune_params": kernel.knobs,
        "objective": "time",
        "cache": cache,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Write recordings of made-up kernels.")
    parser.add_argument("--out", type=Path, required=True, help="the folder")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first kernel")
    parser.add_argument("--kernels", type=int, default=24, help="so many seeds are tried")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for seed in range(options.first, options.first + options.kernels):
        made = kernel(seed)
        if made is None:
            continue
        name = f"kernel-{seed}"
        with gzip.open(options.out / f"{name}.json.gz", "wt") as file:
            json.dump(recording(made, name), file)
        times = np.sort(made.milliseconds)
        fails, median = np.isnan(times).mean(), np.nanmedian(times) / times[0]
        print(f"{name}: {len(times)} configurations of {', '.join(made.knobs)}")
        print(f"    {fails:.0%} fail; the median takes {median:.2f} times as long as the best")
    return 0


if __name__ == "__main__":
    run_as_command(main)
