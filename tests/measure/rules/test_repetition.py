"""When to stop reading: precise, steady, rejected, settled or capped; and seldom wrongly."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.measure.outcome import Estimate
from autotune.measure.rules.repetition import BeyondDoubt, Decision, Progress, RepetitionRule, Verdict
from autotune.measure.rules.statistics import estimate

RULE = RepetitionRule(precision=0.01, confidence=0.95, min_readings=5, max_readings=100)
INCUMBENT = Estimate(1.0, 0.99, 1.01, 20)


def read_until_stop(
    rule: RepetitionRule, draw: Callable[[], float], incumbent: Estimate | None = None
) -> tuple[list[float], Decision]:
    values: list[float] = []
    while True:
        values.append(draw())
        decision = rule.decide(values, incumbent, "minimize")
        if decision.stop:
            return values, decision


def test_stops_once_it_is_precise() -> None:
    rng = np.random.default_rng(0)
    values, decision = read_until_stop(RULE, lambda: rng.normal(1, 0.01))
    assert decision.verdict is Verdict.PRECISE and 5 <= len(values) < 40
    assert "known to" in decision.reason
    e = estimate(values, 0.95)
    assert (e.high - e.low) / 2 <= 0.01 * e.value


def test_precision_holds_although_one_looks_after_every_reading() -> None:
    """The first narrow interval is a lucky one a little too often; the loss of confidence stays small."""
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(400):
        values, _ = read_until_stop(RULE, lambda: rng.lognormal(0, 0.02))
        e = estimate(values, 0.95)
        held += e.low <= 1 <= e.high
    assert held / 400 >= 0.88


def test_more_noise_takes_more_readings() -> None:
    def mean_count(noise: float) -> float:
        rng = np.random.default_rng(2)
        return float(
            np.mean([len(read_until_stop(RULE, lambda: rng.normal(1, noise))[0]) for _ in range(30)])
        )

    counts = [mean_count(noise) for noise in (0.001, 0.01, 0.03)]
    assert counts[0] < 6 and counts == sorted(counts)


def test_no_noise_stops_before_the_fewest_readings() -> None:
    assert RULE.decide([7.0, 7.0, 7.0]).verdict is Verdict.STEADY
    assert not RULE.decide([7.0, 7.0]).stop
    assert not RULE.decide([7.0, 7.0, 7.1]).stop


@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_a_reading_that_is_no_number_stops(odd: float) -> None:
    assert RULE.decide([1.0, odd]).verdict is Verdict.DIVERGED


def test_stops_at_the_cap() -> None:
    rule = RepetitionRule(precision=0.0, min_readings=1, max_readings=4)
    assert not rule.decide([1.0, 2.0, 3.0]).stop
    assert rule.decide([1.0, 2.0, 3.0, 4.0]).verdict is Verdict.CAPPED
    assert RepetitionRule(min_readings=1, max_readings=1).decide([1.0]).stop


def test_hopeless_noise_stops_before_the_cap() -> None:
    rule = RepetitionRule(precision=0.001, max_readings=1000)
    rng = np.random.default_rng(3)
    counts = []
    for _ in range(20):
        values, decision = read_until_stop(rule, lambda: rng.lognormal(0, 0.3))
        assert decision.verdict is Verdict.SETTLED
        counts.append(len(values))
    assert 24 <= np.mean(counts) < 500


def test_noise_that_can_be_averaged_out_does_not_settle() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        _, decision = read_until_stop(RULE, lambda: rng.normal(1, 0.02))
        assert decision.verdict is Verdict.PRECISE


@given(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=30))
def test_what_was_known_earlier_is_what_the_readings_till_then_said(values: list[float]) -> None:
    progress = Progress(tuple(values), 0.95, None, "minimize")
    for count in range(len(values) + 1):
        then = Progress(tuple(values[:count]), 0.95, None, "minimize")
        assert progress.relative_half_width_after(count) == then.relative_half_width


# -- rejection ------------------------------------------------------------------------------------


def test_three_times_slower_is_rejected_at_once() -> None:
    assert not RULE.decide([3.3, 3.2], INCUMBENT).stop
    assert RULE.decide([3.3, 3.2, 3.4], INCUMBENT).verdict is Verdict.REJECTED


def test_a_little_slower_is_rejected_in_the_end() -> None:
    rng = np.random.default_rng(5)
    rule = RepetitionRule(precision=0.0)
    for _ in range(50):
        values, decision = read_until_stop(rule, lambda: rng.normal(1.2, 0.1), INCUMBENT)
        assert decision.verdict is Verdict.REJECTED and len(values) < 60


def test_maximize_is_the_mirror() -> None:
    assert RULE.decide([0.31, 0.3, 0.32], INCUMBENT, "maximize").verdict is Verdict.REJECTED
    assert not RULE.decide([3.1, 3.2, 3.3], INCUMBENT, "maximize").stop
    assert not RULE.decide([0.31, 0.3, 0.32], INCUMBENT, "minimize").stop


def test_rejection_can_be_switched_off() -> None:
    rule = RepetitionRule(reject=False)
    assert not rule.decide([30.0, 32.0, 34.0, 28.0], INCUMBENT).stop


def test_a_quicker_one_is_never_rejected() -> None:
    assert not RULE.decide([0.5, 0.6, 0.4, 0.7], INCUMBENT).stop


def test_ratios_mean_nothing_below_zero() -> None:
    """A loss of -1 against an incumbent of -10: worse, and told by the signs alone."""
    incumbent = Estimate(-10.0, -10.5, -9.5, 20)
    values = [-1.0 + 0.1 * i for i in range(9)]
    rule = RepetitionRule(precision=0.0)
    assert not rule.decide(values, incumbent).stop or len(values) >= 9
    assert rule.decide([*values, -1.0, -1.1, -1.2], incumbent).verdict is Verdict.REJECTED


NOISES: dict[str, Callable[[np.random.Generator], float]] = {
    "normal": lambda rng: rng.normal(1, 0.05),
    "lognormal": lambda rng: rng.lognormal(0, 0.4),
    "spikes": lambda rng: rng.normal(1, 0.02) * (5.0 if rng.random() < 0.08 else 1.0),
    "two modes": lambda rng: rng.normal(1, 0.02) * (1.4 if rng.random() < 0.3 else 1.0),
}


@pytest.mark.long
@pytest.mark.parametrize("noise", NOISES)
def test_a_configuration_as_good_as_the_incumbent_is_seldom_rejected(noise: str) -> None:
    """Looking after each of 100 readings, in under 1 % of the searches; the incumbent is itself read."""
    rng = np.random.default_rng(len(noise))
    draw = NOISES[noise]
    criterion, rejected = BeyondDoubt(), 0
    for _ in range(1500):
        incumbent = estimate([draw(rng) for _ in range(20)], 0.95)
        values = [0.999 * draw(rng) for _ in range(100)]
        rejected += _ever_rejected(criterion, values, incumbent)
    assert rejected / 1500 < 0.01


def _ever_rejected(criterion: BeyondDoubt, values: list[float], incumbent: Estimate) -> bool:
    return any(
        criterion.reason(Progress(tuple(values[:n]), 0.95, incumbent, "minimize"))
        for n in range(1, len(values) + 1)
    )


# -- shape ----------------------------------------------------------------------------------------


@given(st.lists(st.floats(-1e6, 1e6), max_size=30), st.sampled_from(["minimize", "maximize"]))
def test_decides_on_anything(values: list[float], goal: str) -> None:
    decision = RULE.decide(values, INCUMBENT, goal)  # type: ignore[arg-type]
    assert decision.stop == bool(decision.reason)
    assert RULE.decide(values, INCUMBENT, goal) == decision  # type: ignore[arg-type]


def test_hundreds_of_readings_on_either_side_of_the_incumbent_are_no_overflow() -> None:
    values = (0.5, 9.0) * 400
    assert BeyondDoubt().reason(Progress(values, 0.95, INCUMBENT, "minimize")) == ""
    assert BeyondDoubt().reason(Progress((9.0,) * 800, 0.95, INCUMBENT, "minimize"))


def test_nothing_read_yet() -> None:
    assert not RULE.decide([], INCUMBENT).stop


@pytest.mark.parametrize(
    "settings",
    [
        {"precision": -1},
        {"precision": math.nan},
        {"confidence": 1},
        {"min_readings": 0},
        {"min_readings": 5, "max_readings": 4},
    ],
)
def test_senseless_settings_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"precision|confidence|readings"):
        RepetitionRule(**settings)  # type: ignore[arg-type]
