"""A multi-armed bandit that hands each try to the arm that has done best lately."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from autotune.errors import InputError
from autotune.errors import Problem as Fault
from autotune.search.contract import Observation, Option, Problem, Proposal, Strategy
from autotune.search.loss import signed
from autotune.search.models.arrays import Floats
from autotune.search.registry import make_strategy, strategy_class
from autotune.search.strategies.regions import regions

ELITE = 0.2
"""A try earns credit if it is among the best of all tries so far: this share of them."""
DOUBT = 0.2
"""The standard deviation of the draw for an arm that was never used. Credits are from 0 to 1."""
FEWEST = 3
"""At least so many random tries begin a region: those of a whole space are shared among its regions."""
REGIONS = "regions"
"""The value of the option ``arms`` that makes each region of the space an arm."""
OF_REGIONS = ("inside", "knob")
"""The options that say something of regions."""


@dataclass(frozen=True)
class Arm:
    """What can be given a try: a strategy, over the whole space or a region of it."""

    name: str
    strategy: Strategy


@dataclass
class Window:
    """The latest tries, and what each earned its arm."""

    length: int
    tries: deque[tuple[int, float]] = field(default_factory=deque)

    def add(self, arm: int, reward: float) -> None:
        self.tries.append((arm, reward))
        if len(self.tries) > self.length:
            self.tries.popleft()

    def of(self, arm: int) -> list[float]:
        """The rewards of one arm, the oldest first."""
        return [reward for one, reward in self.tries if one == arm]


class Bandit(Strategy):
    """Thompson sampling over arms whose credit is the area under the curve of their latest successes.

    The credit of an arm is that of OpenTuner (Ansel et al., PACT 2014, section 4.2, after Fialho et
    al., Comparison-based adaptive strategy selection, GECCO 2010): over a sliding ``window`` of tries, the
    mean reward of its own tries, the ``i``-th oldest weighing ``i``. So an arm that has run dry loses its
    credit, and one that begins to succeed gains it at once. OpenTuner rewards a new best alone; with a
    hundred tries those are too few to tell arms apart, so a try in the best fifth so far earns a part,
    by its rank. Ranks alone count, so that neither the unit of the metric nor an outlier matters.
    The credit, and how unsure it is, make a normal distribution for each arm; the arm with the highest
    draw gets the try (Thompson, Biometrika 25, 1933).

    ``arms`` are strategies by name, or ``regions``: the parts of the space by the values of one knob
    (:func:`~autotune.search.strategies.regions.regions`; ``knob`` names it), each searched by the strategy
    ``inside``. All arms share what was proposed and are told everything, so that each builds on what others
    found.

    The reason of a proposal names the arm that made it, and comes back with what was measured: so credit goes
    where it belongs, also with several trials in flight and after a restart. With regions it goes to the one
    that the configuration is in, whoever proposed it. A trial that no arm proposed earns no credit.
    """

    name: ClassVar[str] = "bandit"
    learns_from_sources: ClassVar[bool] = True
    defaults: ClassVar[Mapping[str, Option]] = {
        "arms": "bayes,evolution,policy",
        "window": 50,
        "inside": "evolution",
        "knob": "",
    }
    limits: ClassVar[Mapping[str, tuple[float, float]]] = {"window": (1, math.inf)}

    def __init__(self, problem: Problem, seed: int = 0) -> None:
        super().__init__(problem, seed)
        self.by_region = self.options["arms"] == REGIONS
        self.arms = self._regions() if self.by_region else self._strategies()
        for arm in self.arms:  # one book for all: what one arm proposes is taken for the others at once
            arm.strategy.taken = self.taken
            arm.strategy.pending = self.pending
        self._window = Window(int(self.options["window"]))
        self._seen: set[str] = set()
        self._losses: list[float] = []
        """Those of all trials that have one, the best first."""

    @classmethod
    def checked(cls, given: Mapping[str, Option]) -> Mapping[str, Option]:
        """Also refuses what only regions would use, where the arms are strategies."""
        options = super().checked(given)
        unused = [name for name in OF_REGIONS if name in given and options["arms"] != REGIONS]
        if unused:
            raise InputError(
                [
                    Fault(
                        f"the option {name!r} of the strategy {cls.name!r} has no effect on these arms",
                        expected=f"arms: {REGIONS} beside it, or no {name!r}",
                    )
                    for name in unused
                ]
            )
        return options

    def _strategies(self) -> list[Arm]:
        names = [name.strip() for name in str(self.options["arms"]).split(",")]
        if self.name in names or not all(names) or len(set(names)) < len(names):
            raise InputError(
                Fault(
                    f"the arms of {self.name!r} cannot be {self.options['arms']!r}",
                    expected=f"names of other strategies, each once, such as {self.defaults['arms']!r}, "
                    f"or {REGIONS!r}",
                )
            )
        problem = replace(self.problem, options={})
        return [Arm(name, make_strategy(name, problem, self.seed)) for name in names]

    def _regions(self) -> list[Arm]:
        parts = regions(self.space, str(self.options["knob"]))
        inside = str(self.options["inside"])
        options: dict[str, Option] = {}
        if isinstance(usual := strategy_class(inside).defaults.get("initial"), int):
            options["initial"] = max(usual // max(len(parts), 1), FEWEST)
        arms = []
        for part in parts:
            problem = replace(self.problem, space=part.space, options=options)
            arms.append(Arm(part.label, make_strategy(inside, problem, self.seed)))
        return arms

    # -- proposing

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        for _ in range(n):
            draws = self._draws()
            for number in np.argsort(-draws, kind="stable").tolist():
                proposals = self.arms[number].strategy.propose(1, rng)
                chosen = next((one for one in proposals if one.configuration.hash not in self.taken), None)
                if chosen is not None:
                    yield Proposal(chosen.configuration, self._reason(number, draws[number], chosen))
                    break
            else:
                return

    def _reason(self, number: int, draw: float, chosen: Proposal) -> dict[str, object]:
        rewards = self._window.of(number)
        own = {
            "strategy": self.name,
            "kind": chosen.reason["kind"],
            "arm": self.arms[number].name,
            "score": round(float(draw), 4),
            "credit": round(credit(rewards), 4),
            "uses": len(rewards),
        }
        return {**chosen.reason, **own}

    def _draws(self) -> Floats:
        """What each arm draws for the next try: its credit, plus noise in proportion to how unsure that is.

        The noise depends on the number of the try, so that it is the same however many are asked for at once.
        """
        rng = np.random.default_rng((self.seed, len(self.taken), len(self.arms)))
        noise = rng.standard_normal(len(self.arms))
        rewards = [self._window.of(number) for number in range(len(self.arms))]
        credits = np.array([credit(own) for own in rewards])
        unsure = np.array([DOUBT / np.sqrt(1.0 + len(own)) for own in rewards])
        return np.asarray(credits + unsure * noise)

    # -- learning

    def tell(self, observations: Iterable[Observation]) -> None:
        batch = list(observations)
        super().tell(batch)
        for arm in self.arms:
            arm.strategy.tell(batch)

    def learn(self, observations: Sequence[Observation]) -> None:
        for observation in observations:  # one by one: a resumed search is told all at once
            if observation.configuration.hash in self._seen:
                continue
            number = self._arm_of(observation)
            reward = self._reward(float(signed(self.problem, [observation])[0]))
            self._seen.add(observation.configuration.hash)
            if number is not None:
                self._window.add(number, reward)

    def _arm_of(self, observation: Observation) -> int | None:
        """The arm that gets the credit; ``None`` for the default, and for what others proposed."""
        for number, arm in enumerate(self.arms):
            if self.by_region and observation.configuration in arm.strategy.space:
                return number
            if not self.by_region and observation.reason.get("arm") == arm.name:
                return number
        return None

    def _reward(self, loss: float) -> float:
        """1 for a new best, falling with the rank to 0 outside the best fifth so far."""
        if np.isnan(loss):
            return 0.0
        rank = bisect_left(self._losses, loss)
        insort(self._losses, loss)
        return max(0.0, 1.0 - rank / max(ELITE * len(self._seen), 1.0))


def credit(rewards: Sequence[float]) -> float:
    """The area under the curve of an arm's rewards, the oldest first: from 0 to 1; 1/2 where there are none.

    Later ones weigh more. Half a reward is added before the first, so that one lucky try does not decide.
    """
    weights = np.arange(1, len(rewards) + 1)
    return float((0.5 + weights @ np.array(rewards)) / (1.0 + weights.sum())) if len(rewards) else 0.5
