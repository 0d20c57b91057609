"""Uniform draws from what is left of a space."""

from __future__ import annotations

from bisect import insort
from collections.abc import Container, Iterable, Iterator

import numpy as np

from autotune.space.configuration import Configuration
from autotune.space.space import Space

BATCH = 32
"""Draws per round: in a space that is mostly untried, one round nearly always holds something new."""
ROUNDS = 32
"""After so many rounds without anything new, a space that cannot be counted is taken to be exhausted."""


def untried(
    space: Space,
    rng: np.random.Generator,
    taken: Container[str],
    known: Iterable[Configuration] = (),
) -> Iterator[Configuration]:
    """Configurations drawn uniformly from the feasible ones whose hash is not in ``taken``, each once.

    It ends when there are none left. While most of the space is untried, a draw is repeated until it is
    new; after that the rest is counted and drawn from by index, so that even the last configuration
    is found at once. ``known`` are the configurations behind ``taken``, told and pending. Where the
    space has continuous knobs, or can only be bounded, a thousand draws without a new one end it.
    """
    if not space.feasible:
        return
    if not _countable(space):
        yield from _by_rounds(space, rng, taken)
        return
    given: dict[str, Configuration] = {}
    while (found := _by_rejection(space, rng, taken, given)) is not None:
        given[found.hash] = found
        yield found
    yield from _by_index(space, rng, taken, [*known, *given.values()])


def _by_rounds(space: Space, rng: np.random.Generator, taken: Container[str]) -> Iterator[Configuration]:
    """Whatever is new in round after round: draws from a continuous space hardly ever repeat themselves."""
    given: set[str] = set()
    in_vain = 0
    while in_vain < ROUNDS:
        in_vain += 1
        for configuration in space.draws(rng, BATCH):
            if configuration.hash not in taken and configuration.hash not in given:
                in_vain = 0
                given.add(configuration.hash)
                yield configuration


def _by_rejection(
    space: Space, rng: np.random.Generator, taken: Container[str], given: Container[str]
) -> Configuration | None:
    for configuration in space.draws(rng, BATCH):
        if configuration.hash not in taken and configuration.hash not in given:
            return configuration
    return None


def _by_index(
    space: Space, rng: np.random.Generator, taken: Container[str], known: Iterable[Configuration]
) -> Iterator[Configuration]:
    """Draw from the gaps between the indices of what is known."""
    feasible = space.feasible
    used = sorted({number for c in known if (number := feasible.number(c)) is not None})
    size = feasible.size or 0
    while len(used) < size:
        gap = int(rng.integers(size - len(used)))
        index = _nth_missing(used, gap)
        insort(used, index)
        configuration = space.configuration(feasible[index])
        if configuration.hash not in taken:
            yield configuration


def _nth_missing(used: list[int], n: int) -> int:
    """The ``n``-th natural number that is not in the sorted list ``used``."""
    low, high = 0, len(used)
    while low < high:
        middle = (low + high) // 2
        if used[middle] - middle <= n:
            low = middle + 1
        else:
            high = middle
    return n + low


def _countable(space: Space) -> bool:
    return not space.continuous and space.feasible.size is not None
