"""What two divides often is told apart from what leaves a rest, and learned about where it matters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.search.models.features import Features
from autotune.search.models.gaussian_process import GaussianProcess, Inputs, Prior
from autotune.search.models.posterior import Posterior
from autotune.search.models.roundness import WIDEST
from autotune.space.knobs import Choice, FloatRange, IntegerRange, OrderedValues
from autotune.space.space import Space


def inputs_of(knob: IntegerRange, *values: int) -> Inputs:
    return Features(Space([knob])).of([{knob.name: value} for value in values])


def roundness(knob: IntegerRange, *values: int) -> list[float]:
    return [float(value) for value in inputs_of(knob, *values).linear[:, 0]]


def test_each_factor_of_two_counts_up_to_a_width() -> None:
    expected = [-1 / 2, -1 / 6, 1 / 6, 1 / 2, 1 / 2, 1 / 2, -1 / 2, 1 / 6]
    assert roundness(IntegerRange("n", 1, 64), 1, 6, 12, 24, 8, 64, 63, 20) == pytest.approx(expected)


def test_nothing_is_rounder_than_nought() -> None:
    assert roundness(IntegerRange("pad", 0, 31), 0, 16, 1) == [0.5, 0.5, -0.5]


def test_numbers_are_round_beside_the_unit_of_their_range() -> None:
    assert roundness(IntegerRange("threads", 32, 1024, step=32), 32, 64, 96, 256) == pytest.approx(
        [-1 / 2, -1 / 6, -1 / 2, 1 / 2]
    )


@given(st.integers(-(2**52), 2**52), st.integers(1, 2**20), st.integers(1, 1000), st.data())
def test_it_is_how_often_two_divides(low: int, step: int, count: int, data: Any) -> None:
    knob = IntegerRange("n", low, low + step * count, step=step)
    number = low + step * data.draw(st.integers(0, count))
    unit = 1
    while low % (2 * unit) == step % (2 * unit) == 0:
        unit *= 2
    times, width = 0, 1
    while width < WIDEST and number % (2 * width * unit) == 0:
        times, width = times + 1, 2 * width
    most = WIDEST.bit_length() - 1
    assert roundness(knob, number) == pytest.approx([times / most - 0.5])


def test_only_ranges_of_integers_have_it() -> None:
    knobs = (
        OrderedValues("list", (8, 12, 16)),
        IntegerRange("powers", 1, 64, scale="log2"),
        FloatRange("rate", 0.0, 1.0),
        IntegerRange("fixed", 8, 8),
        IntegerRange("batch", 1, 64, scale="log"),
        Choice("way", ("a", "b")),
    )
    features = Features(Space(knobs))
    assert features.columns.linear == 1
    (row,) = features.of([{"batch": 24, "list": 12, "powers": 1, "rate": 0.5, "fixed": 8, "way": "a"}]).linear
    assert row.tolist() == [0.5]


def test_a_knob_that_does_not_exist_is_neither() -> None:
    space = Space(
        [Choice("way", ("plain", "blocked")), IntegerRange("block", 1, 64, when="way == 'blocked'")]
    )
    rows = Features(space).of([{"way": "plain"}, {"way": "blocked", "block": 64}]).linear
    assert rows[:, 0].tolist() == [0.0, 0.5]


def test_what_some_numbers_show_is_expected_of_all() -> None:
    knob = IntegerRange("tile", 1, 200)
    features = Features(Space([knob]))

    def posterior(*values: int) -> Posterior:
        inputs = features.of([{"tile": value} for value in values])
        process = GaussianProcess(features.columns, Prior(wide=True, linear=True))
        process.fit(inputs, seconds(*values))
        return Posterior(process, inputs)

    def seconds(*values: int) -> np.ndarray:
        """Standardised: a rest costs, and a larger tile does a little better."""
        return np.array([(-1.0 if value % 8 == 0 else 0.5) - value / 400.0 for value in values])

    tried = (8, 11, 24, 37, 48, 61, 88, 95, 120, 151)
    mean, _ = posterior(*tried).predict_at(seconds(*tried)[:, None], inputs_of(knob, 168, 169, 176, 177))
    assert mean[[0, 2], 0].max() < mean[[1, 3], 0].min() - 0.7
