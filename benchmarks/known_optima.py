"""Constrained spaces whose best configuration is known, by listing everything or by dynamic programming.

Each is made from a number, so that there are as many instances as one likes. The costs are synthetic;
what is real is the shape: branches with knobs of their own, an order of jobs, a placement under memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.space.configuration import FrozenMap
from autotune.space.knobs import Assignment, Choice, Flag, IntegerRange, OrderedValues, Permutation
from autotune.space.space import Space

Cost = Callable[[Mapping[str, Any]], float]


@dataclass(frozen=True)
class Instance:
    """A space, what each configuration costs, the least that any costs, and their number."""

    name: str
    space: Space
    cost: Cost
    optimum: float
    size: int


# --- an order of jobs: permutation flow-shop ---------------------------------------------------------

JOBS, MACHINES = 8, 5


@cache
def flow_shop(number: int) -> Instance:
    """Eight jobs pass five machines in the same order; the last to leave the last one is the cost.

    Processing times are uniform on 1 to 99 (Taillard, Benchmarks for basic scheduling problems, 1993).
    Some jobs wait for others: job 0 goes before job 1, and job 2 is not the first.
    """
    times = np.random.default_rng((1, number)).integers(1, 100, size=(JOBS, MACHINES))
    names = tuple(f"job{j}" for j in range(JOBS))
    space = Space([Permutation("order", names)], constraints=["order[0] != 'job2'", "order[7] != 'job0'"])
    everything = np.array(list(permutations(range(JOBS))))
    allowed = (everything[:, 0] != 2) & (everything[:, -1] != 0)
    optimum = float(makespans(times, everything[allowed]).min())
    place = {name: j for j, name in enumerate(names)}

    def cost(c: Mapping[str, Any]) -> float:
        return float(makespans(times, np.array([[place[name] for name in c["order"]]]))[0])

    return Instance(f"flow-shop {number}", space, cost, optimum, int(allowed.sum()))


def makespans(times: NDArray[np.int64], orders: NDArray[np.int64]) -> NDArray[np.int64]:
    """When the last job leaves the last machine, for each row of ``orders`` (n, jobs)."""
    ends = np.zeros((len(orders), times.shape[1]), dtype=np.int64)
    for position in range(orders.shape[1]):
        work = times[orders[:, position]]
        ends[:, 0] += work[:, 0]
        for machine in range(1, times.shape[1]):
            ends[:, machine] = np.maximum(ends[:, machine], ends[:, machine - 1]) + work[:, machine]
    return ends[:, -1]


# --- a placement: items on devices under memory caps --------------------------------------------------

ITEMS, DEVICES = 12, 3


@cache
def placement(number: int) -> Instance:
    """Twelve items in a chain on three devices.

    Each item has a cost on each device, and each neighbour on another device costs a transfer. Devices differ
    in speed and hold only so much: the fastest holds least. The optimum is found by listing 3^12.
    """
    rng = np.random.default_rng((2, number))
    speed = np.array([1.0, 1.6, 2.4])
    costs = rng.uniform(1.0, 10.0, size=(ITEMS, 1)) * speed * rng.uniform(0.7, 1.4, size=(ITEMS, DEVICES))
    transfers = rng.uniform(1.0, 8.0, size=ITEMS - 1)
    memory = rng.integers(1, 10, size=ITEMS)
    caps = np.ceil(memory.sum() * np.array([0.35, 0.45, 0.6])).astype(int)
    items = tuple(f"block{i:02d}" for i in range(ITEMS))
    devices = tuple(f"device{d}" for d in range(DEVICES))
    constraints = [
        " + ".join(f"{m} * (place['{item}'] == '{device}')" for m, item in zip(memory, items, strict=True))
        + f" <= {cap}"
        for device, cap in zip(devices, caps, strict=True)
    ]
    default = _first_fit(memory.tolist(), caps.tolist())
    start = FrozenMap({i: devices[d] for i, d in zip(items, default, strict=True)})
    knob = Assignment("place", items, devices, default=start)
    space = Space([knob], constraints=constraints)
    everything = np.array(list(product(range(DEVICES), repeat=ITEMS)))
    loads = np.stack([(everything == d) @ memory for d in range(DEVICES)], axis=1)
    allowed = (loads <= caps).all(axis=1)
    totals = placed(costs, transfers, everything[allowed])
    number_of = {device: d for d, device in enumerate(devices)}

    def cost(c: Mapping[str, Any]) -> float:
        row = np.array([[number_of[c["place"][item]] for item in items]])
        return float(placed(costs, transfers, row)[0])

    return Instance(f"placement {number}", space, cost, float(totals.min()), int(allowed.sum()))


def placed(
    costs: NDArray[np.float64], transfers: NDArray[np.float64], rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    """What each placement (n, items) costs: the work of all items, and the transfers between devices."""
    work = np.take_along_axis(costs[None], rows[:, :, None], axis=2)[:, :, 0].sum(axis=1)
    return np.asarray(work + (rows[:, 1:] != rows[:, :-1]) @ transfers)


def _first_fit(memory: Sequence[int], caps: Sequence[int]) -> list[int]:
    """Items to devices, the largest first, each to where most room is left: what a user might write."""
    left = list(caps)
    chosen = [0] * len(memory)
    for item in sorted(range(len(memory)), key=lambda i: -memory[i]):
        chosen[item] = max(range(len(left)), key=lambda d: left[d])
        left[chosen[item]] -= memory[item]
    return chosen


# --- branches with knobs of their own -----------------------------------------------------------------

ALGORITHMS = ("direct", "blocked", "iterative", "multigrid")


@cache
def branches(number: int) -> Instance:
    """Four algorithms, each with knobs that the others do not have, under limits that tie them.

    The branch that is best at the defaults is not the one that can be tuned furthest. The times
    multiply, as those of real kernels do; the optimum is found by listing all.
    """
    rng = np.random.default_rng((3, number))
    powers = (1, 2, 4, 8, 16, 32, 64)
    space = Space(
        [
            Choice("algorithm", ALGORITHMS),
            OrderedValues("threads", (1, 2, 4, 8, 16), default=4),
            OrderedValues("vector", (1, 2, 4, 8)),
            OrderedValues("unroll", (1, 2, 4, 8)),
            OrderedValues("tile", powers, when="algorithm == 'blocked'", default=8),
            OrderedValues("inner", powers, when="algorithm == 'blocked'", default=4),
            Flag("packed", when="algorithm == 'blocked'"),
            IntegerRange("sweeps", 1, 12, when="algorithm == 'iterative'", default=3),
            OrderedValues("damping", (0.5, 0.6, 0.7, 0.8, 0.9, 1.0), when="algorithm == 'iterative'"),
            Choice("smoother", ("jacobi", "gauss", "chebyshev"), when="algorithm == 'multigrid'"),
            IntegerRange("levels", 1, 8, when="algorithm == 'multigrid'", default=2),
            IntegerRange("cycles", 1, 6, when="algorithm == 'multigrid'"),
            Flag("fused", when="algorithm == 'multigrid' and smoother != 'gauss'"),
        ],
        constraints=[
            "tile * inner <= 512",
            "inner <= tile",
            "levels * cycles <= 24",
            "sweeps * threads <= 96",
            "vector * unroll <= 16",
        ],
    )
    cost = _branch_cost(space, rng)
    every = [cost(c) for c in space.feasible]
    return Instance(f"branches {number}", space, cost, min(every), len(every))


def _branch_cost(space: Space, rng: np.random.Generator) -> Cost:
    """A product: a factor a branch, and for each knob and pair of knobs a valley at a place of its own."""
    base = dict(zip(ALGORITHMS, rng.permutation([1.0, 1.2, 1.5, 1.9]).tolist(), strict=True))
    names = [knob.name for knob in space.knobs if knob.name != "algorithm"]
    best = {name: rng.uniform(0.0, 1.0) for name in names}
    depth = {name: rng.uniform(0.3, 1.2) for name in names}
    tilt = {(a, b): rng.uniform(-0.5, 0.5) for a in names for b in names if a < b}

    def cost(c: Mapping[str, Any]) -> float:
        where = {name: _position(space, name, c[name]) for name in names if name in c}
        log = sum(depth[name] * abs(at - best[name]) for name, at in where.items())
        log += sum(
            weight * (where[a] - best[a]) * (where[b] - best[b])
            for (a, b), weight in tilt.items()
            if a in where and b in where
        )
        return float(base[c["algorithm"]] * np.exp(log))

    return cost


def _position(space: Space, name: str, value: Any) -> float:
    knob = space.knob(name)
    return knob.split(value)[0] / max(len(knob.cells[0].values) - 1, 1)


FAMILIES: Mapping[str, Callable[[int], Instance]] = {
    "branches": branches,
    "flow-shop": flow_shop,
    "placement": placement,
}
