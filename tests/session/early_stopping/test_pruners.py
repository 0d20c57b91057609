"""Optuna's pruners as rules: they decide as they do in Optuna, and the same when told the record again."""

from __future__ import annotations

import inspect
import random

import optuna
import pytest

from autotune.session.early_stopping.pruners import OptunaRule, make_pruner
from autotune.session.early_stopping.rules import Verdict
from autotune.session.early_stopping.stopping import make_rule
from autotune.space.reading.early_stopping import PRUNERS
from autotune.space.spec import EarlyStopping, MetricSpec

LOSS = MetricSpec("loss", "minimize")
OPTIONS = {"optuna-threshold": {"upper": 0.9}, "optuna-patient": {"patience": 1, "wrapped": "optuna-median"}}
"""For those that need some."""


def settings(policy: str, **options: float | int | str | bool) -> EarlyStopping:
    return EarlyStopping(max=27, policy=policy, resource="epochs", options=options)


def curves(n: int = 30, seed: int = 1) -> list[list[float]]:
    order = random.Random(seed)
    ends = [order.random() for _ in range(n)]
    return [[end + order.random() / step for step in range(1, 28)] for end in ends]


def play(rule: OptunaRule, told: list[list[float]]) -> list[int]:
    """At which step each trial was stopped, 27 where it was not; one trial after the other."""
    stops = []
    for number, curve in enumerate(told):
        rule.joined(number)
        for step, loss in enumerate(curve, 1):
            rule.heard(number, step, loss)
            if rule.decide(number, step).verdict is Verdict.STOP:
                rule.ended(number, None)
                break
        else:
            rule.ended(number, curve[-1])
        stops.append(step)
    return stops


@pytest.mark.parametrize("policy", PRUNERS)
def test_it_stops_where_optuna_would(policy: str) -> None:
    chosen = settings(policy, **OPTIONS.get(policy, {}))
    study = optuna.create_study(study_name="autotune", pruner=make_pruner(chosen))

    def objective(trial: optuna.Trial) -> float:
        for step, loss in enumerate(told[trial.number], 1):
            trial.report(loss, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return told[trial.number][-1]

    told = curves()
    study.optimize(objective, n_trials=len(told))
    assert play(OptunaRule(chosen, LOSS), told) == [max(t.intermediate_values) for t in study.trials]


@pytest.mark.parametrize("policy", [p for p in PRUNERS if p != "optuna-patient"])
def test_it_stops_something_and_not_all(policy: str) -> None:
    stops = play(OptunaRule(settings(policy, **OPTIONS.get(policy, {})), LOSS), curves())
    assert 27 in stops and min(stops) < 27


def test_what_another_session_has_completed_counts_as_complete() -> None:
    """Its reports come from the store while both run, and the median is that of complete trials."""
    rule = OptunaRule(settings("optuna-median"), LOSS)
    for number in range(6):
        for step in range(1, 28):
            rule.heard(number, step, 0.1)
    rule.joined(6)
    rule.heard(6, 1, 0.9)
    assert rule.decide(6, 1).verdict is Verdict.STOP


@pytest.mark.parametrize("policy", ["optuna-successive-halving", "optuna-hyperband", "optuna-wilcoxon"])
def test_a_rule_that_is_told_the_record_decides_the_same(policy: str) -> None:
    told = curves()
    live = OptunaRule(settings(policy), LOSS)
    stops = play(live, told[:20])
    resumed = OptunaRule(settings(policy), LOSS)
    for number in range(20):
        resumed.joined(number)
    for number, stop in enumerate(stops):
        for step in range(1, stop + 1):
            resumed.heard(number, step, told[number][step - 1])
    for number, stop in enumerate(stops):
        resumed.ended(number, told[number][-1] if stop == 27 else None)
    for number in range(20, 30):
        for rule in (live, resumed):
            rule.joined(number)
        for step, loss in enumerate(told[number], 1):
            for rule in (live, resumed):
                rule.heard(number, step, loss)
            assert live.decide(number, step) == resumed.decide(number, step)


def test_what_is_maximised_is_told_in_its_own_direction() -> None:
    rule = OptunaRule(settings("optuna-threshold", lower=0.5), MetricSpec("accuracy", "maximize"))
    for number, accuracy in enumerate((0.6, 0.4)):
        rule.heard(number, 1, -accuracy)
    assert [rule.decide(number, 1).verdict for number in (0, 1)] == [Verdict.GO, Verdict.STOP]


def test_nobody_is_stopped_before_min() -> None:
    rule = OptunaRule(EarlyStopping(max=27, min=3, policy="optuna-threshold", options={"upper": 0.5}), LOSS)
    for step in (1, 2, 3):
        rule.heard(0, step, 0.9)
        assert (rule.decide(0, step).verdict is Verdict.STOP) == (step == 3)


@pytest.mark.parametrize("policy", PRUNERS)
def test_the_options_that_are_read_are_those_of_optuna(policy: str) -> None:
    kind = type(make_pruner(settings(policy, **OPTIONS.get(policy, {}))))
    known = set(inspect.signature(kind).parameters)
    given = {"min_resource", "max_resource", "reduction_factor", "wrapped_pruner"}
    assert set(PRUNERS[policy]) - {"wrapped"} == known - given


def test_a_wrapped_pruner_has_its_own_options() -> None:
    chosen = settings("optuna-patient", patience=2, wrapped="optuna-percentile", percentile=10.0)
    pruner = make_pruner(chosen)
    assert isinstance(pruner, optuna.pruners.PatientPruner) and pruner._patience == 2
    assert isinstance(pruner._wrapped_pruner, optuna.pruners.PercentilePruner)
    assert pruner._wrapped_pruner._percentile == 10.0


def test_options_for_which_optuna_has_no_default_have_the_documented_one() -> None:
    pruner = make_pruner(settings("optuna-patient", wrapped="optuna-percentile"))
    assert isinstance(pruner, optuna.pruners.PatientPruner) and pruner._patience == 3
    assert isinstance(pruner._wrapped_pruner, optuna.pruners.PercentilePruner)
    assert pruner._wrapped_pruner._percentile == 25.0


def test_a_trial_that_begins_again_is_not_judged_by_what_it_reports_a_second_time() -> None:
    """It is the same curve, and those that came meanwhile are better."""
    rule = OptunaRule(settings("optuna-median", n_startup_trials=1), LOSS)
    for number, losses in enumerate(([0.5] * 4, [0.4] * 3, [0.1] * 4)):
        for step, loss in enumerate(losses, 1):
            rule.heard(number, step, loss)
        if number != 1:
            rule.ended(number, losses[-1])
    for step in (1, 2, 3):
        rule.heard(1, step, 0.4)
        assert rule.decide(1, step).verdict is Verdict.GO
    rule.heard(1, 4, 0.4)
    assert rule.decide(1, 4).verdict is Verdict.STOP


def test_policies_by_name() -> None:
    assert isinstance(make_rule(settings("optuna-median"), LOSS), OptunaRule)
    assert not make_rule(settings("none"), LOSS).pauses and make_rule(settings("hyperband"), LOSS).pauses
