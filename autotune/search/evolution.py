"""Steady-state evolution over the feasible set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from autotune.search.assemble import assemble
from autotune.search.contract import Option, Proposal, Strategy
from autotune.search.loss import losses
from autotune.search.untried import untried
from autotune.space.configuration import Configuration

Parent = tuple[float, Configuration]
"""A loss and the configuration that had it."""

ATTEMPTS = 16
"""Children bred for one proposal before a random newcomer takes its place."""


class Evolution(Strategy):
    """Tournament, crossover and mutation, one child at a time, with every child feasible.

    The scheme is regularised evolution (Real et al., Regularized Evolution for Image Classifier
    Architecture Search, AAAI 2019): the ``population`` is a window over the latest trials, so that a
    lucky reading ages out, and the parent is the best of a ``sample`` drawn from it. The best tenth of
    all trials stays in the window beside them: with a hundred tries instead of twenty thousand, what was
    found cannot be given up.

    A child differs from its parent in one knob: a step to a neighbour (the next value, another choice, a
    swap in a permutation, a move in an assignment), or with probability ``jump`` any other value of it.
    With probability ``crossover`` it first takes some knobs from a second parent; where that breaks a
    constraint, the borrowed knobs go back one by one in random order until it holds, as it does at the
    latest when all are back. A failed trial never breeds; neither does one whose metric is missing.
    """

    name: ClassVar[str] = "evolution"
    defaults: ClassVar[Mapping[str, Option]] = {
        "population": 24,
        "sample": 8,
        "initial": 10,
        "crossover": 0.3,
        "jump": 0.3,
    }

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        window = self._window()
        newcomers = untried(self.space, rng, self.taken, self.known)
        for _ in range(n):
            child = self._child(window, rng) if len(window) >= int(self.options["initial"]) else None
            if child is not None:
                yield child
            elif (newcomer := next(newcomers, None)) is not None:
                yield Proposal(newcomer, {"strategy": self.name, "kind": "newcomer"})
            else:
                return

    def _window(self) -> list[Parent]:
        """The trials that may breed: the latest, and the best tenth of all."""
        bred = self.usable
        scored = [
            (x, o) for x, o in zip(losses(self.problem, bred).values, bred, strict=True) if not np.isnan(x)
        ]
        size = int(self.options["population"])
        elite = sorted(scored, key=lambda pair: float(pair[0]))[: max(1, len(scored) // 10)]
        kept: dict[str, Parent] = {}
        for loss, observation in elite + scored[-size:]:
            kept[observation.configuration.hash] = (float(loss), observation.configuration)
        return list(kept.values())

    def _child(self, window: Sequence[Parent], rng: np.random.Generator) -> Proposal | None:
        for _ in range(ATTEMPTS):
            loss, parent = self._tournament(window, rng)
            child, kind = parent, "mutation"
            reason: dict[str, object] = {"parent": parent.hash, "parent_loss": loss}
            if rng.random() < float(self.options["crossover"]):
                _, other = self._tournament(window, rng)
                child, kind = self._cross(parent, other, rng), "crossover"
                reason["other"] = other.hash
            if child.hash in self.taken:
                child = self._mutate(child, rng)
            if child.hash not in self.taken:
                return Proposal(child, {"strategy": self.name, "kind": kind, **reason})
        return None

    def _tournament(self, window: Sequence[Parent], rng: np.random.Generator) -> Parent:
        drawn = rng.choice(len(window), size=min(int(self.options["sample"]), len(window)), replace=False)
        return min((window[int(i)] for i in drawn), key=_loss)

    def _cross(self, parent: Configuration, other: Configuration, rng: np.random.Generator) -> Configuration:
        """``parent`` with about half of the knobs in which ``other`` differs taken from it, repaired."""
        differing = [name for name in other if name not in parent or other[name] != parent[name]]
        borrowed = [name for name in differing if rng.random() < 0.5]
        rng.shuffle(borrowed)
        while borrowed:
            child = assemble(self.space, {**other, **parent, **{name: other[name] for name in borrowed}})
            if child is not None:
                return child
            borrowed.pop()
        return parent

    def _mutate(self, parent: Configuration, rng: np.random.Generator) -> Configuration:
        """``parent`` changed in one knob, or ``parent`` itself where that led nowhere new."""
        if rng.random() < float(self.options["jump"]):
            return self._jump(parent, rng)
        steps: dict[str, list[Configuration]] = {}
        for neighbour in self.space.neighbours(parent):
            if neighbour.hash not in self.taken:
                steps.setdefault(_changed(parent, neighbour), []).append(neighbour)
        if not steps:
            return self._jump(parent, rng)
        of_knob = list(steps.values())[rng.integers(len(steps))]
        return of_knob[rng.integers(len(of_knob))]

    def _jump(self, parent: Configuration, rng: np.random.Generator) -> Configuration:
        names = list(parent)
        knob = self.space.knob(names[rng.integers(len(names))])
        child = assemble(self.space, {**parent, knob.name: knob.sample(rng)})
        return child if child is not None else parent


def _loss(parent: Parent) -> float:
    return parent[0]


def _changed(one: Configuration, other: Configuration) -> str:
    """The first knob in which two configurations differ: what a step changed, before conditions follow."""
    names = [*one, *(name for name in other if name not in one)]
    return next((name for name in names if one.get(name) != other.get(name)), "")
