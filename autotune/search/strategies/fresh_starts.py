"""Fresh starts: where all knobs are ranges, a search that has come to a standstill begins anew.

A smooth goal may have several minima. A search that has come down to one of them has a model that was fitted
to where it has been, and is too sure of the rest: a hundred further tries may all go to the same place. One
that knows nothing comes down somewhere, with some chance to a better place. To begin anew, with what was best
kept aside, is what trust regions do when they have shrunk to nothing (Eriksson et al., Scalable Global
Optimization via Local Bayesian Optimization, NeurIPS 2019, section 2).

Where two starts have ended in different places they are crossed
(:mod:`~autotune.search.strategies.crossing`). ``benchmarks/results/smooth_functions.md`` says what both gain.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from autotune.search.acquisition.ambition import LAST, is_ending
from autotune.search.contract import Observation, Problem, Proposal
from autotune.search.loss import signed
from autotune.search.models.bounds import is_bounded
from autotune.search.models.elapsed import Elapsed
from autotune.search.models.features import only_ranges
from autotune.search.strategies.bayes import Bayes
from autotune.search.strategies.crossing import Crossing, Place
from autotune.space.configuration import Configuration

PATIENCE = 40
"""A search is at a standstill after so many tries without news ..."""
PER_KNOB = 10
"""... and so many for each knob, if that is more: it takes longer to come down in more directions."""
NEWS = 0.01
"""What beats the best by less than this part of the longest distance that it has had from the median of all
tries is no news."""
BESIDE = 0.1
"""What is nearer than this part of every scale is the same place. Before a fresh start has heard of as many
tries as it makes at random, what is told from the place of an earlier best was in flight, and is kept from
the new model: it would lead it back."""
FAILING = 0.1
"""Where more than this part of all tries has failed there is no fresh start: it would have to learn anew what
fails."""


class Anew(Bayes):
    """A search with the books of another, the ``whole`` one, but without what that has learned."""

    def __init__(self, problem: Problem, seed: int, whole: Bayes) -> None:
        super().__init__(problem, seed)
        self.taken, self.pending, self.told = whole.taken, whole.pending, whole.told

    def hear(self, observation: Observation) -> None:
        """Learn from a trial that the ``whole`` search was told of."""
        self.usable.append(observation)
        self.learn([observation])

    def _at_random(self) -> int:
        before = len(self.taken) - len(self.usable) - len(self.pending)
        return before + super()._at_random()


class FreshStarts:
    """The latest fresh start of a search, and what tells that it is time for the next.

    All that it keeps follows from the observations, in their order.
    """

    def __init__(self, whole: Bayes) -> None:
        problem = whole.problem
        self._whole = whole
        self._problem = replace(problem, sources=())
        self._knobs = [knob for knob in problem.space.knobs if knob.cardinality != 1]
        self._patience = max(PATIENCE, PER_KNOB * len(self._knobs))
        bounded = any(map(is_bounded, problem.metrics))
        self._never = len(problem.goals) != 1 or bounded or not only_ranges(problem.space)
        """Whether the search goes on as it began. It does so too where trainings may be stopped early."""
        self._heard = 0
        self._elapsed = Elapsed()
        self._is_ending = False
        self._losses: list[float] = []
        """Of all tries that have one, sorted."""
        self._best: Place | None = None
        """What was news last since the latest start."""
        self._without_news = 0
        self._extent = 0.0
        """How far the best has been from the median of all tries. At a standstill most are near the best."""
        self._earlier: list[Place] = []
        """The best of each earlier start."""
        self._latest: Anew | None = None
        self._crossing: Crossing | None = None
        """Of the best of all starts and the best of the last one that ended."""

    def learn(self, observations: Sequence[Observation]) -> None:
        for observation in observations:
            self._never = self._never or observation.paused or observation.fraction < 1.0
            if not self._never:
                self._learn(observation)

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal] | None:
        """What the latest start proposes; ``None`` where it is the turn of the search that knows everything.

        That has the last part of the tries or of the time, and polishes what is best of all.
        """
        if self._never or self._latest is None or self._whole.is_ending:
            return None
        number = len(self._earlier) + 1
        return (
            Proposal(one.configuration, {**one.reason, "strategy": self._whole.name, "start": number})
            for one in self._latest.propose(n, rng)
        )

    def crossed(self) -> Iterator[Proposal]:
        """What a crossing of two starts proposes, before anything else."""
        while not self._never and self._crossing and (found := self._crossing.next(self._whole.taken)):
            configuration, parents = found
            yield Proposal(configuration, {"strategy": self._whole.name, "kind": "crossover", **parents})

    def _learn(self, observation: Observation) -> None:
        self._heard += 1
        self._elapsed.learn([observation])
        was_ending = self._is_ending
        self._is_ending = is_ending(self._problem, self._heard, self._elapsed.seconds)
        loss = float(signed(self._problem, [observation])[0])
        if not math.isnan(loss):
            insort(self._losses, loss)
        if not (self._crossing and self._crossing.hear(observation.configuration, loss)):
            self._follow(observation, loss)
        if self._best is None:
            return
        if self._is_time():
            self._end_start(self._best)
            self._latest = Anew(self._problem, self._whole.seed + len(self._earlier), self._whole)
        elif self._earlier and self._is_ending and not was_ending:
            self._end_start(self._best)

    def _follow(self, observation: Observation, loss: float) -> None:
        """Tell the latest start of a try, and see whether it is news."""
        if self._latest is not None:
            if self._was_in_flight(self._latest, observation.configuration):
                return
            self._latest.hear(observation)
        self._without_news += 1
        best = math.inf if self._best is None else self._best.loss
        if not math.isnan(loss) and loss < best - self._margin():
            self._best, self._without_news = Place(observation.configuration, loss), 0

    def _end_start(self, best: Place) -> None:
        """The latest start has come to ``best``: cross that with the best of the earlier ones."""
        if self._earlier:
            so_far = self._crossing.best if self._crossing else self._earlier[0]
            differing = self._differing(best.configuration, so_far.configuration)
            self._crossing = Crossing(self._problem.space, best, so_far, differing)
        self._earlier.append(best)
        self._best, self._without_news = None, 0

    def _is_time(self) -> bool:
        """Whether the latest start is at a standstill, and there is room for the next to come to one."""
        failed = self._heard - len(self._losses)
        may_begin = self._patience <= self._room() and failed <= FAILING * self._heard
        return self._without_news >= self._patience and may_begin

    def _room(self) -> float:
        """How many tries there are until the last part of them, or of the time at the pace so far."""
        budget, limit, seconds = self._problem.budget, self._problem.seconds, self._elapsed.seconds
        tries = math.inf if budget is None else (1.0 - LAST) * budget - self._heard
        if limit is None or not seconds:
            return tries
        return min(tries, self._heard * ((1.0 - LAST) * limit / seconds - 1.0))

    def _margin(self) -> float:
        """By how much a loss has to beat the best to be news."""
        self._extent = max(self._extent, self._losses[len(self._losses) // 2] - self._losses[0])
        return NEWS * self._extent

    def _was_in_flight(self, latest: Anew, configuration: Configuration) -> bool:
        at_random = len(latest.usable) < int(latest.options["initial"])
        return at_random and any(
            set(configuration) == set(one.configuration)
            and not self._differing(configuration, one.configuration)
            for one in self._earlier
        )

    def _differing(self, one: Configuration, other: Configuration) -> list[str]:
        """The knobs of both in which they are farther apart than :data:`BESIDE`."""
        both = [knob for knob in self._knobs if knob.name in one and knob.name in other]
        return [knob.name for knob in both if knob.distance(one[knob.name], other[knob.name]) > BESIDE]
