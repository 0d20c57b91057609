"""What a strategy learns from a trial of an Optuna study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import optuna
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from autotune.errors import InputError, Problem, nearest
from autotune.search.contract import Observation
from autotune.space.configuration import Configuration
from autotune.space.spec import MetricSpec
from autotune.status import Status

STATUS_ATTR = "autotune.status"
"""A user attribute that says how a trial ended, in the words of :class:`~autotune.status.Status`: for an
objective that knows better than 'failed'. ``lost`` says that nothing was learned of the configuration."""


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


def metrics_of(study: optuna.Study) -> tuple[MetricSpec, ...]:
    """A metric a direction: ``value``, or ``value_0``, ``value_1`` ... where there are several."""
    directions = study.directions
    names = ["value"] if len(directions) == 1 else [f"value_{i}" for i in range(len(directions))]
    return tuple(
        MetricSpec(name, "maximize" if direction is StudyDirection.MAXIMIZE else "minimize")
        for name, direction in zip(names, directions, strict=True)
    )


def observation(
    trial: FrozenTrial, configuration: Configuration, metrics: Sequence[MetricSpec]
) -> Observation:
    """A finished trial as an outcome.

    How long it took is left out: it differs from run to run, and a seeded study shall not.
    """
    status = status_of(trial)
    values: Mapping[str, float] = {}
    if not status.failed and trial.values is not None and len(trial.values) == len(metrics):
        values = {metric.name: value for metric, value in zip(metrics, trial.values, strict=True)}
    return Observation(configuration, status, values)


def status_of(trial: FrozenTrial) -> Status:
    """How a finished trial ended. One that violates a constraint of the study's is ``wrong``."""
    said = trial.user_attrs.get(STATUS_ATTR)
    if said is not None:
        return _said(str(said), trial.number)
    if trial.state is TrialState.FAIL:
        return Status.CRASHED
    if any(value > 0.0 for value in _constraints(trial)):
        return Status.WRONG
    return Status.PRUNED if trial.state is TrialState.PRUNED else Status.OK


def _said(text: str, number: int) -> Status:
    known = [str(s) for s in Status if s.finished or s is Status.LOST]
    if text not in known:
        message = f"the trial {number} has {STATUS_ATTR} = {text!r}, which is no way to end"
        raise InputError(Problem(message, expected=f"one of {', '.join(known)}", hint=nearest(text, known)))
    return Status(text)


def _constraints(trial: FrozenTrial) -> Sequence[float]:
    """Optuna's constraints: violated above 0. Before version 5 they are only in an attribute."""
    if hasattr(trial, "constraints"):
        return tuple(trial.constraints.values())
    return tuple(trial.system_attrs.get("constraints") or ())
