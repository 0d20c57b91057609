"""A strategy that follows a study: it is told what is new, and asked for the next trial."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from autotune.errors import InputError, Problem
from autotune.interop.arguments import Engine
from autotune.interop.for_optuna.translation import Translation
from autotune.interop.for_optuna.trials import (
    PRUNED_ATTR,
    Watch,
    bounds_of,
    constraints_of,
    observation,
    status_of,
    steps,
)
from autotune.search.candidates.projection import project
from autotune.search.contract import Observation, Reason
from autotune.search.contract import Problem as SearchProblem
from autotune.search.loss import signed
from autotune.search.registry import make_strategy
from autotune.space.configuration import Configuration, Value, plain
from autotune.space.knobs import Assignment, Choice, FloatRange, IntegerRange, OrderedValues
from autotune.space.knobs.knob import Knob
from autotune.space.language.binding import bind_rule
from autotune.space.language.rule import Rule
from autotune.space.language.syntax import Comparison, Item, Literal, Name, Node
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status

PLAN_ATTR = "autotune"
"""The system attribute of a trial with what was planned for it, and why."""


MOST_LOSSES = 3
"""A configuration that was lost so often is left alone: it may be what its trials are lost by."""

Drawn: TypeAlias = Mapping[int, Mapping[str, Any]]
"""Parameters by the number of their trial."""


@dataclass(frozen=True)
class Plan:
    """What a trial shall try, and why."""

    configuration: Configuration
    reason: Reason
    new: bool = True
    """Whether it shall not be tried elsewhere too: it is neither a replicate nor fixed by the user."""

    def to_document(self) -> dict[str, Any]:
        return {"configuration": plain(self.configuration), "reason": dict(self.reason)}


class Advisor:
    """Holds a strategy at the place where a study stands.

    The strategy is told each finished trial once, in the order of their numbers if that is how they
    finish; running trials are pending. Its randomness comes from the seed and the number of the trial that
    is planned. So a sequential study that is resumed elsewhere gets the same proposals as one that never
    stopped.
    """

    def __init__(self, translation: Translation, metrics: Sequence[MetricSpec], engine: Engine) -> None:
        """Raises :class:`InputError` where there is no such strategy, or no feasible configuration."""
        self.translation = translation
        self.metrics = tuple(metrics)
        self.engine = engine
        self.abandoned: Collection[int] = ()
        """Running trials whose process may be gone: what they try is left for the end, and not lost."""
        self._longest = 0
        self._constraints: set[str] = set()
        self._restart()

    def _restart(self) -> None:
        metrics = (*self.metrics, *bounds_of(self._constraints))
        problem = SearchProblem(self.space, metrics, options=self.engine.options)
        self.strategy = make_strategy(self.engine.strategy, problem, self.engine.seed)
        self.watch = Watch()
        self._running: dict[int, Configuration] = {}
        self._lost: Counter[Configuration] = Counter()
        """How often."""

    @property
    def space(self) -> Space:
        return self.translation.space

    # -- learning

    def catch_up(self, trials: Sequence[FrozenTrial], number: int, drawn: Drawn) -> None:
        """Learn what is new in ``trials`` before the trial ``number`` is planned; ``drawn`` are parameters
        of running ones that ``trials`` need not have yet."""
        if not self._follow(trials, number, drawn):
            self._restart()
            self._follow(trials, number, drawn)

    def _follow(self, trials: Sequence[FrozenTrial], number: int, drawn: Drawn) -> bool:
        """Whether what is new could be added.

        Else all must be told anew: a trial left its plan, went on for longer than any before, or is the first
        with a constraint.
        """
        begun: list[Configuration] = []
        for trial in trials[self.watch.open :]:
            if trial.state is TrialState.RUNNING and trial.number not in (number, *self._running):
                params = {**trial.params, **drawn.get(trial.number, {})}
                configuration = self.translation.configuration(params, planned_for(trial))
                if configuration is not None:
                    self._running[trial.number] = configuration
                    begun.append(configuration)
        told: list[Observation] = []
        news = self.watch.news(trials)
        longest = max([self._longest, *map(steps, news)])
        constraints = self._constraints.union(*map(constraints_of, news))
        if longest > self._longest or len(constraints) > len(self._constraints):
            self._longest, self._constraints = longest, constraints
            return False
        for trial in news:
            found = self._observed(trial)
            planned = self._running.pop(trial.number, None)
            if planned is not None and (found is None or found.configuration != planned):
                return False
            if found is None:
                continue
            told.append(found)
            if found.status is Status.LOST:
                self._lost[found.configuration] += 1
                begun.append(found.configuration)  # and stays so, until it has been tried again
        self.strategy.restore(number, begun, told)
        return True

    def _observed(self, trial: FrozenTrial) -> Observation | None:
        """What the trial teaches; ``None`` where its configuration cannot be known.

        Where a constraint ended it before it was run, what was planned cannot be.
        """
        if PRUNED_ATTR in trial.system_attrs:
            planned = self.translation.configuration({}, planned_for(trial))
            if planned is None:
                return None
            return Observation(planned, Status.INFEASIBLE, reason=_reason(trial, planned))
        complete = trial.state is TrialState.COMPLETE
        configuration = self.translation.configuration(trial.params, planned_for(trial), complete=complete)
        if configuration is None:
            return None
        found = observation(trial, configuration, self.metrics, self._longest)
        return replace(found, reason=_reason(trial, configuration))

    # -- planning

    def plan(self, number: int, fixed: Mapping[str, object]) -> Plan | None:
        """What the trial ``number`` shall try; ``None`` where nothing is to be said."""
        # Nothing new is proposed for a trial with an impossible value: it will not be what was proposed.
        demands = self.translation.demands(fixed)
        if demands or self.translation.asked(fixed):
            return self._completed(self.translation.values(fixed), demands, number)
        return self._proposed(number)

    def _proposed(self, number: int) -> Plan | None:
        if (lost := self._lost_before()) is not None:
            self._running[number] = lost
            return Plan(lost, {"strategy": self.strategy.name, "kind": "lost"})
        for proposal in self.strategy.ask(1):
            self._running[number] = proposal.configuration
            return Plan(proposal.configuration, proposal.reason)
        if (left := self._left_behind()) is not None:
            self._running[number] = left
            return Plan(left, {"strategy": self.strategy.name, "kind": "abandoned"})
        pending = self.strategy.pending.values()
        if not self.strategy.usable and not any(one in self.space for one in pending):
            raise InputError(self._infeasible())
        return self._again() if self.translation.whole else None

    def _lost_before(self) -> Configuration | None:
        """What was lost, and has not been tried since."""
        settled = self._settled() if self._lost else ()
        return next((one for one in self._lost if one in self.space and one not in settled), None)

    def _left_behind(self) -> Configuration | None:
        """What an abandoned trial, the oldest first, was to try, and no other has tried or tries."""
        settled = self._settled()
        for number, configuration in sorted(self._running.items()):
            if number in self.abandoned and configuration in self.space and configuration not in settled:
                return configuration
        return None

    def _settled(self) -> set[Configuration]:
        """What was tried, or lost too often, or is being tried by a trial that nobody abandoned."""
        tried = {told.configuration for told in self.strategy.usable}
        tried.update(one for one, times in self._lost.items() if times >= MOST_LOSSES)
        return tried.union(c for number, c in self._running.items() if number not in self.abandoned)

    def _again(self) -> Plan | None:
        """Everything was tried: of what was tried least often the best, once more."""
        told = self.strategy.usable
        if not told:
            return None
        tries = Counter(one.configuration for one in told)
        best, _ = min(self._ranked(told), key=lambda pair: (tries[pair[0].configuration], pair[1]))
        reason = {"strategy": self.strategy.name, "kind": "replicate"}
        return Plan(best.configuration, reason, new=False)

    def _ranked(self, told: Sequence[Observation]) -> list[tuple[Observation, float]]:
        losses = np.nan_to_num(signed(self.strategy.problem, told), nan=np.inf)
        return list(zip(told, map(float, losses), strict=True))

    def _completed(self, fixed: Mapping[str, Value], demands: Sequence[Rule], number: int) -> Plan | None:
        """A trial of which a part was fixed (it was enqueued): the rest near the best that is known."""
        known = self._ranked(self.strategy.usable)
        best = min(known, key=lambda pair: pair[1])[0].configuration if known else {}
        wish = {**{k.name: best.get(k.name, k.default) for k in self.space.knobs}, **fixed}
        rng = np.random.default_rng((self.engine.seed, number, 1))
        try:
            found = project(_restricted(self.space, fixed, demands), wish, rng, self.strategy.taken)
        except InputError:  # nothing feasible with it, or next to nothing: the user's wish ends no study
            return None
        if found is None:
            return None
        named = sorted({*fixed}.union(*(rule.knobs for rule in demands)))
        reason = {"strategy": self.strategy.name, "kind": "fixed", "fixed": named}
        return Plan(found, reason, new=False)

    def _infeasible(self) -> Problem:
        rules = ", ".join(repr(rule.text) for rule in self.space.constraints) or "the space"
        return Problem(
            f"no configuration satisfies {rules}", hint="loosen the constraints, or widen the ranges"
        )

    # -- the end

    def exhausted_by(self, trial: FrozenTrial) -> bool:
        """Whether nothing is left to try once ``trial`` has ended."""
        if not self.translation.covers(trial):  # the space is larger than was known
            return False
        last = self.translation.configuration(trial.params, planned_for(trial))
        if status_of(trial) is Status.LOST and last is not None and self._lost[last] + 1 < MOST_LOSSES:
            return False
        return self.exhausted(last)

    def exhausted(self, last: Configuration | None = None) -> bool:
        """Whether all was tried, or is being tried, with ``last``."""
        size = self.space.feasible.size
        if not self.translation.whole or self.space.continuous or size is None:
            return False
        if len(self.strategy.usable) + len(self._running) + len(self._lost) + 1 < size:
            return False
        settled = self._settled().union(() if last is None else (last,))
        return sum(one in self.space for one in settled) >= size

    def accompanied(self, number: int) -> bool:
        """Whether a trial beside ``number`` runs that nobody abandoned."""
        return any(other != number and other not in self.abandoned for other in self._running)


def _restricted(space: Space, fixed: Mapping[str, Value], demands: Sequence[Rule]) -> Space:
    """``space`` with nothing but the ``fixed`` values for some of its knobs, and with further rules."""
    knobs: list[Knob] = []
    rules: list[Rule] = []
    for knob in space.knobs:
        name = knob.name
        if name not in fixed:
            knobs.append(knob)
        elif isinstance(knob, (FloatRange, IntegerRange)):
            knobs.append(OrderedValues(name, (fixed[name],), when=knob.when))
        elif isinstance(knob, Choice) and isinstance(fixed[name], Mapping):
            knobs.append(Choice(name, (fixed[name],), when=knob.when))
        else:  # it keeps its values: a rule may speak of none that its knob never has
            knobs.append(knob)
            rules += [bind_rule(node, knobs=space.knobs) for node in _equal(knob, fixed[name])]
    return Space(knobs, [*space.constraints, *demands, *rules])


def _equal(knob: Knob, value: Value) -> list[Node]:
    """What says that a knob has this value."""
    pairs: list[tuple[Node, Value]] = [(Name(knob.name), value)]
    if isinstance(knob, Assignment) and isinstance(value, Mapping):
        pairs = [(Item(knob.name, item), place) for item, place in value.items()]
    return [Comparison(("==",), (target, Literal(wanted))) for target, wanted in pairs]


def planned_for(trial: FrozenTrial) -> Mapping[str, Value] | None:
    """The values that were planned for a trial, by whichever process; ``None`` where it came too late."""
    late = PRUNED_ATTR in trial.system_attrs and not trial.params
    found = trial.system_attrs.get(PLAN_ATTR)
    return found["configuration"] if isinstance(found, dict) and not late else None


def _reason(trial: FrozenTrial, configuration: Configuration) -> Reason:
    """Why ``configuration`` was planned for the trial; empty where it was not."""
    found = trial.system_attrs.get(PLAN_ATTR)
    if not isinstance(found, dict) or plain(configuration) != found["configuration"]:
        return {}
    reason: Reason = found["reason"]
    return reason
