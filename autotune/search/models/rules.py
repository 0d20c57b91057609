"""What a search believes of the rules of its space that nobody wrote down."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from autotune.search.contract import Observation
from autotune.search.models.arrays import Floats, Integers
from autotune.search.models.features import Features
from autotune.search.models.hypotheses import LEAST, Suspects, suspected
from autotune.search.models.products import Numbers
from autotune.search.models.thinning import thinned
from autotune.status import Status

RULED = frozenset([Status.INFEASIBLE, Status.CRASHED, Status.WRONG])
"""Failures for which there may be such a rule. (Memory and time run out smoothly.)"""
TINY = 1e-9
"""The smallest probability."""
EXPLAINED = math.log(0.5)
"""A failure is put down to the rules if the logarithm of the probability that it keeps them is less."""


class Rules:
    """What is believed of the unwritten rules of a space, from outcomes.

    That a product is at most some number is left to the processes of
    :mod:`~autotune.search.models.feasibility`, which learn where failures begin without it. Mostly that is no
    single number: threads and tiles together use up the registers, but also what else is unrolled. A search
    that believes in a bound of the two never tries what is beyond it and works, and the best is often there.
    """

    def __init__(self, features: Features, observations: Sequence[Observation]) -> None:
        self._features = features
        self.numbers = Numbers(features)
        self.suspects: list[Suspects] = []
        """What each rule may be, in the order in which rules were found."""
        heard = [o for o in observations if not o.status.failed or o.status in RULED]
        rows = thinned(heard)
        failed = np.array([o.status.failed for o in rows], dtype=bool)
        if not self.numbers or failed.sum() < LEAST or failed.all():
            return
        self.suspects += suspected(self._logs(rows), ~failed, facts=len(self.numbers.facts), bounds=False)
        if len(rows) < len(heard):
            self._refute([o for o in heard if not o.status.failed])

    def __bool__(self) -> bool:
        """Whether there is reason to believe in any rule."""
        return bool(self.suspects)

    def learn(self, observation: Observation) -> bool:
        """Drop the hypotheses that a success refutes, and return whether there were any.

        Failures do not count before rules are looked for anew.
        """
        if not self.suspects or observation.status.failed:
            return False
        return self._refute([observation])

    def log_kept(self, codes: Integers) -> Floats:
        """The logarithm of the probability that rows of cell indices keep all rules; shape (n,)."""
        logs = self.numbers.logs(codes)
        total = np.zeros(len(codes))
        for each in self.suspects:
            total += np.log(np.maximum(1.0 - ~each.kept(logs) @ each.probabilities, TINY))
        return total

    def explains(self, observation: Observation) -> bool:
        """Whether it is a failure that a rule accounts for."""
        if not self.suspects or observation.status not in RULED:
            return False
        return bool(self.log_kept(self._features.of([observation.configuration]).codes)[0] < EXPLAINED)

    def _refute(self, successes: Sequence[Observation]) -> bool:
        before = sum(len(each.odds) for each in self.suspects)
        logs = self._logs(successes)
        self.suspects = [each.without(~np.asarray(each.kept(logs).all(axis=0))) for each in self.suspects]
        return sum(len(each.odds) for each in self.suspects) < before

    def _logs(self, observations: Sequence[Observation]) -> Floats:
        return self.numbers.logs(self._features.of([o.configuration for o in observations]).codes)
