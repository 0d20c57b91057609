"""What a surrogate learns of the goal: successes, and what was measured past a bound."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from autotune.search.contract import Observation, Problem
from autotune.search.models.history import History, Targets
from autotune.space.knobs import Choice, IntegerRange
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status

SPACE = Space([IntegerRange("x", 0, 40)])
PROBLEM = Problem(SPACE, (MetricSpec("time", "minimize", "s"), MetricSpec("error", at_most=1.0)))


def observed(x: int, time: float, error: float | None = 0.5) -> Observation:
    """Past the bound with a larger error; ``None``: wrong for another reason."""
    configuration = SPACE.configuration({"x": x})
    metrics = {"time": time} | ({} if error is None else {"error": error})
    if error is None or error > 1.0:
        return Observation(configuration, Status.WRONG, bounded=metrics)
    return Observation(configuration, Status.OK, metrics)


def targets(*observations: Observation, past_bounds: bool = True) -> Targets:
    found = History.of(PROBLEM, observations, past_bounds=past_bounds).targets()
    assert found is not None
    return found


GOOD = [observed(x, time) for x, time in enumerate((4.0, 5.0, 6.0, 8.0))]


def test_what_was_measured_past_a_bound_is_known_and_no_success() -> None:
    found = targets(*GOOD, observed(10, 3.0, error=2.0))
    assert found.instructive.tolist() == [0, 1, 2, 3, 4]
    assert found.failed.tolist() == [0, 0, 0, 0, 1]
    assert found.metric(float(found.values[4])) == pytest.approx(3.0)
    assert found.metric(found.best) == pytest.approx(4.0), "the best is one that counts"
    assert found.best_first.tolist()[-1] == 4


def test_nothing_is_known_of_what_is_wrong_for_another_reason() -> None:
    found = targets(*GOOD, observed(10, 3.0, error=None))
    assert found.instructive.tolist() == [0, 1, 2, 3]


def test_only_who_asks_for_it_learns_it() -> None:
    plain, asked = (targets(*GOOD, observed(10, 3.0, error=2.0), past_bounds=asks) for asks in (False, True))
    assert plain.instructive.tolist() == [0, 1, 2, 3]
    assert plain.likelihood == asked.likelihood


def test_what_does_nothing_and_is_done_at_once_does_not_stretch_the_scale() -> None:
    absurd = targets(*GOOD, observed(10, 1e-9, error=2.0))
    assert math.log(4.0) - 3.0 < math.log(absurd.metric(float(absurd.values[4]))) < math.log(4.0)


@pytest.mark.parametrize("time", [0.0, -1.0, math.nan, math.inf, 1e200])
def test_what_has_no_logarithm_or_no_square_past_a_bound_is_left_out(time: float) -> None:
    found = targets(*GOOD, observed(10, time, error=2.0))
    assert found.instructive.tolist() == [0, 1, 2, 3]
    assert np.isfinite(found.values).all()


def test_what_is_expected_beyond_all_numbers_is_a_number_still() -> None:
    found = targets(observed(0, 1e-150), observed(1, 1e150))
    assert found.metric(float(found.values.max()) + 9.0) == pytest.approx(1e150)
    assert found.metric(float(found.values.min()) - 9.0) == 0.0


@pytest.mark.parametrize("unit", [2.0**-400, 2.0**-60, 2.0**400])
def test_what_is_learned_of_values_about_zero_is_the_same_in_any_unit(unit: float) -> None:
    """Errors of rounding, one of which was 0, had been taken for equal: they differ by less than 1e-12."""
    times = (3.0, 0.0, 2.0, 5.0, -1.0)
    plain = targets(*(observed(x, time) for x, time in enumerate(times)))
    other = targets(*(observed(x, time * unit) for x, time in enumerate(times)))
    assert other.values.tolist() == plain.values.tolist()
    assert other.metric(1.5) == plain.metric(1.5) * unit


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("times", [(0.0, 0.0, 0.0), (-1.0, -1.0 - 1e-15, -1.0), (5e-324, 0.0, -5e-324)])
def test_what_differs_by_rounding_only_is_equal(times: tuple[float, ...]) -> None:
    found = targets(*(observed(x, time) for x, time in enumerate(times)))
    assert found.scale == 1.0 and np.abs(found.values).max() < 1e-12


@pytest.mark.filterwarnings("error")
def test_an_error_whose_square_overflows_is_a_large_one() -> None:
    sure, unsure = observed(0, -1.0), replace(observed(1, 1e150), errors={"time": 1e300})
    known = targets(sure, unsure).known
    assert np.isfinite(known).all() and known[1] > known[0] == 0.0


def slow_side(space: Space, *others: str) -> list[float]:
    """How far apart a search of ``space`` holds two slow configurations, and two that are slower still."""
    rest = dict.fromkeys(others, 0)
    told = [
        Observation(space.configuration({"x": x} | rest), Status.OK, {"time": time})
        for x, time in enumerate((1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 3.0, 4.0, 1e30, 1e40))
    ]
    found = History.of(Problem(space, PROBLEM.metrics), told).targets()
    assert found is not None
    return [float(b - a) for a, b in zip(found.values[7::2], found.values[8::2], strict=True)]


def test_where_all_knobs_are_ranges_only_what_is_absurd_is_cut() -> None:
    """A search that crowded in one place held all the others for equally bad, and never went back to them."""
    near, far = slow_side(SPACE)
    assert near > 0.1
    assert far == 0.0
    assert slow_side(Space([*SPACE.knobs, IntegerRange("always", 0, 0)]), "always")[0] == near


def test_where_a_knob_is_listed_all_that_is_slow_is_cut() -> None:
    assert slow_side(Space([*SPACE.knobs, Choice("how", (0, 1))]), "how") == [0.0, 0.0]


def test_what_only_equals_an_earlier_value_is_no_news() -> None:
    first = [observed(x, time) for x, time in enumerate((4.0, 3.0, 9.0, 3.0, 3.0, 9.0))]
    found = targets(*first)
    assert found.since(found.best) == 4, "the others equal the first 3.0"
    assert targets(*first, observed(6, 2.9999)).since(found.best) == 0
