"""The learning rate at each update, and how it follows the batch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.objectives.training import importable

importable()

from training_plan import Plan  # noqa: E402
from training_schedule import COUPLINGS, REFERENCE_BATCH, SCHEDULES, coupled, factor  # noqa: E402

updates = st.integers(1, 300)
warmups = st.floats(0.0, 0.9)
schedules = st.sampled_from(SCHEDULES)


@given(total=updates, warmup=warmups, schedule=schedules)
def test_it_rises_to_the_peak_and_never_past_it(total: int, warmup: float, schedule: str) -> None:
    rates = [factor(update, total, warmup, schedule) for update in range(total)]
    rising = int(warmup * total)
    assert all(0.0 <= rate <= 1.0 for rate in rates)
    assert rates[: rising + 1] == sorted(rates[: rising + 1])
    assert rates[rising:] == sorted(rates[rising:], reverse=True)
    assert rates[rising] == 1.0


@given(total=updates, schedule=schedules)
def test_the_first_update_is_never_wasted(total: int, schedule: str) -> None:
    assert factor(0, total, 0.5, schedule) > 0.0


def test_where_the_schedules_end() -> None:
    ends = {schedule: factor(999, 1000, 0.0, schedule) for schedule in SCHEDULES}
    assert ends["constant"] == 1.0 and ends["step"] == 0.01
    assert ends["linear"] == pytest.approx(0.001) and ends["cosine"] < 1e-5


@given(rate=st.floats(1e-5, 1.0), batch=st.integers(1, 4096))
def test_coupling_keeps_the_rate_of_the_reference_batch(rate: float, batch: int) -> None:
    for coupling in COUPLINGS:
        assert coupled(rate, REFERENCE_BATCH, coupling) == pytest.approx(rate)
    assert coupled(rate, batch, "none") == rate
    assert coupled(rate, batch, "linear") / rate == pytest.approx((coupled(rate, batch, "sqrt") / rate) ** 2)


def test_a_plan_takes_its_own_knobs_and_leaves_the_others() -> None:
    plan = Plan.of({"rate": 0.1, "batch": 20, "accumulate": 4, "coupling": "linear", "tile": 8})
    assert (plan.samples, plan.optimiser) == (80, "adamw")
    assert plan.peak == pytest.approx(0.125)
