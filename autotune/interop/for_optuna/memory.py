"""What a sampler for Optuna remembers of the study that it serves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import optuna
from optuna.trial import FrozenTrial, TrialState

from autotune.interop.for_optuna.advisor import Advisor, Plan, planned_for
from autotune.interop.for_optuna.inference import DefineByRun, InferredSpace
from autotune.interop.for_optuna.translation import Translation
from autotune.interop.for_optuna.trials import Watch, steps
from autotune.space.configuration import Configuration, Value

Planned: TypeAlias = tuple[Translation, Configuration]

Progress: TypeAlias = tuple[Mapping[str, Value] | None, Mapping[str, Any], int]
"""How far a trial has come: what was planned for it, the parameters that it asked for, what it reported."""


@dataclass
class Memory:
    """What was worked out from one study's trials, and the trials that this process has under way.

    It can be forgotten at any time, at worst for a repeated trial at the end of a discrete space.
    """

    storage: optuna.storages.BaseStorage
    study_id: int
    define_by_run: DefineByRun
    abandoned: dict[int, Progress] = field(default_factory=dict)
    """Trials that ran already when the study was first looked at, are none of this process and have not
    changed since: they are slow, or their process is gone."""
    watch: Watch = field(default_factory=Watch)
    advisor: Advisor | None = None
    limited: tuple[InferredSpace, Any, InferredSpace | None] | None = None
    plans: dict[int, Planned | None] = field(default_factory=dict)
    drawn: dict[int, dict[str, Any]] = field(default_factory=dict)
    """What was handed to trials without a plan; a storage has it a moment later."""
    superfluous: set[int] = field(default_factory=set)
    """Trials for which nothing was left."""
    warned: bool = False
    strangers: set[str] = field(default_factory=set)
    """Parameters that were warned of, as the space that was given has no such knob."""

    @classmethod
    def of(cls, study: optuna.Study, define_by_run: DefineByRun) -> Memory:
        running = {t.number: progress(t) for t in trials_of(study) if t.state is TrialState.RUNNING}
        return cls(study._storage, study._study_id, define_by_run, running)

    def learned(self, trials: Sequence[FrozenTrial]) -> InferredSpace | None:
        for trial in self.watch.news(trials):
            self.define_by_run.learn(trial)
        return self.define_by_run.found

    def look_again(self, trials: Sequence[FrozenTrial]) -> None:
        """A trial that went on since the study was first looked at has a process."""
        for number, then in [*self.abandoned.items()]:
            if progress(trials[number]) != then:
                del self.abandoned[number]

    def planned(self, number: int, plan: Plan | None) -> None:
        """Keep the plan with the space it was made for: other threads may find a new one meanwhile."""
        self.abandoned.pop(number, None)
        self.plans[number] = None
        if plan is not None and self.advisor is not None:
            self.plans[number] = (self.advisor.translation, plan.configuration)

    def plan_for(self, trial: FrozenTrial) -> Planned | None:
        if trial.number not in self.plans and self.advisor is not None:  # planned by another process
            translation = self.advisor.translation
            configuration = translation.configuration({}, planned_for(trial))
            self.plans[trial.number] = None if configuration is None else (translation, configuration)
        return self.plans.get(trial.number)

    def ended(self, number: int) -> None:
        self.plans.pop(number, None)
        self.drawn.pop(number, None)
        self.superfluous.discard(number)

    def repeats(self, trials: Sequence[FrozenTrial], number: int, params: Mapping[str, Any]) -> bool:
        """Whether another trial has these parameters and no others, or is planned to."""
        plans = (plan for other, plan in self.plans.items() if other != number and plan is not None)
        if any(translation.values(params) == configuration for translation, configuration in plans):
            return True
        drawn = ({**t.params, **self.drawn.get(t.number, {})} for t in trials if t.number != number)
        return any(other == params for other in drawn)


def progress(trial: FrozenTrial) -> Progress:
    return planned_for(trial), dict(trial.params), steps(trial)


def trials_of(study: optuna.Study) -> list[FrozenTrial]:
    """All trials in the order of their numbers; a pruner may have filtered those that the study shows."""
    return study._storage.get_all_trials(study._study_id, deepcopy=False)
