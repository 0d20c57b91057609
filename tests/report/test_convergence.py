"""The expected best of random draws, against its definition."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.report.convergence import convergence, draws_to_match, expected_best
from autotune.report.evidence import load_evidence
from autotune.report.figures import convergence_figure
from autotune.status import Status
from tests.report.studies import Written, generated

OUTCOMES = st.lists(st.one_of(st.just(float("nan")), st.floats(-100, 100)), min_size=1, max_size=5)


@given(OUTCOMES, st.integers(1, 3), st.sampled_from([1.0, -1.0]))
def test_it_is_the_mean_over_all_draws_that_have_a_success(
    outcomes: list[float], draws: int, sign: float
) -> None:
    mean, low, high = expected_best(np.array(outcomes), np.array([draws]), sign)
    bests = [
        sign * min(sign * v for v in drawn if v == v)
        for drawn in product(outcomes, repeat=draws)
        if any(v == v for v in drawn)
    ]
    if not bests:
        assert np.isnan(mean[0])
        return
    assert mean[0] == pytest.approx(np.mean(bests), abs=1e-9)
    assert low[0] in bests and high[0] in bests
    assert low[0] <= high[0]
    found = np.array(bests)  # of which nine in ten lie between the two, and no fewer
    assert np.mean(found < low[0]) <= 0.05 + 1e-9 and np.mean(found > high[0]) <= 0.05 + 1e-9
    assert np.mean(found <= low[0]) >= 0.05 - 1e-9 and np.mean(found >= high[0]) >= 0.05 - 1e-9


@pytest.mark.parametrize("failures", [0, 20, 180])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_band_is_that_of_draws_that_succeed(failures: int, sign: float) -> None:
    """Of one draw: the outcomes themselves, however many failed."""
    outcomes = np.array([*range(1, 101), *[math.nan] * failures], dtype=float)
    _, low, high = expected_best(outcomes, np.array([1]), sign)
    assert low[0] in (5.0, 6.0) and high[0] in (95.0, 96.0)


@given(st.lists(st.floats(0.1, 10), min_size=2, max_size=40))
def test_more_draws_never_expect_worse(outcomes: list[float]) -> None:
    mean, _, _ = expected_best(np.array(outcomes), np.arange(1, 50))
    assert np.all(np.diff(mean) <= 1e-12)


def test_of_many_outcomes_the_best_ones_are_kept_as_they_are() -> None:
    outcomes = np.random.default_rng(0).permutation(np.arange(1.0, 50_001.0))
    mean, _, _ = expected_best(outcomes, np.array([1, 1000, 50_000]))
    assert mean[0] == pytest.approx(25_000, rel=0.01)
    assert mean[1] == pytest.approx(50_000 / 1001 + 0.5, rel=0.001)
    assert mean[2] < 2.0


def test_the_frame_follows_the_search(tmp_path: Path) -> None:
    written = Written(tmp_path)
    for value in (4.0, None, 2.0, 3.0):
        status = Status.OK if value else Status.CRASHED
        written.trial({"tile": value or 0.0}, value, status)
    frame = convergence(load_evidence(written.store))
    assert frame["best"].tolist() == [4.0, 4.0, 2.0, 2.0]
    assert frame["seconds"].tolist() == [10.0, 20.0, 30.0, 40.0]
    assert "flatters" in frame.attrs["drawn_from"]
    assert frame.attrs["to_match"] == 4.0


@pytest.mark.parametrize(
    ("best", "sign", "draws"), [(1.0, 1.0, 6.0), (2.0, 1.0, 2.0), (0.5, 1.0, math.inf), (3.0, -1.0, 3.0)]
)
def test_a_draw_is_as_good_once_in_as_many(best: float, sign: float, draws: float) -> None:
    outcomes = np.array([1.0, 2.0, 2.0, 3.0, 4.0, math.nan])
    assert draws_to_match(outcomes, best, sign) == draws


def test_the_best_of_twenty_draws_takes_twenty_however_long_the_study_is(tmp_path: Path) -> None:
    written = Written(tmp_path)
    for place in range(1200):
        reason = {"kind": "uniform" if place < 20 else "expected improvement"}
        written.trial({"tile": float(place)}, 1.0 + place, reason=reason)
    assert convergence(load_evidence(written.store)).attrs["to_match"] == 20.0


def test_the_seconds_of_searches_side_by_side_count_once(tmp_path: Path) -> None:
    written = Written(tmp_path)
    one = written.session
    written.clock.advance(5.0)
    other = written.store.open_session(written.study.id, {}, "", 1, "host1")
    for tile, session in enumerate((one, other, one, other)):
        written.session = session
        written.trial({"tile": tile}, 1.0)
    written.store.close_session(one, "done")
    written.store.close_session(other, "done")
    written.clock.advance(1000.0)
    written.session = written.store.open_session(written.study.id, {}, "", 1, "host0")
    written.trial({"tile": 9}, 1.0)
    seconds = convergence(load_evidence(written.store))["seconds"]
    assert seconds.tolist() == [15.0, 25.0, 35.0, 45.0, 55.0]


def test_a_loss_near_the_end_of_floats_is_drawn(tmp_path: Path) -> None:
    written = Written(tmp_path)
    for value in (1.7e308, 1.6e308, *range(2, 16)):
        written.trial({"tile": float(value)}, float(value))
    figure = convergence_figure(convergence(load_evidence(written.store)))
    low, high = figure.axes[0].get_ylim()
    assert 0 < low < 2 < 14 < high


def test_enough_random_trials_speak_for_the_space_alone(tmp_path: Path) -> None:
    with generated(tmp_path) as store:
        frame = convergence(load_evidence(store))
    assert "no model proposed" in frame.attrs["drawn_from"]
    assert (frame["random_low"] <= frame["random"] + 1e-12).all()
    assert (frame["random"] <= frame["random_high"] + 1e-12).all()
