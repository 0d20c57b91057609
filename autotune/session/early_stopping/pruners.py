"""Optuna's pruners as rules: each report is passed to the pruner, in a study of Optuna's.

That study is in memory; every session makes it again from the store.
"""

from __future__ import annotations

import inspect
from typing import Any

import optuna

from autotune.search.quiet import quiet
from autotune.session.early_stopping.rules import GO, Decision, Rule, Verdict, say_steps
from autotune.space.spec import EarlyStopping, MetricSpec

_NAMES = {
    "optuna-median": "MedianPruner",
    "optuna-percentile": "PercentilePruner",
    "optuna-successive-halving": "SuccessiveHalvingPruner",
    "optuna-hyperband": "HyperbandPruner",
    "optuna-patient": "PatientPruner",
    "optuna-wilcoxon": "WilcoxonPruner",
    "optuna-threshold": "ThresholdPruner",
}

_REQUIRED = {"percentile": 25.0, "patience": 3}
"""Defaults for options for which Optuna has none."""


def make_pruner(settings: EarlyStopping, name: str = "") -> optuna.pruners.BasePruner:
    """The pruner called ``name`` (default: the policy of ``settings``), with those settings that it knows."""
    name = name or settings.policy
    kind = getattr(optuna.pruners, _NAMES[name])
    known = inspect.signature(kind).parameters
    ours: dict[str, Any] = {
        "min_resource": settings.min,
        "max_resource": settings.max,
        "reduction_factor": settings.factor,
        **_REQUIRED,
        **settings.options,
    }
    if name == "optuna-patient":
        ours["wrapped_pruner"] = make_pruner(settings, str(settings.options.get("wrapped", "optuna-median")))
    with quiet("optuna"):
        pruner: optuna.pruners.BasePruner = kind(
            **{key: value for key, value in ours.items() if key in known}
        )
    return pruner


class OptunaRule(Rule):
    """Stops a trial if the pruner would; the pruner sees values in the metric's own direction."""

    def __init__(self, settings: EarlyStopping, metric: MetricSpec) -> None:
        self._settings = settings
        self._sign = metric.sign
        with quiet("optuna"):
            self._study = optuna.create_study(
                study_name="autotune",  # Hyperband's pruner assigns brackets by a hash of this name
                direction=metric.direction,
                sampler=optuna.samplers.RandomSampler(seed=0),
                pruner=make_pruner(settings),
            )
        self._trials: list[optuna.Trial] = []
        self._reported: dict[int, int] = {}
        self._pruned: dict[int, bool] = {}

    def decide_at(self, number: int) -> None:
        return None

    def joined(self, number: int) -> None:
        while len(self._trials) <= number:  # Optuna's number must be ours: a bracket depends on it
            self._trials.append(self._study.ask())

    def heard(self, number: int, step: int, value: float) -> None:
        self.joined(number)
        if step > self._reported.get(number, -1):
            self._reported[number] = step
            trial = self._trials[number]
            with quiet("optuna"):
                trial.report(self._sign * value, step)
                self._pruned[number] = trial.should_prune()
            if step >= self._settings.max and not self._pruned[number]:
                self.ended(number, value)  # of trials that another session runs, nobody says that they ended

    def decide(self, number: int, step: int) -> Decision:
        if not self._pruned.get(number) or step < self._settings.min:
            return GO
        return Decision(
            Verdict.STOP, f"{self._settings.policy} at {say_steps(step, self._settings.resource)}"
        )

    def ended(self, number: int, value: float | None) -> None:
        self.joined(number)
        state = optuna.trial.TrialState.PRUNED if value is None else optuna.trial.TrialState.COMPLETE
        with quiet("optuna"):
            self._study.tell(
                self._trials[number],
                None if value is None else self._sign * value,
                state=state,
                skip_if_finished=True,
            )
