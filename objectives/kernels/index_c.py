"""``index-c``: where keys are in a sorted array, or would be, in C, compiled by gcc for every configuration.

An index is built of the keys once, which is not timed; ``bytes`` is what it takes beside them. Half of the
queries are keys, half are none. The oracle is the exact place, from NumPy. Baselines: halving as a C
programmer writes it, and ``numpy.searchsorted``. No floor is stated: a lookup waits for memory, and neither
bytes nor operations count how long.

Workload: ``keys``, ``lookups`` (any positive integers) and ``distribution`` of the keys (``uniform``,
``lognormal`` or ``clustered``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ctypes import CDLL, c_int, c_long, c_void_p
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from autotune.measure.kernels.compiled_c import (
    SINGLE_THREAD,
    CompiledC,
    Library,
    c_function,
    compile_c,
)
from autotune.measure.kernels.guarded import GuardedArray
from autotune.measure.objective import Baseline, Context, Infeasible
from autotune.space.configuration import Configuration

Arrays = dict[str, np.ndarray]
LookUp = Callable[[np.ndarray, np.ndarray], None]
"""Writes the places of queries, its first argument, into the second."""

SCHEMES = {"binary": 0, "tree": 1, "learned": 2}
RANGE = 2.0**62
"""Keys are below it, so that a gap of one between any two still fits into 64 bits."""
SPREAD = 2.0
"""Of the logarithm of keys whose distribution is lognormal."""
CLUSTERS = 64
"""So many stretches of equal shares of clustered keys; their widths differ by factors of thousands."""


@dataclass(frozen=True)
class Searcher:
    """What looks keys up, and how much memory its index of so many keys takes."""

    set_up: Callable[[np.ndarray], LookUp]
    bytes: Callable[[int], int]


class Index(CompiledC):
    """How many keys are smaller than each query. Metrics: ``time`` (s), ``bytes``, ``error`` (0 or wrong)."""

    sources: ClassVar[tuple[str, ...]] = ("index_c.c", "plain.c")
    workload_facts = ("keys", "lookups", "distribution")
    source = Path(__file__).with_suffix(".c")
    macros: ClassVar[Mapping[str, str]] = {
        "group": "GROUP",
        "prefetch": "PREFETCH",
        "width": "WIDTH",
        "vector": "VECTOR",
        "leaves": "LEAVES",
        "logs": "LOGS",
    }

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.keys, self.lookups = context.size("keys"), context.size("lookups")
        self.distribution = str(context.workload.get("distribution"))
        if self.distribution not in DISTRIBUTIONS:
            known = ", ".join(DISTRIBUTIONS)
            raise Infeasible(f"the distribution must be one of {known}, not {self.distribution}")

    def flags(self, configuration: Configuration) -> tuple[str, ...]:
        return (*super().flags(configuration), f"-DSCHEME={SCHEMES[str(configuration['scheme'])]}")

    def make_inputs(self, rng: np.random.Generator) -> Arrays:
        """Keys without a repeat, sorted, and queries in random order, some of them beyond all keys."""
        keys = _sorted_keys(self.keys, DISTRIBUTIONS[self.distribution], rng)
        queries = keys[rng.integers(0, self.keys, self.lookups)]
        absent = rng.random(self.lookups) < 0.5
        queries[absent] += rng.integers(1, 1 << 40, int(absent.sum()), dtype=np.uint64)
        beyond = rng.integers(0, self.lookups, 2)
        queries[beyond] = (0, np.iinfo(np.uint64).max)
        return {"keys": keys, "queries": queries}

    def outputs(self) -> Mapping[str, tuple[tuple[int, ...], Any]]:
        return {"places": ((self.lookups,), np.int32)}

    def reference(self, inputs: Mapping[str, np.ndarray]) -> Arrays:
        return {"places": np.searchsorted(inputs["keys"], inputs["queries"])}

    def vary(self, rng: np.random.Generator) -> Mapping[str, Any]:
        sizes = {"keys": int(rng.integers(1, 3000)), "lookups": int(rng.integers(1, 300))}
        return {**sizes, "distribution": str(rng.choice(list(DISTRIBUTIONS)))}

    def load(self, prepared: Library) -> Searcher:
        size = CDLL(prepared.path).index_bytes
        size.restype, size.argtypes = c_long, (c_int,)
        build = c_function(prepared, "build_index", (c_void_p, c_void_p, c_int))
        look_up = c_function(prepared, "look_up", (c_void_p,) * 4 + (c_int,) * 2)

        def set_up(keys: np.ndarray) -> LookUp:
            index = GuardedArray((size(len(keys)),), np.uint8)
            index.poison()
            build(keys, index.array, len(keys))
            index.verify("the index, which is of as many bytes as index_bytes() says")
            return lambda queries, places: look_up(
                keys, index.array, queries, places, len(keys), len(queries)
            )

        return Searcher(set_up, size)

    def set_up(self, loaded: Searcher, inputs: Mapping[str, np.ndarray]) -> LookUp:
        """Build the index."""
        return loaded.set_up(inputs["keys"])

    def call(self, loaded: LookUp, inputs: Mapping[str, np.ndarray], outputs: Arrays) -> None:
        loaded(inputs["queries"], outputs["places"])

    def measure(self, loaded: Searcher, rng: np.random.Generator) -> Mapping[str, float]:
        return {**super().measure(loaded, rng), "bytes": float(loaded.bytes(self.keys))}

    def baselines(self) -> tuple[Baseline, ...]:
        return (
            Baseline("plain", "the keys halved as a C programmer writes it, gcc -O3", SINGLE_THREAD),
            Baseline("numpy", "numpy.searchsorted", SINGLE_THREAD),
        )

    def load_baseline(self, baseline: Baseline) -> Searcher:
        kernel = _numpy
        if baseline.name == "plain":
            library = compile_c(self.source.with_name("plain.c"), ("-O3",), self.context.cache)
            plain = c_function(library, "plain_look_up", (c_void_p,) * 3 + (c_int,) * 2)

            def kernel(keys: np.ndarray, queries: np.ndarray, places: np.ndarray) -> None:
                plain(keys, queries, places, len(keys), len(queries))

        return Searcher(lambda keys: partial(kernel, keys), lambda keys: 0)


def _numpy(keys: np.ndarray, queries: np.ndarray, places: np.ndarray) -> None:
    places[...] = np.searchsorted(keys, queries)


Quantiles = Callable[[np.ndarray], np.ndarray]
"""Of a distribution of keys: from a share of them to the key that so many are below."""


def _sorted_keys(count: int, quantiles: Quantiles, rng: np.random.Generator) -> np.ndarray:
    """So many draws in their order, without a sort: the gaps of sorted uniform draws are exponential."""
    sums = np.cumsum(rng.standard_exponential(count + 1))
    shares = sums[:-1] / sums[-1]
    return quantiles(shares).astype(np.uint64) + np.arange(count, dtype=np.uint64)


def _uniform(shares: np.ndarray) -> np.ndarray:
    return shares * RANGE


def _lognormal(shares: np.ndarray) -> np.ndarray:
    return np.minimum(np.exp(SPREAD * ndtri(shares) + 30), RANGE)


def _clustered(shares: np.ndarray) -> np.ndarray:
    """The stretches are always the same: they are the workload, and only the keys in them are drawn anew."""
    widths = np.exp(np.random.default_rng(CLUSTERS).uniform(0, 16, CLUSTERS))
    ends = np.concatenate([[0], np.cumsum(widths) / widths.sum()]) * RANGE
    return np.interp(shares, np.linspace(0, 1, CLUSTERS + 1), ends)


DISTRIBUTIONS: Mapping[str, Quantiles] = {
    "uniform": _uniform,
    "lognormal": _lognormal,
    "clustered": _clustered,
}
