"""Steady-state evolution over the feasible set."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from autotune.search.candidates.assemble import assemble
from autotune.search.candidates.moves import crossed, repaired, stepped
from autotune.search.contract import Observation, Option, Problem, Proposal, Strategy
from autotune.search.strategies.ranking import Ranked, Ranking, loss_of
from autotune.space.configuration import Configuration, Value
from autotune.space.knobs.knob import Knob

ATTEMPTS = 32
"""How many children are bred for one proposal before a random newcomer is proposed instead."""
WIDENING = 8
"""After each so many attempts a child is changed once more: its parent's neighbours may all be tried."""


class Evolution(Strategy):
    """Tournament, crossover and mutation, one child at a time, with every child feasible.

    The scheme is regularised evolution (Real et al., Regularized Evolution for Image Classifier
    Architecture Search, AAAI 2019): the ``population`` is a window over the latest trials, so that a
    lucky reading ages out, and the parent is the best of a ``sample`` drawn from it. The best tenth of
    all trials stays in the window as well: with a hundred tries instead of twenty thousand, a search cannot
    afford to lose what it has found.

    A child differs from its parent in one knob, moved a little as its kind allows
    (:func:`~autotune.search.candidates.moves.moved`), or with probability ``jump`` anew. A knob is drawn in
    proportion to the variables it is made of: an order of eight jobs changes more often than a flag.
    With probability ``crossover`` the child first takes some knobs from a second parent, or parts
    of an order or assignment (:func:`~autotune.search.candidates.moves.crossed`). What breaks a
    constraint is repaired (:func:`~autotune.search.candidates.moves.repaired`). A failed trial never breeds;
    neither does one whose metric is missing.
    """

    name: ClassVar[str] = "evolution"
    defaults: ClassVar[Mapping[str, Option]] = {
        "population": 24,
        "sample": 8,
        "initial": 10,
        "crossover": 0.3,
        "jump": 0.1,
    }
    limits: ClassVar[Mapping[str, tuple[float, float]]] = {
        "population": (1, math.inf),
        "sample": (1, math.inf),
        "initial": (1, math.inf),
        "crossover": (0, 1),
        "jump": (0, 1),
    }

    def __init__(self, problem: Problem, seed: int = 0) -> None:
        super().__init__(problem, seed)
        self._ranking = Ranking(problem)
        self._sign = problem.goals[0].sign if problem.goals else 1.0

    def learn(self, observations: Sequence[Observation]) -> None:
        self._ranking.learn(observations)

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        window = self._window()
        breeds = len(self._ranking) >= int(self.options["initial"])  # the window may never hold so many
        for _ in range(n):
            child = self._child(window, rng) if breeds else None
            if child is not None:
                yield child
            elif (newcomer := next(self.newcomers(rng), None)) is not None:
                yield Proposal(newcomer, {"strategy": self.name, "kind": "newcomer"})
            else:
                return

    def _window(self) -> list[Ranked]:
        """The trials that may breed: the latest, and the best tenth of all (but no more than the latest)."""
        size = int(self.options["population"])
        elite = self._ranking.best(min(size, max(1, len(self._ranking) // 10)))
        return list({ranked[1].hash: ranked for ranked in elite + self._ranking.latest(size)}.values())

    def _child(self, window: Sequence[Ranked], rng: np.random.Generator) -> Proposal | None:
        for attempt in range(ATTEMPTS):
            loss, parent = self._tournament(window, rng)
            if not parent:  # a configuration without any knob has nothing to change
                return None
            child, kind = parent, "mutation"
            reason: dict[str, object] = {"parent": parent.hash, "parent_metric": self._sign * loss}
            if rng.random() < float(self.options["crossover"]):
                _, other = self._tournament(window, rng)
                child, kind = self._cross(parent, other, rng), "crossover"
                reason["other"] = other.hash
            if child.hash in self.taken:
                for _ in range(1 + attempt // WIDENING):
                    child = self._mutate(child, rng)
            if child.hash not in self.taken:
                return Proposal(child, {"strategy": self.name, "kind": kind, **reason})
        return None

    def _tournament(self, window: Sequence[Ranked], rng: np.random.Generator) -> Ranked:
        size = min(int(self.options["sample"]), len(window))
        drawn = rng.choice(len(window), size=size, replace=False)
        return min((window[int(i)] for i in drawn), key=loss_of)

    def _cross(self, parent: Configuration, other: Configuration, rng: np.random.Generator) -> Configuration:
        """``parent`` with about half of what ``other`` has different, repaired."""
        differing = [name for name in other if name not in parent or other[name] != parent[name]]
        borrowed: dict[str, Value] = {}
        for knob in map(self.space.knob, differing):
            if len(knob.cells) > 1 and knob.name in parent:
                borrowed[knob.name] = crossed(knob, parent[knob.name], other[knob.name], rng)
            elif rng.random() < 0.5:
                mine = parent.get(knob.name, other[knob.name])
                borrowed[knob.name] = crossed(knob, mine, other[knob.name], rng)
        return repaired(self.space, {**other, **parent, **borrowed}, rng) or parent

    def _mutate(self, parent: Configuration, rng: np.random.Generator) -> Configuration:
        """``parent`` changed in one knob, or ``parent`` itself where that failed."""
        knob = self._any_knob(parent, rng)
        if rng.random() < float(self.options["jump"]):
            child = assemble(self.space, {**parent, knob.name: knob.sample(rng)})
        else:
            child = stepped(self.space, parent, knob, rng)
        return child if child is not None else parent

    def _any_knob(self, parent: Configuration, rng: np.random.Generator) -> Knob:
        knobs = [self.space.knob(name) for name in parent]
        sizes = np.array([max(len(knob.cells), 1) for knob in knobs], dtype=float)
        return knobs[int(rng.choice(len(knobs), p=sizes / sizes.sum()))]
