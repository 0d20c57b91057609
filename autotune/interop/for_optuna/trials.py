"""What a strategy learns from a trial of an Optuna study."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import optuna
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from autotune.errors import Problem, nearest
from autotune.interop.curves import curve, thinned
from autotune.interop.for_optuna.warn import warn
from autotune.search.contract import Observation
from autotune.space.configuration import Configuration
from autotune.space.spec import MetricSpec
from autotune.status import Status

STATUS_ATTR = "autotune.status"
"""A user attribute that says how a trial ended, in the words of :class:`~autotune.status.Status`: for an
objective that knows better than 'failed'. ``lost`` says that nothing was learned of the configuration."""

PRUNED_ATTR = "autotune.pruned"
"""The system attribute of a trial that the sampler ended before it was run, with the reason."""

_CONSTRAINTS = "constraints"
"""The system attribute in which Optuna keeps what a sampler's ``constraints_func`` returned."""


class Watch:
    """Sees which trials of a study have finished since it last looked."""

    def __init__(self) -> None:
        self.open = 0
        """All trials with a lower number have finished."""
        self._beyond: set[int] = set()

    def news(self, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        """Those of ``trials``, which are in the order of their numbers, that have finished, each once."""
        found = [t for t in trials[self.open :] if t.state.is_finished() and t.number not in self._beyond]
        self._beyond.update(trial.number for trial in found)
        while self.open in self._beyond:
            self._beyond.remove(self.open)
            self.open += 1
        return found


def fixed_params(trial: FrozenTrial) -> Mapping[str, object]:
    """What an enqueued trial was given."""
    fixed: Mapping[str, object] = trial.system_attrs.get("fixed_params", {})
    return fixed


def metrics_of(study: optuna.Study) -> tuple[MetricSpec, ...]:
    """A metric a direction: ``value``, or ``value_0``, ``value_1`` ... where there are several."""
    directions = study.directions
    names = ["value"] if len(directions) == 1 else [f"value_{i}" for i in range(len(directions))]
    return tuple(
        MetricSpec(name, "maximize" if direction is StudyDirection.MAXIMIZE else "minimize")
        for name, direction in zip(names, directions, strict=True)
    )


def bounds_of(names: Iterable[str]) -> tuple[MetricSpec, ...]:
    """A metric for each of Optuna's constraints of these names, which holds at 0 and below."""
    return tuple(MetricSpec(_metric(name), at_most=0.0) for name in sorted(names))


def _metric(constraint: str) -> str:
    return f"constraint {constraint}"


def steps(trial: FrozenTrial) -> int:
    """How far the trial reported, counted from 1; 0 where it reported nothing."""
    return 0 if trial.last_step is None else trial.last_step + 1


def observation(
    trial: FrozenTrial, configuration: Configuration, metrics: Sequence[MetricSpec], longest: int
) -> Observation:
    """A finished trial as an outcome; ``longest`` is the last of all trials' :func:`steps`.

    How long it took is left out: it differs from run to run, and a seeded study shall not.
    """
    status = status_of(trial)
    limits = {_metric(name): value for name, value in constraints_of(trial).items()}
    values = dict(limits)
    has_goals = trial.values is not None and len(trial.values) == len(metrics)
    if has_goals:
        values |= {metric.name: value for metric, value in zip(metrics, trial.values, strict=True)}
    if status.failed or not has_goals:
        # What a pruned trial reported last is no final value.
        measured = limits if trial.state is TrialState.PRUNED and steps(trial) < longest else values
        return Observation(configuration, status, bounded=measured if status is Status.WRONG else {})
    if not trial.intermediate_values:
        return Observation(configuration, status, values)
    early = status is Status.PRUNED and steps(trial) < longest
    reported = thinned(trial.intermediate_values)
    return Observation(
        configuration,
        status,
        values,
        fraction=steps(trial) / longest if early else 1.0,
        curve=curve({step + 1: value for step, value in reported.items()}, longest),
    )


def status_of(trial: FrozenTrial) -> Status:
    """How a finished trial ended. One that violates a constraint of the study's is ``wrong``; one with an
    infinite value, which Optuna takes for a number, has ``diverged``, and so has one that was pruned after
    it had reported what is no number.

    One that was pruned before it had reported anything is ``infeasible``: it has no value to learn from,
    and says that its configuration is not to be run. With several directions Optuna takes no reports.
    """
    said = _said(trial)
    if said is not None:
        return said
    if trial.state is TrialState.FAIL:
        return Status.CRASHED
    if any(value > 0.0 for value in constraints_of(trial).values()):
        return Status.WRONG
    if trial.values is not None and not all(map(math.isfinite, trial.values)):
        return Status.DIVERGED
    if trial.state is not TrialState.PRUNED:
        return Status.OK
    if trial.values is not None or PRUNED_ATTR in trial.system_attrs:
        return Status.PRUNED
    return Status.DIVERGED if trial.intermediate_values else Status.INFEASIBLE


def _said(trial: FrozenTrial) -> Status | None:
    """What the trial's attribute says. One that says nothing known counts as absent, with a warning: it is
    in the study for good, which must go on all the same."""
    said = trial.user_attrs.get(STATUS_ATTR)
    known = [str(s) for s in Status if s.finished or s is Status.LOST]
    if said is None or said in known:
        return None if said is None else Status(said)
    message = f"the trial {trial.number} has {STATUS_ATTR} = {said!r}, which is no way to end: it is left out"
    problem = Problem(message, expected=f"one of {', '.join(known)}", hint=nearest(str(said), known))
    warn(str(problem))
    return None


def constraints_of(trial: FrozenTrial) -> dict[str, float]:
    """Optuna's constraints by name: violated above 0. Before version 5 they are only in an attribute."""
    if hasattr(trial, "constraints"):
        return dict(trial.constraints)
    return {str(i): value for i, value in enumerate(trial.system_attrs.get(_CONSTRAINTS) or ())}


def note_constraints(study: optuna.Study, trial: FrozenTrial, values: Sequence[float]) -> None:
    """Store them with the trial as Optuna's own samplers do. Raises ``ValueError`` for what is no number."""
    numbers = tuple(map(float, values))
    if any(map(math.isnan, numbers)):
        raise ValueError(f"a constraint of trial {trial.number} is not a number: {numbers}")
    study._storage.set_trial_system_attr(trial._trial_id, _CONSTRAINTS, numbers)
