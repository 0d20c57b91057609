"""A demand that is a sum of what is always there and of what each knob adds is known from few values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.search.models.demand import CLOSE
from autotune.search.models.features import Features
from autotune.search.models.gaussian_process import GaussianProcess
from autotune.search.models.posterior import Posterior
from autotune.search.models.sums import MOST_PRODUCTS, Sum
from autotune.space.knobs import Choice, Flag, FloatRange, IntegerRange, OrderedValues, Permutation
from autotune.space.knobs.knob import Knob
from autotune.space.space import Space

Demand = Callable[[Mapping[str, Any]], float]


def missed(
    knobs: Sequence[Knob], demand: Demand, seen: Sequence[Mapping[str, Any]], factors: int = 2
) -> float:
    """The largest error over the space, as a part of the largest demand, after some were seen."""
    space = Space(knobs)
    features = Features(space)
    known = [space.configuration(values) for values in seen]
    everything = space.sample(np.random.default_rng(0), 200)
    inputs = features.of(known)
    process = GaussianProcess(features.columns, CLOSE, Sum(features, inputs, factors=factors))
    values = np.array([demand(c) for c in known])
    targets = (values - values.mean()) / values.std()
    mean, _ = Posterior(process, inputs).predict_at(targets[:, None], features.of(everything))
    truth = np.array([demand(c) for c in everything])
    return float(np.abs(mean[:, 0] * values.std() + values.mean() - truth).max() / truth.max())


@given(fixed=st.floats(1.0, 1e3), each=st.floats(0.1, 10.0))
def test_a_line_is_known_from_three_values_at_its_beginning(fixed: float, each: float) -> None:
    seen = [{"batch": b} for b in (8, 30, 90)]
    assert missed([IntegerRange("batch", 1, 1024)], lambda v: fixed + each * v["batch"], seen) < 0.02


def test_a_continuous_knob_counts_by_its_value() -> None:
    seen = [{"size": s} for s in (1.0, 30.0, 90.0)]
    knob = FloatRange("size", 1.0, 1000.0, scale="log")
    assert missed([knob], lambda v: 50.0 + v["size"], seen) < 0.02


def test_how_much_one_adds_depends_on_the_other() -> None:
    knobs = [IntegerRange("batch", 1, 200), IntegerRange("width", 1, 20)]
    seen = [{"batch": b, "width": w} for b, w in ((1, 1), (40, 2), (8, 12), (60, 9), (30, 18), (90, 4))]
    assert missed(knobs, lambda v: 100.0 + v["batch"] * v["width"], seen) < 0.05


def test_a_summand_may_have_three_factors() -> None:
    """The memory of a training: batch times what is kept of a sample times the width of a number."""
    knobs = [IntegerRange("batch", 1, 48), IntegerRange("kept", 1, 8), OrderedValues("width", (2, 4))]
    seen = [{"batch": b, "kept": k, "width": w} for b in (1, 8, 20) for k in (1, 3) for w in (2, 4)]

    def error(factors: int) -> float:
        return missed(knobs, lambda v: 100.0 + v["batch"] * v["kept"] * v["width"], seen, factors)

    assert error(3) < 0.03 < 0.1 < error(2)


def test_a_list_may_divide() -> None:
    knobs = [IntegerRange("batch", 1, 200), OrderedValues("parts", (1, 2, 4, 8))]
    seen = [{"batch": b, "parts": p} for b in (4, 60, 150) for p in (1, 2, 4, 8)]
    assert missed(knobs, lambda v: 100.0 + v["batch"] / v["parts"], seen) < 0.1


@pytest.mark.parametrize(
    "other",
    [Choice("kind", ("x", "y", "z")), Flag("kind"), OrderedValues("kind", ("low", "medium", "high"))],
    ids=["choice", "flag", "ordered names"],
)
def test_a_choice_that_was_never_made_is_in_doubt_and_no_more(other: Knob) -> None:
    space = Space([IntegerRange("batch", 1, 64), other])
    features = Features(space)
    inputs = features.of([space.configuration({"batch": b}) for b in (1, 2, 4)])
    terms = Sum(features, inputs)(features.of([space.configuration(v) for v in space.feasible]))
    assert np.isfinite(terms).all() and np.abs(terms).max() < 200.0


def test_a_knob_that_does_not_exist_adds_nothing() -> None:
    space = Space([Flag("many", default=False), IntegerRange("extra", 1, 9, when="many")])
    features = Features(space)
    inputs = features.of([space.configuration({"many": True, "extra": e}) for e in (1, 5, 9)])
    terms = Sum(features, inputs)(features.of([space.configuration({"many": False})]))
    assert np.isfinite(terms).all()


def test_of_many_knobs_there_are_no_products() -> None:
    knobs = [IntegerRange(f"x{i}", 1, 9) for i in range(40)]
    features = Features(Space(knobs))
    inputs = features.of(features.space.sample(np.random.default_rng(0), 3))
    assert Sum(features, inputs)(inputs).shape == (3, 41)
    assert MOST_PRODUCTS < 40 * 39 // 2


def test_an_order_has_no_part() -> None:
    space = Space([Permutation("a", ("i", "j", "k"))])
    features = Features(space)
    inputs = features.of(space.sample(np.random.default_rng(0), 3))
    assert np.array_equal(Sum(features, inputs)(inputs), np.ones((3, 1)))
