"""A space found in the trials of a study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial, TrialState, create_trial

from autotune.interop.for_optuna.inference import DefineByRun, InferredSpace, infer
from autotune.interop.for_optuna.parameters import Parameter
from autotune.space.knobs import Choice, FloatRange, IntegerRange, OrderedValues
from autotune.space.knobs.knob import Knob
from autotune.space.language.rule import Rule

SOLVER = CategoricalDistribution(["direct", "iterative", "hybrid"])
DEPTH = IntDistribution(1, 8)
RATE = FloatDistribution(1e-4, 1.0, log=True)


def trial(state: TrialState = TrialState.COMPLETE, **asked: tuple[Any, BaseDistribution]) -> FrozenTrial:
    return create_trial(
        params={name: value for name, (value, _) in asked.items()},
        distributions={name: distribution for name, (_, distribution) in asked.items()},
        state=state,
        value=1.0 if state is TrialState.COMPLETE else None,
    )


def conditions(found: InferredSpace | None) -> Mapping[str, str]:
    assert found is not None
    return {knob.name: knob.when.text for knob in found.space.knobs if knob.when is not None}


def test_a_choice_explains_a_parameter_before_a_number_does() -> None:
    found = infer(
        [
            trial(solver=("direct", SOLVER), depth=(2, DEPTH)),
            trial(solver=("iterative", SOLVER), depth=(5, DEPTH), rate=(0.1, RATE)),
        ],
        [],
    )
    assert conditions(found) == {"rate": "(solver == 'iterative')"}


def test_a_limit_where_no_choice_explains_it() -> None:
    found = infer(
        [
            trial(solver=("direct", SOLVER), depth=(2, DEPTH)),
            trial(solver=("direct", SOLVER), depth=(5, DEPTH), rate=(0.1, RATE)),
            trial(solver=("iterative", SOLVER), depth=(7, DEPTH), rate=(0.2, RATE)),
        ],
        [],
    )
    assert conditions(found) == {"rate": "(depth >= 5)"}


def test_conditions_of_conditional_parameters() -> None:
    found = infer(
        [
            trial(solver=("direct", SOLVER)),
            trial(solver=("iterative", SOLVER), depth=(1, DEPTH)),
            trial(solver=("iterative", SOLVER), depth=(4, DEPTH), rate=(0.1, RATE)),
        ],
        [],
    )
    assert conditions(found) == {"depth": "(solver == 'iterative')", "rate": "(depth >= 4)"}


def test_what_nothing_explains_is_loose() -> None:
    found = infer(
        [
            trial(depth=(2, DEPTH), rate=(0.1, RATE)),
            trial(depth=(2, DEPTH)),
            trial(depth=(3, DEPTH), huge=(1, IntDistribution(0, 2**60))),
        ],
        [Rule.parse("depth < 9"), Rule.parse("rate * depth < 1")],
    )
    assert found is not None
    assert set(found.parameters) == {"depth"}
    assert found.loose == {"rate", "huge"}
    assert not found.whole
    assert [rule.text for rule in found.space.constraints] == ["depth < 9"]


def test_nothing_in_common_is_no_space() -> None:
    assert infer([trial(depth=(1, DEPTH)), trial(rate=(0.1, RATE))], []) is None


def test_failures_count_only_while_there_is_nothing_better() -> None:
    learner = DefineByRun([])
    learner.learn(trial(TrialState.FAIL, depth=(1, DEPTH)))
    learner.learn(trial(TrialState.FAIL, depth=(1, DEPTH), rate=(0.1, RATE)))
    learner.learn(trial(TrialState.FAIL))
    assert learner.found is not None
    assert set(learner.found.parameters) == {"depth", "rate"}
    learner.learn(trial(depth=(1, DEPTH)))
    learner.learn(trial(TrialState.FAIL, depth=(1, DEPTH), rate=(0.1, RATE)))
    assert set(learner.found.parameters) == {"depth"}


def test_what_explains_a_new_trial_is_kept() -> None:
    learner = DefineByRun([])
    learner.learn(trial(depth=(1, DEPTH)))
    first = learner.found
    learner.learn(trial(depth=(2, DEPTH)))
    assert learner.found is first
    learner.learn(trial(depth=(2, IntDistribution(1, 9))))
    assert learner.found is not first
    assert learner.found is not None
    assert learner.found.distributions == {"depth": IntDistribution(1, 9)}


def test_a_range_that_changed_once_is_the_new_one() -> None:
    """What older trials have in it counts, for conditions too; the others are left aside."""
    wide, narrow = IntDistribution(1, 9), IntDistribution(1, 4)
    old = [trial(depth=(n, wide)) for n in (8, 2, 3)]
    new = [trial(depth=(n, narrow), rate=(0.1, RATE)) for n in (4, 1)]
    found = infer([*old, *new[:1]], [])
    assert found is not None
    assert found.distributions == {"depth": narrow, "rate": RATE}
    assert found.whole
    assert conditions(found) == {"rate": "(depth >= 4)"}
    told = [found.configuration(one.params, complete=True) for one in old]
    assert told == [None, {"depth": 2}, {"depth": 3}]


def test_a_range_that_moves_is_the_widest() -> None:
    learner = DefineByRun([])
    for high in (3, 6, 5):
        learner.learn(trial(depth=(2, IntDistribution(1, high))))
    found = learner.found
    assert found is not None
    assert found.distributions == {"depth": IntDistribution(1, 6)}
    assert not found.whole
    learner.learn(trial(depth=(4, IntDistribution(1, 4))))
    assert learner.found is found
    planned = found.space.configuration({"depth": 6})
    assert [found.param(planned, "depth", IntDistribution(1, high)) for high in (4, 6, 8)] == [4, 6, 6]
    for _ in range(7):
        learner.learn(trial(depth=(4, IntDistribution(1, 4))))
    assert learner.found is found
    learner.learn(trial(depth=(4, IntDistribution(1, 4))))
    assert learner.found is not None
    assert learner.found.distributions == {"depth": IntDistribution(1, 4)}
    assert learner.found.whole


def test_a_parameter_that_was_added_is_searched_once_ten_trials_have_it() -> None:
    """It had been left out for good. What ran before the edit had some value that nobody knows."""
    old, new = trial(depth=(2, DEPTH)), trial(depth=(2, DEPTH), rate=(0.1, RATE))
    learner = DefineByRun([])
    for one in [*[old] * 4, *[new] * 9]:
        learner.learn(one)
    assert learner.found is not None
    assert learner.found.distributions == {"depth": DEPTH}
    learner.learn(new)
    assert learner.found.distributions == {"depth": DEPTH, "rate": RATE}
    assert learner.found.whole
    assert learner.found.configuration(old.params, {"depth": 2}, complete=True) is None
    learner.learn(old)  # so it was no edit
    assert learner.found.distributions == {"depth": DEPTH}


def test_a_value_outside_its_own_range_shows_nothing() -> None:
    """As Optuna takes one that was enqueued."""
    learner = DefineByRun([])
    outside = trial(depth=(1, DEPTH))
    outside.params["depth"] = 99
    learner.learn(outside)
    assert learner.found is None
    learner.learn(trial(depth=(2, DEPTH)))
    first = learner.found
    assert first is not None
    assert first.configuration(outside.params, {"depth": 2}, complete=True) is None
    learner.learn(outside)
    assert learner.found is first


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**16), count=st.integers(1, 12))
def test_it_explains_all_trials_that_it_was_found_in(seed: int, count: int) -> None:
    """A program whose conditions nest, run at random: no trial contradicts what was found."""

    def program(trial: optuna.Trial) -> float:
        solver = trial.suggest_categorical("solver", ["direct", "iterative", "hybrid"])
        if solver != "direct":
            depth = trial.suggest_int("depth", 1, 8)
            if depth > 3:
                trial.suggest_float("rate", 1e-4, 1.0, log=True)
        if trial.suggest_categorical("fused", [True, False]):
            trial.suggest_int("width", 1, 4)
        return 1.0

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    study.optimize(program, n_trials=count)
    optuna.logging.set_verbosity(verbosity)
    learner = DefineByRun([])
    for one in study.trials:
        learner.learn(one)
        found = learner.found
        assert found is not None
        assert {"solver", "fused"} <= set(found.parameters)
        for seen in study.trials[: one.number + 1]:
            assert found.explains(seen)
            configuration = found.configuration(seen.params)
            assert configuration is not None
            assert configuration in found.space
            for name, parameter in found.parameters.items():
                if parameter.knob.name in configuration:
                    distribution = parameter.distribution
                    assert found.param(configuration, name, distribution) == seen.params[name]


DISTRIBUTIONS = st.one_of(
    st.builds(lambda low, size: IntDistribution(low, low + size), st.integers(-9, 9), st.integers(0, 9)),
    st.builds(lambda size: IntDistribution(1, 1 + size, log=True), st.integers(0, 99)),
    st.builds(lambda n, step: IntDistribution(0, n * step, step=step), st.integers(0, 9), st.integers(1, 4)),
    st.builds(lambda low, size: FloatDistribution(low, low + size), st.floats(-9, 9), st.floats(0, 9)),
    st.builds(lambda size: FloatDistribution(1e-3, 1e-3 + size, log=True), st.floats(0, 9)),
    st.builds(
        lambda n, step: FloatDistribution(0.0, n * step, step=step),
        st.integers(1, 9),
        st.sampled_from([0.1, 0.25, 1e-3, 1e-9]),
    ),
    st.builds(
        lambda choices: CategoricalDistribution(choices),
        st.lists(st.sampled_from([None, True, False, 1, 2.5, "a", "None"]), min_size=1, unique=True),
    ),
)


@pytest.mark.filterwarnings("ignore:The distribution is specified")
@settings(deadline=None)
@given(distribution=DISTRIBUTIONS, seed=st.integers(0, 999))
def test_values_go_there_and_back(distribution: BaseDistribution, seed: int) -> None:
    parameter = Parameter.of("p", distribution)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    drawn = study.ask({"p": distribution}).params["p"]
    back = parameter.param(parameter.value(drawn))
    assert back == pytest.approx(drawn) if isinstance(drawn, float) else back == drawn
    assert distribution._contains(distribution.to_internal_repr(back))


@pytest.mark.parametrize(
    ("distribution", "knob"),
    [
        (IntDistribution(0, 8, step=2), IntegerRange("p", 0, 8, 2)),
        (IntDistribution(1, 64, log=True), IntegerRange("p", 1, 64, scale="log")),
        (FloatDistribution(0.0, 1.0, step=0.25), FloatRange("p", 0.0, 1.0, 0.25)),
        (FloatDistribution(0.0, 1.0, step=1e-6), FloatRange("p", 0.0, 1.0)),
        (FloatDistribution(1e-3, 1.0, log=True), FloatRange("p", 1e-3, 1.0, scale="log")),
        (CategoricalDistribution([1, 2, 8]), OrderedValues("p", (1, 2, 8))),
        (CategoricalDistribution(["row", True, 1]), Choice("p", ("row", True))),
    ],
)
def test_a_parameter_is_a_knob_of_its_range_and_scale(distribution: BaseDistribution, knob: Knob) -> None:
    assert Parameter.of("p", distribution).knob == knob
