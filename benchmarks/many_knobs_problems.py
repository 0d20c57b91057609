"""What ``benchmarks.many_knobs`` searches: problems of twenty to a hundred knobs, each drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.space.knobs import Choice, Flag, FloatRange, IntegerRange, OrderedValues, Permutation
from autotune.space.knobs.knob import Knob
from autotune.space.space import Space

Values = Mapping[str, Any]
Random = np.random.Generator


@dataclass(frozen=True)
class Problem:
    """A space, and the logarithm of a configuration's time."""

    space: Space
    log_time: Callable[[Values], float]


def _some(rng: Random, count: int, share: float, scale: float) -> NDArray[np.float64]:
    """Effects of which only about a ``share`` is not 0."""
    return rng.normal(0.0, scale, count) * (rng.random(count) < share)


def flags(rng: Random) -> Problem:
    """A compiler's: a hundred flags of which a quarter matters, and eight pairs of those."""
    names = [f"flag{i}" for i in range(100)]
    effects = _some(rng, 100, 0.25, 0.05)
    ones = rng.choice(np.flatnonzero(effects), (8, 2))
    pairs = rng.normal(0.0, 0.05, 8)
    space = Space([Flag(name, default=bool(rng.integers(2))) for name in names])

    def log_time(values: Values) -> float:
        on = np.array([values[name] for name in names], dtype=float)
        return float(effects @ on + pairs @ on[ones].prod(axis=1))

    return Problem(space, log_time)


def server(rng: Random) -> Problem:
    """A server's: sizes on a scale of powers of two, choices and flags, of which less than half matters."""
    sizes, choices, switches = 12, 10, 18
    best, weight = rng.uniform(0.0, 12.0, sizes), np.abs(_some(rng, sizes, 0.5, 0.15))
    costs = rng.normal(0.0, 0.06, (choices, 3)) * (rng.random((choices, 1)) < 0.5)
    effects = _some(rng, switches, 0.4, 0.06)
    together, apart = rng.normal(0.0, 0.1, 2)
    space = Space(
        [
            *(IntegerRange(f"size{i}", 1, 4096, scale="log2", default=64) for i in range(sizes)),
            *(Choice(f"kind{i}", ("a", "b", "c")) for i in range(choices)),
            *(Flag(f"switch{i}") for i in range(switches)),
        ]
    )

    def log_time(values: Values) -> float:
        logs = np.log2([values[f"size{i}"] for i in range(sizes)])
        kinds = ["abc".index(values[f"kind{i}"]) for i in range(choices)]
        on = np.array([values[f"switch{i}"] for i in range(switches)], dtype=float)
        pairs = together * on[0] * (kinds[1] == 1) + apart * on[3] * (logs[2] > 8)
        off = np.minimum(np.abs(logs - best), 4.0) / 2.0
        return float(weight @ off + costs[range(choices), kinds].sum() + effects @ on + pairs)

    return Problem(space, log_time)


def rugged(rng: Random) -> Problem:
    """An NK landscape (Kauffman and Levin, 1987): fifty flags, the effect of each depends on two others."""
    count = 50
    others = np.array([rng.choice(count, 2, replace=False) for _ in range(count)])
    table = rng.normal(0.0, 0.06, (count, 8))
    names = [f"flag{i}" for i in range(count)]

    def log_time(values: Values) -> float:
        on = np.array([values[name] for name in names], dtype=int)
        return float(table[range(count), 4 * on + 2 * on[others[:, 0]] + on[others[:, 1]]].sum())

    return Problem(Space([Flag(name) for name in names]), log_time)


def levels(rng: Random) -> Problem:
    """Thirty lists of powers of two, each worse the farther from its best, some of them in pairs."""
    count = 30
    best, weight = rng.integers(0, 8, count), np.abs(_some(rng, count, 0.6, 0.02))
    ones, pairs = rng.choice(np.flatnonzero(weight), (8, 2)), rng.normal(0.0, 0.005, 8)
    names = [f"level{i}" for i in range(count)]
    space = Space([OrderedValues(name, tuple(2**k for k in range(8)), default=8) for name in names])

    def log_time(values: Values) -> float:
        off = np.log2([values[name] for name in names]) - best
        return float(weight @ np.abs(off) ** 1.5 + pairs @ off[ones].prod(axis=1))

    return Problem(space, log_time)


def continuous(rng: Random) -> Problem:
    """Twenty continuous knobs, of which six matter much; waves over a cone."""
    count = 20
    best = rng.uniform(0.15, 0.85, count)
    weight = rng.permutation(np.array([8.0, 6.0, 5.0, 4.0, 3.0, 2.0] + [0.05] * (count - 6)))
    names = [f"x{i}" for i in range(count)]

    def log_time(values: Values) -> float:
        off = np.array([values[name] for name in names]) - best
        waves = 1.0 - np.cos(6.0 * np.pi * off * np.minimum(weight, 1.0))
        return float(0.5 * np.sqrt(weight @ off**2) + 0.03 * waves.sum())

    return Problem(Space([FloatRange(name, 0.0, 1.0, default=0.5) for name in names]), log_time)


def conditional(rng: Random) -> Problem:
    """Three algorithms with twelve knobs each, of which a configuration has those of one, and six for all."""
    knobs: list[Knob] = [Choice("algorithm", ("p", "q", "r"))]
    base = dict(zip("pqr", rng.normal(0.0, 0.05, 3), strict=True))
    best, weight, effect = {}, {}, {}
    for letter in "pqr":
        when = f"algorithm == '{letter}'"
        for i in range(6):
            rate, flag = f"{letter}_rate{i}", f"{letter}_flag{i}"
            knobs += [FloatRange(rate, 1e-4, 1.0, scale="log", default=0.01, when=when)]
            knobs += [Flag(flag, when=when)]
            best[rate], weight[rate] = rng.uniform(-4.0, 0.0), abs(_some(rng, 1, 0.6, 0.1)[0])
            effect[flag] = rng.normal(0.0, 0.05)
    kinds = {f"kind{i}": dict(zip("abcd", rng.normal(0.0, 0.05, 4), strict=True)) for i in range(6)}
    knobs += [Choice(name, tuple("abcd")) for name in kinds]

    def log_time(values: Values) -> float:
        total = base[values["algorithm"]]
        total += sum(weight[n] * abs(np.log10(values[n]) - best[n]) for n in weight if n in values)
        total += sum(effect[n] * values[n] for n in effect if n in values)
        return float(total + sum(costs[values[n]] for n, costs in kinds.items()))

    return Problem(Space(knobs), log_time)


def passes(rng: Random) -> Problem:
    """The order of eight passes of a compiler, by which precedes which, and twenty-four flags."""
    items, count = tuple("abcdefgh"), 24
    before = rng.normal(0.0, 0.05, (8, 8)) * (rng.random((8, 8)) < 0.4)
    effects = _some(rng, count, 0.5, 0.05)
    space = Space([Permutation("order", items), *(Flag(f"flag{i}") for i in range(count))])

    def log_time(values: Values) -> float:
        places = np.array([items.index(item) for item in values["order"]])
        ordered = before[np.ix_(places, places)]
        on = np.array([values[f"flag{i}"] for i in range(count)], dtype=float)
        return float(np.triu(ordered, 1).sum() + effects @ on)

    return Problem(space, log_time)


PROBLEMS: Mapping[str, Callable[[Random], Problem]] = {
    "100 flags": flags,
    "40 of a server": server,
    "50 rugged flags": rugged,
    "30 levels": levels,
    "20 continuous": continuous,
    "19 of 43, conditional": conditional,
    "order and 24 flags": passes,
}
