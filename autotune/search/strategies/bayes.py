"""Bayesian optimisation over the feasible set, with a Gaussian process of our own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from autotune.errors import InputError
from autotune.errors import Problem as Fault
from autotune.search.acquisition.ambition import Ambition, is_ending
from autotune.search.acquisition.calibration import overconfidence
from autotune.search.acquisition.expected_hypervolume import SeveralGoals
from autotune.search.acquisition.expected_improvement import log_expected_improvement
from autotune.search.acquisition.feasibility_threshold import feasibility_threshold
from autotune.search.acquisition.first_success import likeliest
from autotune.search.candidates.climb import Candidate, best_first, best_found, rounded
from autotune.search.candidates.pool import Pool, Pools
from autotune.search.contract import Observation, Option, Problem, Proposal, Reason, Strategy
from autotune.search.models.arrays import Floats, Integers
from autotune.search.models.cost import BETWEEN, Cost, emphasis
from autotune.search.models.elapsed import Elapsed
from autotune.search.models.features import IRREGULAR, Features
from autotune.search.models.gaussian_process import Inputs
from autotune.search.models.history import History, Targets
from autotune.search.models.surrogate import Leader, Prediction, Surrogate, fitted_next
from autotune.search.models.transfer import Belief, Transfer
from autotune.search.threads import one_thread

INCUMBENTS = 4
"""All neighbours of so many of the best configurations are candidates."""
CAUTION = 1.0
"""The probability that measured memory suffices is raised to 1 plus this. Counting it once is right for a
single try; but that limit is foreseen from successes too, so a failure teaches little."""
PLAIN = 2
"""Where bounds are measured, one try in so many goes to what the expected improvement times the probability
that they hold favours, however small that probability is."""
DRAWS = 64
"""The first tries take the best of so many random configurations, by what is expected before any trial."""
MOST_CANDIDATES = 1_000_000
"""The largest number of ``candidates`` that can be asked for."""


@dataclass(frozen=True)
class Aim:
    """What candidates for a try are compared by."""

    targets: Targets
    goal: float
    """The target to be improved on."""
    power: float
    """To this power probabilities of success are raised."""
    likely: float
    """From this probability of success on, a higher one is no advantage."""
    stuck: bool
    """Whether the try is a way out of a plateau."""


class Bayes(Strategy):
    """Expected improvement under a Gaussian process, over a sample of the feasible set and around the best.

    The first tries are random. They prefer powers of two where a list has other numbers as well
    (:data:`~autotune.search.models.features.IRREGULAR` says why), and round numbers in ranges
    (:mod:`~autotune.search.models.roundness`). Then each proposal maximises the expected improvement (Jones
    et al., 1998) over ``candidates`` random configurations and all that differ from one of the best in one or
    two knobs. Where bounds are measured, the search for the maximum climbs on from there along ranges
    (:mod:`~autotune.search.candidates.climb`); where there are many knobs it does so for every other try, in
    all of them (:mod:`~autotune.search.candidates.mutants`).

    What has to be improved on is the lowest value that the process expects of anything tried, not the lowest
    reading: where results are noisy that one was luck, and to ask for more than luck leads to wherever little
    is known (Picheny, Wagner and Ginsbourger, Structural and Multidisciplinary Optimization 48, 2013, section
    3.2). The expected value is not known for sure either, but near it the process is wrong by about as much.
    So the spread that counts is that of the *difference* (Letham et al., Bayesian Analysis 14, 2019, have the
    same from draws of both); without this, a search of noisy trainings tries the best it has again and again,
    a little to the side.

    How large an improvement is asked for changes as the search goes on
    (:mod:`~autotune.search.acquisition.ambition`).

    Where the budget is a time, what counts is the expected improvement per second of the expected cost
    (:mod:`~autotune.search.models.cost`). With ``cost``, cost counts without a limit of time as well, for
    less as the budget is spent. ``rebuild`` asks for the same and names the knobs that need a new build,
    separated by commas. ``benchmarks/results/cost.md`` says what they save. Cost always counts where
    trainings may be stopped early: a step may take ten times as long with one batch size as with another.

    The expected improvement is multiplied by the probability of success, which is learned from failures and
    from the bounds of metrics. The probability is lowered where the latest tries failed more often than was
    predicted (:mod:`~autotune.search.acquisition.calibration`). What is unlikely to succeed comes last
    (:mod:`~autotune.search.acquisition.feasibility_threshold`). Where bounds are measured, every other try
    does without that threshold, and asks for no more than an improvement: that is the constrained expected
    improvement of Schonlau, Welch and Jones (IMS Lecture Notes 34, 1998). Else a search may polish one place
    that keeps the bounds and never see a better one, to which only tries lead that are likely to break them
    (``benchmarks/results/measured_constraints.md``). With several goals, what is expected to grow
    is the hypervolume of their front
    (:class:`~autotune.search.acquisition.expected_hypervolume.SeveralGoals`); nothing is learned from earlier
    studies then.
    """

    name: ClassVar[str] = "bayes"
    hears_paused: ClassVar[bool] = True
    learns_from_sources: ClassVar[bool] = True
    defaults: ClassVar[dict[str, Option]] = {"initial": 3, "candidates": 1500, "cost": False, "rebuild": ""}
    limits: ClassVar[dict[str, tuple[float, float]]] = {"candidates": (1, MOST_CANDIDATES)}

    def __init__(self, problem: Problem, seed: int = 0) -> None:
        super().__init__(problem, seed)
        self.features = Features(problem.space)
        self._pools = Pools(self.features, seed, int(self.options["candidates"]))
        rebuild = str(self.options["rebuild"]).replace(",", " ").split()
        counts = bool(self.options["cost"] or rebuild or problem.seconds is not None)
        self._cost = Cost(self.features, rebuild) if counts else None
        self._history = History(problem, past_bounds=True)
        self._surrogate: Surrogate | None = None
        self._transfer = Transfer(problem, self.features)
        self._belief: Belief | None = None
        self._several: SeveralGoals | None = None
        if len(problem.goals) > 1:
            self._refuse_cost(len(problem.goals))
            self._several = SeveralGoals(problem, self.features, self._pools)
        self._fitted = -1
        """How many observations the surrogate was fitted to."""
        self._ambition = Ambition(self.features)
        self._elapsed = Elapsed()

    def _refuse_cost(self, goals: int) -> None:
        """With several ``goals`` cost does not count, so nobody can ask for that."""
        if asked := [name for name in ("cost", "rebuild") if self.options[name]]:
            raise InputError(
                Fault(
                    f"the option {asked[0]!r} of the strategy {self.name!r} has no effect with {goals} goals",
                    expected=f"one metric with a goal, or no {asked[0]!r}",
                )
            )

    @property
    def is_ending(self) -> bool:
        """Whether the next try is in the last part of the tries, or of the time, that there is."""
        return is_ending(self.problem, len(self.taken), self._elapsed.seconds)

    def learn(self, observations: Sequence[Observation]) -> None:
        self._history.learn(observations)
        self._elapsed.learn(observations)
        if self._cost is not None:
            self._cost.learn(observations)
        elif self._history.stopped:
            self._cost = Cost(self.features)
            self._cost.learn(self._history.told)
        if self._several is not None:
            self._several.learn(observations)

    def expected(self) -> Mapping[str, float]:
        targets = self._history.targets()
        if targets is None or self._several is not None:
            return {}
        with one_thread():
            try:
                surrogate = self._taught(targets)
            except np.linalg.LinAlgError:
                self._fitted = -1
                return {}
            leading = [self._history.configurations[i] for i in surrogate.leading(targets)]
            values = surrogate.expected(surrogate.features.of(leading))
        return {one.hash: float(value) for one, value in zip(leading, values, strict=True)}

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        targets = self._history.targets()
        for _ in range(n):
            with one_thread():  # not around the ask: a bandit's arms propose without one
                chosen = self._next(targets, rng)
            if chosen is None:
                return
            yield chosen

    def _next(self, targets: Targets | None, rng: np.random.Generator) -> Proposal | None:
        taught = self._transfer.opening(self.usable, self.known, self.taken) if self._transfer else None
        if taught is not None:
            return Proposal(taught[0], {"strategy": self.name, **taught[1]})
        if len(self.taken) < self._at_random():
            return self._newcomer("initial", rng)
        if targets is None:
            return self._towards_success(rng) or self._newcomer("initial", rng)
        if self._several is not None:
            return self._for_the_front(targets, rng) or self._newcomer("newcomer", rng)
        return self._modelled(targets, rng) or self._newcomer("newcomer", rng)

    def _at_random(self) -> int:
        """How many tries are made before a model is asked.

        Where trials are stopped early, in a space too large to be listed, there is at least one for each
        knob. Until some trials have run to their end, those that were stopped say little about how they would
        have ended, and a search that believes them stays where they led it.
        """
        initial = int(self.options["initial"])
        large = self._history.stopped and not self.features.enumerable
        return max(initial, len(self.space.knobs)) if large else initial

    def _newcomer(
        self, kind: str, rng: np.random.Generator, likely: Callable[[Inputs], Floats] | None = None
    ) -> Proposal | None:
        """Of some untried configurations, drawn at random, the one expected to be best before any trial.

        With ``likely``, the probability of success of each, what is likelier to succeed comes first.
        """
        drawn = self.newcomers(rng)
        left = [configuration for _, configuration in zip(range(DRAWS), drawn, strict=False)]
        if not left:
            return None
        inputs = self.features.of(left)
        doubt = -likely(inputs) if likely else np.zeros(len(left))
        best = int(np.lexsort((inputs.expected - IRREGULAR * inputs.linear.sum(axis=1), doubt))[0])
        return Proposal(left[best], {"strategy": self.name, "kind": kind})

    # -- with a model

    def _towards_success(self, rng: np.random.Generator) -> Proposal | None:
        """While every trial has failed, what is likeliest to succeed; ``None`` where nothing tells."""
        if not self.usable:
            return None
        pool = self._pools.draw(self.features, len(self.usable))
        pending = list(self.pending.values())
        try:
            found = likeliest(self.problem, self.features, pool, self.usable, pending, self.taken, rng)
        except np.linalg.LinAlgError:
            return None
        return self._proposed(found)

    def _likely(self, surrogate: Surrogate, targets: Targets) -> Callable[[Inputs], Floats] | None:
        """The probability of success, up to where a higher one is no advantage; ``None``: nothing failed."""
        if not targets.failed.any():
            return None
        likely = feasibility_threshold(targets, self._history.ran_out, surrogate)
        return lambda inputs: np.minimum(surrogate.success_at(inputs), likely)

    def _for_the_front(self, targets: Targets, rng: np.random.Generator) -> Proposal | None:
        assert self._several is not None
        found = self._several.choose(
            list(self.pending.values()),
            self.taken,
            rng,
            ambition=self._ambition.after(len(targets.values)),
            likely=feasibility_threshold(targets, self._history.ran_out),
            plain=self._is_plain,
        )
        return self._proposed(found)

    def _modelled(self, targets: Targets, rng: np.random.Generator) -> Proposal | None:
        """The candidate with the largest expected improvement that was not tried; ``None`` without one.

        Also ``None`` where rounding defeats the process, so that a bad model never ends a search.
        """
        try:
            surrogate = self._taught(targets)
            leader = surrogate.leader(self._history, targets)
            stuck = self._ambition.stuck(targets.since(leader.level), len(self.pending), self.is_ending)
            if stuck and self._is_modest(surrogate):
                return self._newcomer("way out", rng, self._likely(surrogate, targets))
            found = self._found(targets, surrogate, leader, stuck, rng)
        except np.linalg.LinAlgError:
            self._fitted = -1
            return None
        return self._proposed(found)

    def _proposed(self, found: Candidate | None) -> Proposal | None:
        return Proposal(found.configuration, {"strategy": self.name, **found.reason()}) if found else None

    def _found(
        self, targets: Targets, surrogate: Surrogate, leader: Leader, stuck: bool, rng: np.random.Generator
    ) -> Candidate | None:
        """The best candidate: of the pool, and of what is found from there."""
        pool, pending = surrogate.pool, list(self.pending.values())
        best = [self._history.configurations[i] for i in targets.best_first[:INCUMBENTS]]
        columns = pool.near(best, rng)
        expected = surrogate.predict(columns, pending, leader)
        aim = self._aim(targets, surrogate, leader, expected, stuck)

        def ranked(columns: Integers) -> Iterator[Candidate]:
            return self._ranked(aim, pool, columns, surrogate.predict(columns, pending, leader))

        first = self._ranked(aim, pool, columns, expected)
        return best_found(pool, first, ranked, rng, bounded=surrogate.bounded, tries=len(self.taken))

    @property
    def _is_plain(self) -> bool:
        """Whether it is the next try's turn to go wherever bounds might hold, if there are any."""
        return len(self.taken) % PLAIN == 0

    def _is_modest(self, surrogate: Surrogate) -> bool:
        """Whether any improvement will do for the next try."""
        return self._ambition.none_left(self.is_ending, surrogate.lawful)

    def _aim(
        self, targets: Targets, surrogate: Surrogate, leader: Leader, expected: Prediction, stuck: bool
    ) -> Aim:
        """What to compare candidates by, given what is ``expected`` of them."""
        power = overconfidence(self.usable)
        if surrogate.bounded and self._is_plain:
            return Aim(targets, leader.level, power, likely=0.0, stuck=False)
        likely = feasibility_threshold(targets, self._history.ran_out, surrogate)
        asked = 0.0
        if not self._is_modest(surrogate):
            trust = self._belief.trust if self._belief else 0.0
            asked = self._ambition.asked(len(targets.instructive), trust, stuck, self._history.stopped)
            if surrogate.bounded:
                there = power * expected.log_success >= np.log(likely)
                ahead = leader.level - expected.mean[there]
                asked = self._ambition.within_reach(asked, ahead, expected.apart[there])
        return Aim(targets, leader.level - asked, power, likely, stuck)

    def _ranked(self, aim: Aim, pool: Pool, columns: Integers, expected: Prediction) -> Iterator[Candidate]:
        """The candidates that can be proposed, best first."""
        log_success = aim.power * expected.log_success
        gain = log_expected_improvement(expected.mean, expected.apart, aim.goal) + log_success
        gain += CAUTION * expected.log_room
        seconds: Floats | None = None
        if self._cost is not None:
            seconds = np.exp(self._cost.predict(pool.inputs_at(columns).joined(pool.fresh.inputs)))
            power = emphasis(self.problem, len(self._history), self._elapsed.seconds)
            gain -= power * np.log(seconds + BETWEEN)
        gain = rounded(gain)
        likely = np.minimum(np.exp(log_success), aim.likely)

        def reason(row: int) -> Reason:
            costs = {} if seconds is None else {"seconds": float(seconds[row])}
            return self._reason(aim, expected, row, {"log_gain": float(gain[row]), **costs})

        return best_first(pool, columns, likely, gain, self.taken, reason)

    def _reason(self, aim: Aim, expected: Prediction, row: int, known: Reason) -> Reason:
        """What was expected of a candidate by the model, and what earlier studies had to do with it."""
        return {
            "kind": "large improvement" if aim.stuck else "expected improvement",
            **aim.targets.predicted(float(expected.mean[row]), float(expected.spread[row])),
            "success": float(expected.success[row]),
            **(self._belief.reason if self._belief else {}),
            **known,
        }

    def _taught(self, targets: Targets) -> Surrogate:
        """The surrogate with all that is known, made anew when a fit is due."""
        told = self._history.told
        count = fitted_next([self.problem], told, self._fitted)
        if self._surrogate is None or count != self._fitted:
            # Fitted to the first observations alone, so that a resumed search has the same process.
            features = self._informed(count)
            pool = self._pools.draw(features, count)
            self._surrogate = Surrogate(self.problem, features, told[:count], pool)
            self._fitted = count
        shares = self._transfer.shares(self._history.configurations)
        self._surrogate.learn(self._history, targets, shares)
        return self._surrogate

    def _informed(self, due: int) -> Features:
        """The features, with what is expected beforehand by the first ``due`` observations."""
        self._belief = self._transfer.belief(self.usable[:due])
        return self.features.informed(self._belief.expected) if self._belief else self.features
