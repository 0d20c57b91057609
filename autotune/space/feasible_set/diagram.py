"""Counted decision diagrams: sets of assignments that are counted, sampled and indexed without being listed.

A multi-valued decision diagram (MDD; Srinivasan, Kam, Malik and Brayton, ICCAD 1990) has a layer of
states for each variable and an edge for each value that is allowed in a state. Every path from the
first state to the last is one assignment. With the number of paths below every state, the size of
the set is a look-up, and the n-th assignment a walk from the first state to the last.

A diagram that would be too wide is *relaxed* (Andersen, Hadzic, Hooker and Tiedemann, CP 2007:
'A constraint store based on multivalued decision diagrams'): states are merged although they
differ, so that it holds a superset. Edges that are certain to satisfy the rules they close are
marked, and the number of paths along certain edges alone is a lower bound of the size of the set.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.space.feasible_set.columns import SAFE_INT, Array

Rows = NDArray[np.int64]
"""One row per assignment: the class of each variable."""


@dataclass(frozen=True, eq=False)
class Layer:
    """The edges out of the states of one layer, sorted by state and then by value.

    State ``s`` owns edges ``first[s] .. first[s + 1] - 1``; ``value`` is the class that the edge gives
    the layer's variable, ``child`` the state of the next layer that it leads to. ``certain``: whether
    the rules that it closes are surely satisfied; ``None``: all of them.
    """

    variable: int
    first: NDArray[np.int64]
    value: Array
    child: NDArray[np.int32]
    certain: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class Diagram:
    """A counted decision diagram. ``weights[v]`` says how many assignments each class of ``v`` stands for.

    Indices run over the paths (times weights) in order of the layers' variables.
    """

    layers: tuple[Layer, ...]
    weights: tuple[Sequence[int], ...]
    counts: tuple[Array, ...] = field(init=False)
    """For each layer (and the end) the number of assignments below each of its states."""
    _scales: tuple[Array | None, ...] = field(init=False)
    """The weights of each variable, or ``None`` where all are 1."""
    certain: int = field(init=False)
    """How many assignments are paths along certain edges only: at least so many are in the set."""

    def __post_init__(self) -> None:
        most = math.prod(sum(weight) for weight in self.weights)
        wide = np.dtype(np.int64) if most < SAFE_INT else np.dtype(object)
        scales = tuple(
            None if all(one == 1 for one in weight) else np.array(weight, dtype=wide)
            for weight in self.weights
        )
        object.__setattr__(self, "_scales", scales)
        layers, counts = _trimmed(self.layers, scales, wide)
        object.__setattr__(self, "layers", layers)
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "certain", self._count_certain())

    @property
    def size(self) -> int:
        """How many assignments the diagram holds; if it is relaxed, the set has at most so many."""
        return int(self.counts[0][0]) if len(self.counts[0]) else 0

    def assignments(self, indices: Array) -> tuple[Rows, Array]:
        """The assignments at these indices; and, for each variable, which member of its class it is.

        Both have shape (indices, variables). The second is zero except in classes that have a weight.
        """
        wide = self.counts[0].dtype
        rest = indices.astype(wide)
        rows = np.empty((len(rest), len(self.weights)), dtype=np.int64)
        members = np.zeros((len(rest), len(self.weights)), dtype=wide if len(rest) else np.int64)
        states = np.zeros(len(rest), dtype=np.int64)
        for depth, (layer, before) in enumerate(zip(self.layers, self._before, strict=True)):
            wanted = before[layer.first[states]] + rest
            edge = np.searchsorted(before, wanted, side="right") - 1
            rest = (wanted - before[edge]).astype(wide)
            rows[:, layer.variable] = layer.value[edge]
            states = layer.child[edge].astype(np.int64)
            if self._scales[layer.variable] is not None:
                below = self.counts[depth + 1][states]
                members[:, layer.variable], rest = rest // below, rest % below
        return rows, members

    def indices(self, rows: Rows, members: Array) -> Array:
        """The index of each assignment, or -1 where the diagram does not hold it."""
        wide = self.counts[0].dtype
        found = np.zeros(len(rows), dtype=wide)
        there = np.full(len(rows), self.size > 0)
        states = np.zeros(len(rows), dtype=np.int64)
        for depth, (layer, before) in enumerate(zip(self.layers, self._before, strict=True)):
            if not there.any():
                break
            names, span, value = self._names[depth], self._spans[depth], rows[:, layer.variable]
            wanted = states * span + value
            edge = np.minimum(np.searchsorted(names, wanted), len(names) - 1)
            there &= (names[edge] == wanted) & (value >= 0) & (value < span)
            there &= (before[edge + 1] > before[edge]).astype(bool)
            found = found + (before[edge] - before[layer.first[states]]).astype(wide)
            states = np.where(there, layer.child[edge], 0).astype(np.int64)
            found = found + members[:, layer.variable].astype(wide) * self.counts[depth + 1][states]
        return np.where(there, found, -1)

    @property
    def listable(self) -> bool:
        """Whether every class of every variable stands for one value, so that paths are assignments."""
        return all(scale is None for scale in self._scales)

    def all_assignments(self) -> Rows:
        """All assignments in index order, of a diagram that is :attr:`listable`."""
        states = np.zeros(min(self.size, 1), dtype=np.int64)
        parents: list[NDArray[np.int64]] = []
        values: list[Array] = []
        for layer in self.layers:
            lengths = layer.first[states + 1] - layer.first[states]
            parent = np.repeat(np.arange(len(states)), lengths)
            before = np.cumsum(lengths) - lengths
            edge = layer.first[states][parent] + np.arange(len(parent)) - before[parent]
            parents.append(parent)
            values.append(layer.value[edge])
            states = layer.child[edge].astype(np.int64)
        rows = np.empty((len(states), len(self.layers)), dtype=np.int64)
        path = np.arange(len(states))
        for layer, parent, value in zip(self.layers[::-1], parents[::-1], values[::-1], strict=True):
            rows[:, layer.variable] = value[path]
            path = parent[path]
        return rows

    # --- inside ---------------------------------------------------------------------------------

    @cached_property
    def _before(self) -> tuple[Array, ...]:
        """For each layer, how many assignments go along the edges before each edge, over all its states.

        Shape (edges + 1,). It grows along the edges, so that the edge of an index can be found by bisection:
        a state may have a million of them.
        """
        made = []
        for layer, below in zip(self.layers, self.counts[1:], strict=True):
            paths = _weighted(below[layer.child], layer.value, self._scales[layer.variable])
            small = paths.dtype != object or sum(paths.tolist()) < SAFE_INT
            made.append(np.cumsum(np.concatenate(([0], paths)).astype(np.int64 if small else object)))
        return tuple(made)

    @cached_property
    def _names(self) -> tuple[NDArray[np.int64], ...]:
        """For each layer, the state and the value of each edge as one number, to find it by bisection."""
        return tuple(
            np.repeat(np.arange(len(layer.first) - 1), np.diff(layer.first)) * span
            + layer.value.astype(np.int64)
            for layer, span in zip(self.layers, self._spans, strict=True)
        )

    @cached_property
    def _spans(self) -> tuple[int, ...]:
        """For each layer, more than the largest value of an edge."""
        return tuple(int(layer.value.max(initial=0)) + 1 for layer in self.layers)

    def _count_certain(self) -> int:
        if all(layer.certain is None for layer in self.layers):
            return self.size
        below = self.counts[-1]
        for layer in self.layers[::-1]:
            paths = _weighted(below[layer.child], layer.value, self._scales[layer.variable])
            if layer.certain is not None:
                paths = np.where(layer.certain, paths, 0)
            below = np.add.reduceat(paths, layer.first[:-1]) if len(paths) else paths
        return int(below[0]) if len(below) else 0


def _weighted(paths: Array, value: Array, scale: Array | None) -> Array:
    """``paths`` below each edge, times the weight of its class."""
    return paths if scale is None else np.asarray(paths * scale[value])


def _trimmed(
    layers: Sequence[Layer], scales: Sequence[Array | None], wide: np.dtype[Any]
) -> tuple[tuple[Layer, ...], tuple[Array, ...]]:
    """The layers without states that lead nowhere, and the number of assignments below each state."""
    below: Array = np.array([1], dtype=wide)
    kept: list[Layer] = []
    counts = [below]
    number = np.array([0, -1], dtype=np.int32)
    """The new number of each state of the layer below; -1: it leads nowhere, as does state -1."""
    for layer in reversed(layers):
        alive = number[layer.child]
        edge = np.flatnonzero(alive >= 0)
        states = np.repeat(np.arange(len(layer.first) - 1), np.diff(layer.first))[edge]
        starts = np.flatnonzero(np.diff(states, prepend=-1))
        number = np.full(len(layer.first), -1, dtype=np.int32)
        number[states[starts]] = np.arange(len(starts), dtype=np.int32)
        trimmed = Layer(
            layer.variable,
            np.append(starts, len(edge)).astype(np.int64),
            layer.value[edge],
            alive[edge].astype(np.int32),
            None if layer.certain is None else layer.certain[edge],
        )
        paths = _weighted(below[trimmed.child], trimmed.value, scales[layer.variable])
        below = np.add.reduceat(paths, starts) if len(starts) else np.empty(0, dtype=wide)
        kept.append(trimmed)
        counts.append(below)
    return tuple(kept[::-1]), tuple(counts[::-1])
