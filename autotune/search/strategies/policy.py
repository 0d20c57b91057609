"""Policy gradient over distributions of the knobs' values."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from autotune.search.candidates.moves import repaired, stepped
from autotune.search.contract import Observation, Option, Problem, Proposal, Strategy
from autotune.search.loss import signed
from autotune.search.models.arrays import Floats
from autotune.search.strategies.policy_heads import head_of
from autotune.space.configuration import Configuration

BATCH = 16
"""Configurations drawn from the policy at a time."""
BATCHES = 2
"""If none of so many batches holds anything new, what was drawn last is changed until it is new."""
STEPS = 24
"""How often it is changed before a random newcomer is proposed instead."""
STRONGEST = 4.0
"""Gradients are cut here: a policy that is sure of itself would otherwise jump."""


class Policy(Strategy):
    """REINFORCE with a baseline, an entropy bonus, and a memory of the best.

    A configuration is drawn knob by knob from a distribution with parameters of its own
    (:mod:`~autotune.search.strategies.policy_heads`): autoregressive categorical for assignments, as in
    Mirhoseini et al., Device Placement Optimization with Reinforcement Learning, ICML 2017; Plackett-Luce for
    permutations; categorical for what is listed; normal for ranges. Each trial moves the parameters along the
    gradient of its log-probability, times its advantage (Williams, Simple statistical gradient-following
    algorithms, Machine Learning 8, 1992). The advantage is the share of earlier trials that were worse,
    less the share that were better: the baseline is their median, and no unit and no outlier matters.

    A hundred tries are few for that alone. So each step also raises the probability of the best
    ``elite`` of all trials, weighted by rank: self-imitation (Oh et al., ICML 2018), in the limit the
    cross-entropy method (Rubinstein, 1999). The ``entropy`` bonus keeps the policy from closing in early.

    What violates a constraint is repaired (:func:`~autotune.search.candidates.moves.repaired`). Where all
    draws were tried before, the last is changed step by step until it is new.
    """

    name: ClassVar[str] = "policy"
    defaults: ClassVar[Mapping[str, Option]] = {
        "initial": 10,
        "rate": 1.0,
        "imitation": 0.5,
        "elite": 0.15,
        "entropy": 0.05,
    }
    limits: ClassVar[Mapping[str, tuple[float, float]]] = {"elite": (0, 1)}

    def __init__(self, problem: Problem, seed: int = 0) -> None:
        super().__init__(problem, seed)
        self._heads = [head_of(knob) for knob in problem.space.knobs]
        self._theta = [head.start for head in self._heads]
        widths = [len(head.row(head.knob.default)) for head in self._heads]
        ends = np.cumsum(widths, dtype=int)
        self._columns = [slice(end - width, end) for end, width in zip(ends, widths, strict=True)]
        """Where each head's knob stands in a row."""
        self._losses: list[float] = []
        """Those of the trials with a number, the best first."""
        self._rows = np.zeros((0, sum(widths)))
        """Their configurations, as the heads see them; a knob that does not exist stands at its default."""
        self._there = np.zeros((0, len(self._heads)))
        """Which knobs they have: 1 or 0."""
        self._learned = 0

    # -- proposing

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        for _ in range(n):
            found = self._drawn(rng) if self._learned >= int(self.options["initial"]) else None
            if found is not None:
                configuration, kind = found
                chance = {"log_probability": self._log_probability(configuration)}
                yield Proposal(configuration, {"strategy": self.name, "kind": kind, **chance})
            elif (newcomer := next(self.newcomers(rng), None)) is not None:
                yield Proposal(newcomer, {"strategy": self.name, "kind": "newcomer"})
            else:
                return

    def _drawn(self, rng: np.random.Generator) -> tuple[Configuration, str] | None:
        """A configuration of the policy that is new, and how it came about."""
        last: Configuration | None = None
        for _ in range(BATCHES):
            columns = [head.draw(t, rng, BATCH) for head, t in zip(self._heads, self._theta, strict=True)]
            for values in zip(*columns, strict=True):
                wish = {head.knob.name: value for head, value in zip(self._heads, values, strict=True)}
                last = repaired(self.space, wish, rng) or last
                if last is not None and last.hash not in self.taken:
                    return last, "drawn"
        if last is None:
            return None
        for _ in range(STEPS):
            names = list(last)
            knob = self.space.knob(names[rng.integers(len(names))])
            last = stepped(self.space, last, knob, rng) or last
            if last.hash not in self.taken:
                return last, "near"
        return None

    def _log_probability(self, configuration: Configuration) -> float:
        """The logarithm of the probability that the policy draws ``configuration``."""
        return sum(
            float(head.log_probability(theta, head.row(configuration[head.knob.name])[None])[0])
            for head, theta in zip(self._heads, self._theta, strict=True)
            if head.knob.name in configuration
        )

    # -- learning

    def learn(self, observations: Sequence[Observation]) -> None:
        for observation in observations:  # one by one: a resumed search is told all at once
            loss = float(signed(self.problem, [observation])[0])
            advantage = self._advantage(loss)
            self._learned += 1
            row, there = self._seen(observation.configuration)
            if not np.isnan(loss):
                place = bisect_right(self._losses, loss)
                self._losses.insert(place, loss)
                self._rows = np.insert(self._rows, place, row, axis=0)
                self._there = np.insert(self._there, place, there, axis=0)
            self._step(row, there, advantage)

    def _seen(self, configuration: Configuration) -> tuple[Floats, Floats]:
        """A configuration as a row of numbers, and which knobs it has."""
        rows = [head.row(configuration.get(head.knob.name, head.knob.default)) for head in self._heads]
        there = np.array([head.knob.name in configuration for head in self._heads], dtype=float)
        return np.concatenate([np.zeros(0), *rows]), there

    def _advantage(self, loss: float) -> float:
        """The share of earlier trials that were worse, less the share that were better."""
        if np.isnan(loss):
            return -len(self._losses) / max(self._learned, 1)
        better = bisect_left(self._losses, loss)
        worse = self._learned - bisect_right(self._losses, loss)
        return (worse - better) / max(self._learned, 1)

    def _step(self, row: Floats, there: Floats, advantage: float) -> None:
        """Towards or away from a configuration, and towards the best ones."""
        count = max(1, round(float(self.options["elite"]) * len(self._losses)))
        rows, all_there = np.vstack([row, self._rows[:count]]), np.vstack([there, self._there[:count]])
        weights = np.log(count + 0.5) - np.log(np.arange(1, len(rows)))
        imitation = float(self.options["imitation"]) * weights / max(weights.sum(), 1e-12)
        pull = np.append(float(self.options["rate"]) * advantage, imitation)
        entropy = float(self.options["entropy"])
        for number, (head, columns) in enumerate(zip(self._heads, self._columns, strict=True)):
            theta = self._theta[number]
            slope = head.gradient(theta, rows[:, columns], pull * all_there[:, number], entropy)
            self._theta[number] = theta + head.pace * np.clip(slope, -STRONGEST, STRONGEST)
