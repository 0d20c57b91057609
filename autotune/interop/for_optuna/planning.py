"""What a trial of an Optuna study shall try, agreed with the processes that run its other trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial

from autotune.errors import nearest
from autotune.interop.arguments import Engine
from autotune.interop.for_optuna.advisor import PLAN_ATTR, Advisor, Plan, planned_for
from autotune.interop.for_optuna.given import GivenSpace
from autotune.interop.for_optuna.inference import InferredSpace
from autotune.interop.for_optuna.memory import Memory, trials_of
from autotune.interop.for_optuna.translation import Translation
from autotune.interop.for_optuna.trials import fixed_params, metrics_of
from autotune.interop.for_optuna.warn import warn
from autotune.interop.names import doubtful
from autotune.space.language.rule import Rule

REPLANS = 16
"""How often a trial is planned anew where other processes were quicker."""


@dataclass(frozen=True)
class Planning:
    """Plans trials of one study, with what is remembered of it.

    The way of a plan::

        the advisor proposes ─▶ new? ─▶ written to the study ─▶ nobody else has it ─▶ agreed
                 ▲                │                                 │
                 │                └─ nothing new is left ─┐         └─ another process has
                 └──── told of all trials again ◀─────────┴─────────────────┘  up to REPLANS times
    """

    study: optuna.Study
    memory: Memory
    engine: Engine
    given: GivenSpace | None
    """``None``: the space is what the finished trials asked for."""
    rules: Sequence[Rule]

    def agreed(self, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]) -> Plan | None:
        """A plan, written to the study, that no other process has; ``None`` where nothing is to be said.

        Who finds that another has the same makes a new one; both may. Where nothing else is left they look
        again, as the other may have found something. In the end the older trial keeps the plan, unless the
        other one has begun.
        """
        contended: tuple[Plan, int] | None = None
        for again in range(REPLANS):
            if again:
                self.memory.advisor = None  # it knows others' plans as they were, and takes ours for tried
            plan = self._proposed(trial, search_space)
            if plan is not None and plan.new:
                since = self._finished_before()
                self._write(trial, plan)
                if not self._others_with(plan, trial, since):
                    return plan
                contended = plan, since
            elif contended is None:
                self._write(trial, plan)
                return plan
        assert contended is not None, "else the first plan was returned"
        others = self._others_with(contended[0], trial, contended[1])
        is_ours = all(trial.number < other.number and not other.params for other in others)
        return contended[0] if is_ours else plan

    def informed(self, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]) -> Advisor | None:
        """The advisor, told of all trials but this one; ``None`` where no space is known."""
        memory, trials = self.memory, trials_of(self.study)
        translation = self._translation(trials, search_space)
        if translation is None:
            memory.advisor = None  # it knows a space that the study no longer has
            return None
        if memory.advisor is None or memory.advisor.translation is not translation:
            memory.advisor = Advisor(translation, metrics_of(self.study), self.engine)
        memory.look_again(trials)
        memory.advisor.abandoned = memory.abandoned
        memory.advisor.catch_up(trials, trial.number, memory.drawn)
        return memory.advisor

    def exhausted(self) -> Advisor | None:
        """The advisor, if it knows that all was tried or is being tried."""
        advisor = self.memory.advisor
        unsure = self.given is None and self.memory.define_by_run.from_failure
        return advisor if advisor and not unsure and advisor.exhausted() else None

    def _proposed(self, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]) -> Plan | None:
        advisor = self.informed(trial, search_space)
        return None if advisor is None else advisor.plan(trial.number, fixed_params(trial))

    def _write(self, trial: FrozenTrial, plan: Plan | None) -> None:
        if plan is not None:
            self.study._storage.set_trial_system_attr(trial._trial_id, PLAN_ATTR, plan.to_document())

    def _finished_before(self) -> int:
        """All trials with a lower number had finished, and were known, when the plan was made."""
        return 0 if self.memory.advisor is None else self.memory.advisor.watch.open

    def _others_with(self, plan: Plan, trial: FrozenTrial, since: int) -> Sequence[FrozenTrial]:
        """The trials for which other processes planned the same meanwhile, which may have begun, or ended.

        All write their plan before they look: of two that have the same, one at least sees the other's.
        ``since``: from which number on there may be such trials.
        """
        memory = self.memory
        configuration, trials = plan.to_document()["configuration"], trials_of(self.study)
        memory.look_again(trials)
        others = (t for t in trials[since:] if planned_for(t) == configuration)
        return [other for other in others if other.number not in (trial.number, *memory.abandoned)]

    # -- the space

    def _translation(
        self, trials: Sequence[FrozenTrial], search_space: Mapping[str, BaseDistribution]
    ) -> Translation | None:
        """Between ``search_space`` and the space that was given or is known from ``trials``, if any is."""
        if self.given is not None:
            return self.given
        memory, found = self.memory, self.memory.learned(trials)
        if found is None:
            return None
        self._warn_of_strangers(found)
        if search_space.keys() == found.distributions.keys():
            return found
        # A sampler around this one decides the others.
        if memory.limited is None or memory.limited[:2] != (found, search_space.keys()):
            memory.limited = (found, search_space.keys(), found.limited_to(search_space, self.rules))
        return memory.limited[2]

    def _warn_of_strangers(self, found: InferredSpace) -> None:
        if self.memory.warned:
            return
        self.memory.warned = True
        known = set(found.called.values())
        for text in doubtful(found.called, {name for rule in self.rules for name in rule.knobs}):
            warn(text)
        for rule in self.rules:
            for name in sorted(rule.knobs - known):
                hint = nearest(name, known)
                text = f"the constraint {rule.text!r} speaks of {name!r}, which no trial has asked for yet"
                warn(f"{text}. {hint}" if hint else text)
