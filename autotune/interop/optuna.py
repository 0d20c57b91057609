"""Any strategy as a sampler for an Optuna study.

::

    sampler = AutotuneSampler(seed=0, constraints=["tile_m * tile_n <= 4096"])
    study = optuna.create_study(sampler=sampler)
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState

from autotune.errors import InputError, nearest
from autotune.interop.arguments import Engine, rules_of, spec_of
from autotune.interop.for_optuna.advisor import PLAN_ATTR, Advisor, Plan, planned_for
from autotune.interop.for_optuna.draws import SoFar, draw
from autotune.interop.for_optuna.given import GivenSpace, suggest
from autotune.interop.for_optuna.inference import DefineByRun, InferredSpace
from autotune.interop.for_optuna.translation import Translation, UnplannedError
from autotune.interop.for_optuna.trials import STATUS_ATTR, Watch, metrics_of, note_constraints
from autotune.interop.for_optuna.warn import warn
from autotune.interop.names import doubtful
from autotune.search.contract import Option
from autotune.space.configuration import Configuration, Value
from autotune.space.space import Space
from autotune.space.spec import StudySpec

__all__ = ["STATUS_ATTR", "AutotuneSampler", "suggest"]

REPLANS = 16
"""How often a trial is planned anew where other processes were quicker."""

log = logging.getLogger(__name__)


class AutotuneSampler(BaseSampler):
    """Lets a strategy (``autotune search --help`` lists them) propose the trials of a study.

    ``space`` is a :class:`~autotune.space.space.Space`, or the path of a space.yaml: then its constraints,
    conditions and defaults hold from the first trial on. The study's code asks for the knobs by their names,
    or calls :func:`suggest`. Without it the space is what the study's finished trials asked for, with the
    conditions that explain why some did not ask for everything; ``constraints`` are rules over the
    parameters (in whose names what is no letter or digit is ``_``; of two that come to the same the later
    ends with ``_2``). The first trial, and
    what nothing is known of yet, is drawn by Optuna's ``RandomSampler``, again where a constraint is
    violated. Of a range that was changed the newest is searched; of one that differs from trial to trial what
    holds all that were asked for, and what is planned is brought into the one that is.

    Complete and pruned trials teach their values, failed ones that they failed; ``STATUS_ATTR`` as a user
    attribute can say how. Of Optuna's own constraints (``constraints_func``, as other samplers take it, or
    ``trial.set_constraint``) it learns how far a trial is past them, or from them. Running trials are
    pending. A value outside of its range, which Optuna lets an enqueued trial have, teaches nothing.
    A configuration of a discrete space is not proposed twice; when all were tried, ``optimize``
    ends. Several directions are several metrics. What was planned, and why, is in each trial's
    ``system_attrs["autotune"]``.

    All that it knows follows from the study's trials, and all randomness from ``seed`` and a trial's number:
    a sequential study gives the same trials again, also when it is stopped and resumed with a new
    sampler of the same seed. Threads of one study may share a sampler; it can be pickled.

    Raises :class:`~autotune.errors.InputError` for bad arguments, and when a trial starts where no
    configuration is feasible.
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        strategy: str = "auto",
        space: Space | StudySpec | str | Path | None = None,
        constraints: Sequence[str] = (),
        options: Mapping[str, Option] | None = None,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
    ) -> None:
        if space is not None and constraints:
            raise InputError("both a space and constraints were given: put the constraints into the space")
        self._engine = Engine.of(strategy, seed, options)
        self._rules = rules_of(constraints)
        self._given = None if space is None else GivenSpace(_space(space))
        self._constraints_func = constraints_func
        self._lock = threading.RLock()
        self._memory: _Memory | None = None

    # -- what Optuna calls

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The parameters that trials so far show; empty where the space was given, which says it itself."""
        if self._given is not None:
            return {}
        with self._lock:
            found = self._remembered(study).learned(_trials(study))
            return {} if found is None else found.distributions

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Plan the trial. What is planned is handed out by :meth:`sample_independent`, which knows how the
        study asks for it; so this is always empty."""
        with self._lock:
            for _ in range(REPLANS):
                plan = self._plan(study, trial, search_space)
                self._remembered(study).planned(trial.number, plan)
                if plan is None:
                    break
                document = plan.to_document()
                study._storage.set_trial_system_attr(trial._trial_id, PLAN_ATTR, document)
                if not plan.new or not self._clashes(study, trial.number, document["configuration"]):
                    break
                self._remembered(study).advisor = None  # it takes for tried what we just gave up
        return {}

    def _clashes(self, study: optuna.Study, number: int, configuration: Mapping[str, Value]) -> bool:
        """Whether another process planned the same meanwhile, which may have begun.

        All write their plan before they look: of two that have the same, one at least sees the other's.
        """
        advisor = self._remembered(study).advisor
        since = 0 if advisor is None else advisor.watch.open
        others = (t for t in _trials(study)[since:] if t.number != number)
        return any(planned_for(other) == configuration for other in others)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """The parameter as planned, or drawn at random where it is not part of the plan."""
        with self._lock:
            plan = self._remembered(study).plan_for(trial)
        if plan is not None:
            translation, configuration = plan
            with suppress(UnplannedError):
                return translation.param(configuration, param_name, param_distribution)
        return self._drawn(study, trial, param_name, param_distribution)

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Note the trial's constraints, and end the study where everything was tried."""
        if self._constraints_func is not None and state in (TrialState.COMPLETE, TrialState.PRUNED):
            note_constraints(study, trial, self._constraints_func(trial))
        with self._lock:
            memory = self._remembered(study)
            memory.plans.pop(trial.number, None)
            if memory.advisor is None or not memory.advisor.exhausted_by(trial):
                return
            if any(other.state is TrialState.WAITING for other in _trials(study)):
                return
        try:
            study.stop()
        except RuntimeError:  # the caller asks and tells, and ends when he likes
            return
        log.info("every configuration of the space was tried: the study ends")

    def reseed_rng(self) -> None:
        """Nothing: no two trials of a study share random numbers, whoever runs them."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None, "_memory": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    # -- how

    def _remembered(self, study: optuna.Study) -> _Memory:
        memory = self._memory
        if memory is None or memory.storage is not study._storage or memory.study_id != study._study_id:
            memory = self._memory = _Memory(study._storage, study._study_id, DefineByRun(self._rules))
        return memory

    def _plan(
        self, study: optuna.Study, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]
    ) -> Plan | None:
        memory, trials = self._remembered(study), _trials(study)
        translation: Translation | None = self._given
        if self._given is None:
            translation = self._inferred(memory, trials, search_space)
        if translation is None:
            return None
        if memory.advisor is None or memory.advisor.translation is not translation:
            memory.advisor = Advisor(translation, metrics_of(study), self._engine)
        memory.advisor.catch_up(trials, trial.number)
        return memory.advisor.plan(trial.number, trial.system_attrs.get("fixed_params", {}))

    def _inferred(
        self, memory: _Memory, trials: Sequence[FrozenTrial], search_space: Mapping[str, BaseDistribution]
    ) -> InferredSpace | None:
        found = memory.learned(trials)
        if found is None:
            return None
        self._warn_of_strangers(memory, found)
        if search_space.keys() == found.distributions.keys():
            return found
        # A sampler around this one decides the others.
        if memory.limited is None or memory.limited[:2] != (found, search_space.keys()):
            memory.limited = (found, search_space.keys(), found.limited_to(search_space, self._rules))
        return memory.limited[2]

    def _warn_of_strangers(self, memory: _Memory, found: InferredSpace) -> None:
        if memory.warned:
            return
        memory.warned = True
        known = set(found.called.values())
        for text in doubtful(found.called, {name for rule in self._rules for name in rule.knobs}):
            warn(text)
        for rule in self._rules:
            for name in sorted(rule.knobs - known):
                hint = nearest(name, known)
                text = f"the constraint {rule.text!r} speaks of {name!r}, which no trial has asked for yet"
                warn(f"{text}. {hint}" if hint else text)

    def _drawn(
        self, study: optuna.Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Any:
        """A random value, drawn again while it violates a constraint over what the trial has so far."""
        so_far = None
        if self._rules:  # which a space that was given has in itself
            with self._lock:
                called = self._remembered(study).define_by_run.called([*trial.distributions, name])
            so_far = SoFar.of(trial, name, distribution, self._rules, called)
        return draw(study, trial, name, distribution, self._engine.seed, so_far)


@dataclass
class _Memory:
    """What was worked out from one study's trials. It can be forgotten at any time."""

    storage: optuna.storages.BaseStorage
    study_id: int
    define_by_run: DefineByRun
    watch: Watch = field(default_factory=Watch)
    advisor: Advisor | None = None
    limited: tuple[InferredSpace, Any, InferredSpace | None] | None = None
    plans: dict[int, _Planned | None] = field(default_factory=dict)
    warned: bool = False

    def learned(self, trials: Sequence[FrozenTrial]) -> InferredSpace | None:
        for trial in self.watch.news(trials):
            self.define_by_run.learn(trial)
        return self.define_by_run.found

    def planned(self, number: int, plan: Plan | None) -> None:
        """Keep the plan with the space it was made for: other threads may find a new one meanwhile."""
        self.plans[number] = None
        if plan is not None and self.advisor is not None:
            self.plans[number] = (self.advisor.translation, plan.configuration)

    def plan_for(self, trial: FrozenTrial) -> _Planned | None:
        if trial.number not in self.plans and self.advisor is not None:  # planned by another process
            translation = self.advisor.translation
            configuration = translation.configuration({}, planned_for(trial))
            self.plans[trial.number] = None if configuration is None else (translation, configuration)
        return self.plans.get(trial.number)


_Planned = tuple[Translation, Configuration]


def _trials(study: optuna.Study) -> list[FrozenTrial]:
    """All trials in the order of their numbers; a pruner may have filtered those that the study shows."""
    return study._storage.get_all_trials(study._study_id, deepcopy=False)


def _space(space: Space | StudySpec | str | Path) -> Space:
    return space if isinstance(space, Space) else spec_of(space).space
