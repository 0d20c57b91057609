"""Reasons in words, with units, and predictions held against what was measured."""

from __future__ import annotations

import math

import pytest

from autotune.report.words.reasons import KINDS, expectations, say_reason
from autotune.search.contract import Problem, Strategy
from autotune.search.registry import make_strategy
from autotune.space.spec import MetricSpec
from tests.search.spaces import CASES, observe

TIME = MetricSpec("time", "minimize", "s")
RATE = MetricSpec("rate", "maximize", "op/s")
MODEL = {"strategy": "auto", "kind": "expected improvement", "success": 1.0, "best": 0.004}


@pytest.mark.parametrize(("level", "said"), [(1, "refined 1 time"), (2, "refined 2 times")])
def test_a_grid_says_how_often_it_was_refined(level: int, said: str) -> None:
    assert say_reason({"kind": "grid", "level": level}, [TIME])[0].endswith(said)


@pytest.mark.parametrize(
    ("logarithm", "said"),
    [(math.log(0.25), "its probability was 0.25"), (math.log(34), "its probability density was 34")],
)
def test_a_density_is_not_called_a_probability(logarithm: float, said: str) -> None:
    """Three narrow ranges had a probability of 2e+04; two hundred were too many for a number."""
    assert say_reason({"kind": "drawn", "log_probability": logarithm}, [TIME])[0].endswith(said)
    assert say_reason({"kind": "drawn", "log_probability": 1e4}, [TIME])


@pytest.mark.parametrize("reason", [{"kind": "drawn"}, {"kind": "uniform", "arm": "mutation"}])
def test_what_is_not_known_of_a_reason_is_left_out(reason: dict[str, str]) -> None:
    assert say_reason(reason, [TIME]) == [KINDS[reason["kind"]]]


class TestPredictions:
    def test_of_a_logarithm_are_ratios(self) -> None:
        reason = {**MODEL, "predicted": 0.002, "spread": math.log(2), "logarithmic": True}
        (expected,) = expectations(reason, [TIME], {"time": 0.001})
        assert (expected.low, expected.high) == pytest.approx((0.001, 0.004))
        assert expected.off == pytest.approx(1.0)
        assert expected.say() == (
            "time 2 ms (68%: 1 ms to 4 ms); measured 1 ms, better than predicted by 1.0 standard deviations"
        )

    def test_of_the_metric_itself_are_differences(self) -> None:
        reason = {**MODEL, "predicted": -3.0, "spread": 2.0, "logarithmic": False}
        (expected,) = expectations(reason, [RATE], {"rate": -8.0})
        assert (expected.low, expected.high, expected.off) == (-5.0, -1.0, -2.5)
        assert "worse than predicted by 2.5 standard deviations" in expected.say()

    @pytest.mark.parametrize("measured", [0.002, 0.00203, 0.00197])
    def test_that_came_true_are_said_to(self, measured: float) -> None:
        reason = {**MODEL, "predicted": 0.002, "spread": 0.5, "logarithmic": True}
        (expected,) = expectations(reason, [TIME], {"time": measured})
        assert expected.say().endswith(" ms, as predicted")

    def test_of_numbers_whose_product_is_none(self) -> None:
        reason = {**MODEL, "predicted": 2e-200, "spread": math.log(2), "logarithmic": True}
        (expected,) = expectations(reason, [TIME], {"time": 1e-200})
        assert expected.off == pytest.approx(1.0)

    @pytest.mark.parametrize(("predicted", "spread"), [(1.0, 1e6), (1.0, -1e6), (math.inf, 1.0)])
    def test_of_another_program_may_be_any_numbers(self, predicted: float, spread: float) -> None:
        """In an archive they may stand, and had ended in an OverflowError."""
        reason = {**MODEL, "predicted": predicted, "spread": spread, "logarithmic": True}
        (expected,) = expectations(reason, [TIME], {"time": 1.0})
        assert expected.low <= expected.predicted <= expected.high and expected.say()

    def test_of_what_failed_stand_alone(self) -> None:
        reason = {**MODEL, "predicted": 0.002, "spread": 0.5, "logarithmic": True}
        (expected,) = expectations(reason, [TIME], {})
        assert expected.off is None and "measured" not in expected.say()

    @pytest.mark.parametrize(
        ("logarithmic", "spread", "measured"), [(True, 0.5, 0.0), (True, 0.5, -1.0), (False, 0.0, 3.0)]
    )
    def test_without_a_scale_to_measure_by_stand_alone(
        self, logarithmic: bool, spread: float, measured: float
    ) -> None:
        """Zero has no logarithm, and by a spread of zero everything is off beyond measure."""
        reason = {**MODEL, "predicted": 2.0, "spread": spread, "logarithmic": logarithmic}
        (expected,) = expectations(reason, [TIME], {"time": measured})
        assert expected.off is None and "measured" not in expected.say()

    def test_of_the_metric_itself_need_no_value_either(self) -> None:
        reason = {**MODEL, "predicted": 2.0, "spread": 0.5, "logarithmic": False}
        (expected,) = expectations(reason, [TIME], {})
        assert (expected.low, expected.high, expected.off) == (1.5, 2.5, None)

    def test_of_several_goals_each_have_their_own(self) -> None:
        parts = {"predicted": 1.0, "spread": 0.1, "logarithmic": True}
        reason = {part: {"time": value, "rate": value} for part, value in parts.items()}
        found = expectations(reason, [TIME, MetricSpec("error"), RATE], {"time": 2.0, "rate": 2.0})
        assert [one.metric for one in found] == ["time", "rate"]
        assert found[0].off is not None and found[0].off < 0 < (found[1].off or 0)

    def test_there_are_none_where_the_model_says_nothing(self) -> None:
        assert expectations({"kind": "uniform"}, [TIME], {"time": 1.0}) == ()
        assert expectations({"predicted": 1.0, "spread": 0.1}, [TIME], {"time": 1.0}) == ()  # as of old


class TestWords:
    def test_of_a_finale_say_who_is_measured_again(self) -> None:
        reason = {"kind": "re-measurement", "label": "finalist 2"}
        assert say_reason(reason, [TIME]) == ["measured again for the final comparison as finalist 2"]

    def test_of_a_model_before_the_first_success_compare_with_nothing(self) -> None:
        assert say_reason({**MODEL, "best": None, "predicted": 0.003}, [TIME]) == [
            f"{KINDS['expected improvement']} (auto)"
        ]

    def test_of_a_model_say_whether_it_explores(self) -> None:
        (text,) = say_reason({**MODEL, "predicted": 0.003}, [TIME])
        assert "exploiting: predicted to be better than the best so far, 4 ms (auto)" in text
        (text,) = say_reason({**MODEL, "predicted": 0.005}, [TIME])
        assert "exploring: predicted to be worse" in text
        (text,) = say_reason({**MODEL, "predicted": 0.005}, [RATE])
        assert "exploiting" in text

    def test_of_a_child_name_its_parents(self) -> None:
        reason = {"strategy": "evolution", "kind": "crossover", "parent": "a1", "parent_metric": 0.002}
        (text,) = say_reason({**reason, "other": "b2"}, [TIME], {"a1": 3})
        assert text == "a crossing of trial 3 (time 2 ms) with configuration b2 (evolution)"

    def test_of_an_arm_of_earlier_studies_and_of_a_fresh_start(self) -> None:
        reason = {"strategy": "bandit", "kind": "drawn", "log_probability": math.log(0.25)}
        arm = {"arm": "policy", "score": 0.61, "credit": 0.5, "uses": 7}
        lines = say_reason({**reason, **arm, "sources": {"gemm#3": 0.8}, "success": 0.5, "start": 2}, [TIME])
        assert lines == [
            "drawn from the policy; its probability was 0.25 (bandit)",
            "arm policy: drew 0.61, the highest; its credit was 0.50 from 7 of the latest tries",
            "leaning on study gemm#3 (weight 0.80)",
            "expected to succeed with a probability of 50%",
            "start 2: the search had come to a standstill, and began anew",
        ]

    def test_of_what_nobody_proposed(self) -> None:
        assert say_reason({}, []) == ["nobody proposed it"]
        assert say_reason({"kind": "foreseen by an oracle"}, []) == ["foreseen by an oracle"]

    @pytest.mark.parametrize(
        "name", ["auto", "evolution", "bandit", "policy", "grid", "random", "optuna-cmaes"]
    )
    def test_there_are_some_for_all_that_strategies_say(self, name: str) -> None:
        case = CASES["kernel"]()
        strategy: Strategy = make_strategy(name, Problem(case.space, (TIME,), 40), 0)
        for _ in range(30):
            for proposal in strategy.ask(1):
                assert proposal.reason["kind"] in KINDS
                observation = observe(case, proposal)
                assert "{" not in " ".join(say_reason(proposal.reason, [TIME]))
                if "predicted" in proposal.reason:
                    assert len(expectations(proposal.reason, [TIME], observation.metrics)) == 1
                strategy.tell([observation])
