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
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState

from autotune.errors import InputError, nearest
from autotune.interop.arguments import Engine, rules_of, spec_of
from autotune.interop.for_optuna.draws import SoFar, draw
from autotune.interop.for_optuna.given import GivenSpace, suggest
from autotune.interop.for_optuna.inference import DefineByRun
from autotune.interop.for_optuna.memory import Memory, Planned, trials_of
from autotune.interop.for_optuna.planning import Planning
from autotune.interop.for_optuna.translation import UnplannedError
from autotune.interop.for_optuna.trials import PRUNED_ATTR, STATUS_ATTR, fixed_params, note_constraints
from autotune.interop.for_optuna.warn import warn
from autotune.search.contract import Option
from autotune.space.space import Space
from autotune.space.spec import StudySpec

__all__ = ["STATUS_ATTR", "AutotuneSampler", "suggest"]

NOTHING_LEFT = "every configuration of the space was tried, or is being tried by another trial"
"""Why a trial is pruned that comes too late."""

log = logging.getLogger(__name__)


class AutotuneSampler(BaseSampler):
    """Lets a strategy (``autotune search --help`` lists them) propose the trials of a study.

    ``space`` is a :class:`~autotune.space.space.Space`, or the path of a space.yaml: then its constraints,
    conditions and defaults hold from the first trial on. The study's code asks for the knobs by their names,
    or calls :func:`suggest`. Without it the space is what the study's finished trials asked for, with the
    conditions that explain why some did not ask for everything; ``constraints`` are rules over the
    parameters (in whose names what is no letter or digit is ``_``; of two that come to the same the later
    ends with ``_2``). The first trial, and what nothing is known of yet, is drawn by Optuna's
    ``RandomSampler``, again where a constraint is violated; where none that was drawn keeps it, the trial is
    pruned before it is run. Of a range that was changed the newest is searched; of one that differs from
    trial to trial what holds all that were asked for, and what is planned is brought into the one that is.

    Complete and pruned trials teach their values, failed ones that they failed; ``STATUS_ATTR`` as a user
    attribute can say how. Of Optuna's own constraints (``constraints_func``, as other samplers take it, or
    ``trial.set_constraint``) it learns how far a trial is past them, or from them. Running trials are
    pending. A value outside of its range, which Optuna lets an enqueued trial have, teaches nothing.
    A configuration of a discrete space is not proposed twice, but where a trial that was already running
    when the study was first looked at is all that is left: its process may be gone. When all were tried,
    ``optimize`` ends; threads that come too late have their trials pruned. Several directions are several
    metrics. What was planned, and why, is in each trial's ``system_attrs["autotune"]``.

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
        self._memory: Memory | None = None

    # -- what Optuna calls

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The parameters that trials so far show; empty where the space was given, which says it itself."""
        if self._given is not None:
            return {}
        with self._lock:
            found = self._remembered(study).learned(trials_of(study))
            return {} if found is None else found.distributions

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Plan the trial. What is planned is handed out by :meth:`sample_independent`, which knows how the
        study asks for it; so this is always empty."""
        with self._lock:
            memory, planning = self._remembered(study), self._planning(study)
            memory.planned(trial.number, None)  # from now on it is known to be ours
            plan = planning.agreed(trial, search_space)
            nothing_new = (plan is None or not plan.new) and not fixed_params(trial)
            if nothing_new and planning.exhausted() and _stop(study):  # and the trial is not run
                study._storage.set_trial_system_attr(trial._trial_id, PRUNED_ATTR, NOTHING_LEFT)
                memory.superfluous.add(trial.number)
                return {}
            memory.planned(trial.number, plan)
            advisor = planning.exhausted()
            if advisor is not None and advisor.accompanied(trial.number):
                _stop(study)  # or else the others ask for trials that nothing is left for
        return {}

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """The parameter as planned, or drawn at random where it is not part of the plan.

        Raises ``optuna.TrialPruned`` within ``optimize`` where nothing is left to try, or where no value that
        was drawn keeps a constraint.
        """
        with self._lock:
            memory = self._remembered(study)
            if trial.number in memory.superfluous:
                raise optuna.TrialPruned(NOTHING_LEFT)
            self._warn_of_stranger(memory, param_name)
            plan, so_far = memory.plan_for(trial), self._so_far(study, trial, param_name, param_distribution)
            refused = self._refusal(study, trial, param_name, plan, so_far)
            if plan is not None:
                translation, configuration = plan
                with suppress(UnplannedError):
                    param = translation.param(configuration, param_name, param_distribution)
                    if not refused(param):
                        return param
            return self._drawn(study, trial, param_name, param_distribution, so_far, refused)

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Note the trial's constraints, and end the study where everything was tried."""
        ran = PRUNED_ATTR not in trial.system_attrs
        if self._constraints_func is not None and ran and state in (TrialState.COMPLETE, TrialState.PRUNED):
            note_constraints(study, trial, self._constraints_func(trial))
        with self._lock:
            memory = self._remembered(study)
            if trial.number not in memory.plans:  # Optuna asks for none where each range has a single value
                with suppress(InputError):  # what is wrong is said to a trial that starts
                    self._planning(study).informed(trial, self.infer_relative_search_space(study, trial))
            memory.ended(trial.number)
            if ran and memory.advisor is not None and memory.advisor.exhausted_by(trial):
                _stop(study)

    def reseed_rng(self) -> None:
        """Nothing: no two trials of a study share random numbers, whoever runs them."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None, "_memory": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    # -- how

    def _remembered(self, study: optuna.Study) -> Memory:
        memory = self._memory
        if memory is None or memory.storage is not study._storage or memory.study_id != study._study_id:
            memory = self._memory = Memory.of(study, DefineByRun(self._rules))
        return memory

    def _warn_of_stranger(self, memory: Memory, name: str) -> None:
        """Once of each: it may be a knob's name with a slip, and then that knob is not searched."""
        if self._given is None or name in self._given.names or name in memory.strangers:
            return
        memory.strangers.add(name)
        hint = nearest(name, sorted(self._given.names))
        text = f"the space has no knob {name!r}, which is drawn at random"
        warn(f"{text}. {hint}" if hint else text)

    def _planning(self, study: optuna.Study) -> Planning:
        return Planning(study, self._remembered(study), self._engine, self._given, self._rules)

    def _so_far(
        self, study: optuna.Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> SoFar | None:
        """What the trial has with the parameter; ``None`` where no constraint speaks of it."""
        if not self._rules:  # as with a space that was given, which has them in itself
            return None
        called = self._remembered(study).define_by_run.called([*trial.distributions, name])
        if not any(called[name] in rule.knobs for rule in self._rules):
            return None
        return SoFar.of(trial, name, distribution, self._rules, called)

    def _refusal(
        self, study: optuna.Study, trial: FrozenTrial, name: str, plan: Planned | None, so_far: SoFar | None
    ) -> Callable[[Any], bool]:
        """Which values of a parameter are not to be handed out: what breaks a constraint, and what makes the
        trial the same as another one, unless it was planned, and so compared, as it is."""
        memory = self._remembered(study)
        compared = plan is not None and not plan[0].adapts(name)
        others = [] if compared or fixed_params(trial) else trials_of(study)

        def refused(param: Any) -> bool:
            params = {**trial.params, name: param}
            if so_far is not None and so_far.violated(params) is not None:
                return True
            return bool(others) and memory.repeats(others, trial.number, params)

        return refused

    def _drawn(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        name: str,
        distribution: BaseDistribution,
        so_far: SoFar | None,
        refused: Callable[[Any], bool],
    ) -> Any:
        """A random value; the trial is pruned where it breaks a constraint, unless it was enqueued."""
        memory = self._remembered(study)
        param = draw(study, trial, name, distribution, self._engine.seed, refused)
        params = {**trial.params, name: param}
        if memory.plans.get(trial.number) is None:
            memory.drawn[trial.number] = params
        broken = None if so_far is None or fixed_params(trial) else so_far.violated(params)
        if so_far is not None and broken is not None:
            _break_off(study, trial, name, distribution, param, so_far.said(broken, params, name))
        return param


def _break_off(
    study: optuna.Study, trial: FrozenTrial, name: str, distribution: BaseDistribution, param: Any, why: str
) -> None:
    """Prune a trial that cannot keep a constraint, with the parameter that it breaks it by: so the next trial
    knows all that the constraint speaks of."""
    if not _in_optimize(study):
        warn(f"trial {trial.number}: {why}. It breaks it, as nothing catches a TrialPruned outside optimize")
        return
    internal = distribution.to_internal_repr(param)
    study._storage.set_trial_param(trial._trial_id, name, internal, distribution)
    study._storage.set_trial_system_attr(trial._trial_id, PRUNED_ATTR, why)
    raise optuna.TrialPruned(why)


def _in_optimize(study: optuna.Study) -> bool:
    return bool(study._thread_local.in_optimize_loop)


def _stop(study: optuna.Study) -> bool:
    """End the study where everything was tried, unless there is more to run or the caller asks and tells, and
    ends when he likes: whether it was ended."""
    if not _in_optimize(study) or any(trial.state is TrialState.WAITING for trial in trials_of(study)):
        return False
    if not study._stop_flag:
        study.stop()
        log.info("every configuration of the space was tried: the study ends")
    return True


def _space(space: Space | StudySpec | str | Path) -> Space:
    return space if isinstance(space, Space) else spec_of(space).space
