"""A demand that is a product of powers of the knobs is known from a few measurements."""

from __future__ import annotations

import math

import numpy as np
import pytest

from autotune.search.models.features import Features
from autotune.search.models.gaussian_process import GaussianProcess, Prior
from autotune.search.models.posterior import Posterior
from autotune.search.models.trend import ANY, CHOICE, OF_SIZES, Exponents, Trend, _powers
from autotune.space.knobs import Choice, Flag, FloatRange, IntegerRange, OrderedValues, Permutation
from autotune.space.knobs.knob import Knob
from autotune.space.space import Space

ALMOST_ONLY_TREND = Prior(smooth_variance=1e-4, code_variance=1e-4, noise=1e-6)


def variance(knob: Knob, one: object, other: object) -> float:
    """What the logarithm of a demand is expected to change by between two values, squared."""
    space = Space([knob])
    rows = Features(space).of([space.configuration({knob.name: v}) for v in (one, other)])
    terms = Trend(Features(space))(rows)
    return float(np.square(terms[0] - terms[1]).sum())


@pytest.mark.parametrize(
    "values",
    [range(1, 1000), range(7, 5000, 7), range(1000, 0, -1), range(2**53, 2**53 + 1000)],
    ids=str,
)
def test_numbers_in_a_row_count_as_those_in_a_list(values: range) -> None:
    codes = np.array([-1, 0, 1, 500, 713])
    assert np.array_equal(_powers(values, codes), _powers(list(values), codes))


@pytest.mark.parametrize(
    "knob",
    [OrderedValues("a", (16, 32, 64)), IntegerRange("a", 16, 64), IntegerRange("a", 16, 100_000)],
    ids=["list", "range", "large range"],
)
def test_a_number_counts_by_its_logarithm(knob: Knob) -> None:
    assert variance(knob, 16, 64) == pytest.approx(math.log(4.0) ** 2)


def test_what_is_not_positive_counts_by_its_rank() -> None:
    assert variance(IntegerRange("a", -1, 2), -1, 2) == pytest.approx(math.log(4.0) ** 2)


@pytest.mark.parametrize(
    ("knob", "values"), [(Choice("a", ("x", "y", "z")), ("x", "z")), (Flag("a"), (True, False))]
)
def test_two_choices_differ_alike(knob: Knob, values: tuple[object, object]) -> None:
    assert variance(knob, *values) == pytest.approx(CHOICE**2)


def test_a_continuous_knob_counts_over_its_range() -> None:
    assert variance(FloatRange("a", 0.0, 10.0), 0.0, 10.0) == pytest.approx(1.0)


def ahead(exponents: Exponents, knob: Knob, *values: object) -> list[float]:
    """What is expected of the logarithms of the demands of these values."""
    space = Space([knob])
    rows = Features(space).of([space.configuration({knob.name: v}) for v in values])
    return Trend(Features(space), exponents).expected(rows).tolist()


def test_a_demand_is_expected_to_grow_with_a_size() -> None:
    low, high = ahead(OF_SIZES, OrderedValues("a", (16, 32, 64)), 16, 64)
    assert high - low == pytest.approx(OF_SIZES.mean * math.log(4.0))
    assert low == pytest.approx(-high)  # beside the middle of the range


@pytest.mark.parametrize(
    "knob",
    [Choice("a", ("x", "y")), OrderedValues("a", ("x", "y")), Permutation("a", ("x", "y"))],
    ids=["choice", "texts", "permutation"],
)
def test_what_is_no_size_says_nothing_beforehand(knob: Knob) -> None:
    values = knob.cells[0].values if not knob.distinct else (("x", "y"), ("y", "x"))
    assert ahead(OF_SIZES, knob, *values) == [0.0, 0.0]


def test_of_a_goal_nothing_is_expected() -> None:
    assert ahead(ANY, OrderedValues("a", (16, 32, 64)), 16, 64) == [0.0, 0.0]


def test_a_permutation_has_no_part() -> None:
    assert variance(Permutation("a", ("i", "j", "k")), ("i", "j", "k"), ("k", "j", "i")) == 0.0


def test_a_product_of_powers_is_known_from_few_values() -> None:
    sizes = (8, 16, 32, 64, 128)
    space = Space([OrderedValues(name, sizes) for name in "abc"] + [Choice("kind", ("x", "y"))])
    features = Features(space)

    def demand(c: object) -> float:
        return math.log(c["a"] * c["b"] / math.sqrt(c["c"]) * (2.0 if c["kind"] == "y" else 1.0))  # type: ignore[index]

    everything = [space.configuration(values) for values in space.feasible]
    seen = space.sample(np.random.default_rng(0), 8)
    process = GaussianProcess(features.columns, ALMOST_ONLY_TREND, Trend(features))
    posterior = Posterior(process, features.of(seen))
    middle = float(np.mean([demand(c) for c in everything]))
    targets = np.array([[demand(c) - middle] for c in seen])
    mean, spread = posterior.predict_at(targets, features.of(everything))
    missed = mean[:, 0] + middle - np.array([demand(c) for c in everything])
    assert np.abs(missed).max() < 0.2
    assert spread.max() < 0.5

    posterior.watch(features.of(everything))
    again, doubt = posterior.predict(targets, np.arange(len(everything)))
    assert again == pytest.approx(mean)
    assert doubt == pytest.approx(spread)


def test_the_likelihood_has_the_slope_that_it_says() -> None:
    space = Space([OrderedValues("a", (1, 2, 4, 8)), Flag("b"), IntegerRange("c", 1, 4)])
    features = Features(space)
    inputs = features.of([space.configuration(values) for values in space.feasible])
    targets = np.sin(np.arange(len(inputs)))
    process = GaussianProcess(features.columns, Prior(linear=True), Trend(features))
    process.fit(inputs, targets)
    best = _evidence(process, inputs, targets)
    for i in range(len(process.parameters)):
        for step in (-0.3, 0.3):
            process.parameters[i] += step
            assert _evidence(process, inputs, targets) <= best + 1e-6
            process.parameters[i] -= step


def _evidence(process: GaussianProcess, inputs: object, targets: np.ndarray) -> float:
    """The logarithm of the posterior of the parameters, up to a constant, computed the plain way."""
    view = process.view(inputs)  # type: ignore[arg-type]
    covariance = process.covariance(view, view) + (process.noise + 1e-8) * np.eye(len(targets))
    _, size = np.linalg.slogdet(covariance)
    off = (process.parameters - process._centre) / process._spread
    return float(-0.5 * targets @ np.linalg.solve(covariance, targets) - 0.5 * size - 0.5 * off @ off)
