"""Values tell whether the number behind them is a sum or a product."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from autotune.search.models.arrays import Floats
from autotune.search.models.demand import CLOSE, Fitted, Scale, likelier, log_densities
from autotune.search.models.features import Features
from autotune.search.models.gaussian_process import JITTER, GaussianProcess, Inputs
from autotune.space.knobs import IntegerRange
from autotune.space.space import Space

SPACE = Space([IntegerRange("batch", 1, 1024)])
FEATURES = Features(SPACE)
BATCHES = np.array([8, 3, 64, 1, 250])


def inputs_of(batches: Floats) -> Inputs:
    return FEATURES.of([SPACE.configuration({"batch": int(batch)}) for batch in batches])


def taken(values: Floats, count: int = 5) -> Fitted:
    values = values[:count]
    raw = np.log(values)
    usual = Fitted(
        GaussianProcess(FEATURES.columns),
        Scale(True, float(raw.mean()), float(raw.std())),
        inputs_of(BATCHES[:count]),
        values,
    )
    return likelier(usual, FEATURES, Scale(False, float(values.mean()), float(values.std())))


@pytest.mark.parametrize("count", [3, 4, 5])
@pytest.mark.parametrize("noise", [0.0, 0.003])
def test_a_constant_and_so_much_each_is_a_sum(count: int, noise: float) -> None:
    values = (250.0 + 0.66 * BATCHES) * (1.0 + noise * np.array([0.5, -1.0, 0.3, 0.8, -0.2]))
    assert not taken(values, count).scale.logarithmic


@pytest.mark.parametrize("count", [3, 4, 5])
def test_a_power_is_a_product(count: int) -> None:
    assert taken(1e-8 * 1.3**BATCHES, count).scale.logarithmic
    assert taken(3.0 * BATCHES**-1.5, count).scale.logarithmic
    assert taken(7.0 * BATCHES**2.0, count).scale.logarithmic


def test_two_values_say_nothing() -> None:
    assert taken(250.0 + 0.66 * BATCHES, 2).scale.logarithmic


def test_a_density_is_that_of_a_value_given_the_others() -> None:
    process = GaussianProcess(FEATURES.columns, CLOSE)
    targets, known = np.array([0.3, -0.1, 0.8]), np.array([0.0, 0.1, 0.0])
    inputs = inputs_of(BATCHES[:3])
    view = process.view(inputs)
    covariance = process.covariance(view, view) + np.diag(process.noise + JITTER + known)
    whole = multivariate_normal(np.zeros(3), covariance).logpdf(targets)
    rest = multivariate_normal(np.zeros(2), covariance[1:, 1:]).logpdf(targets[1:])
    assert log_densities(process, inputs, targets, known)[0] == pytest.approx(whole - rest)


def test_a_logarithm_pays_for_what_it_stretches() -> None:
    scale = Scale(True, 1.0, 2.0)
    values = np.array([3.0, 50.0])
    plain = norm(1.0, 2.0).logpdf(np.log(values)) - np.log(values)
    assert norm.logpdf(scale(values)) + scale.log_slopes(values) == pytest.approx(plain)


def test_a_scale_cuts() -> None:
    scale = Scale(low=1.0, high=5.0, centre=1.0, divisor=2.0)
    assert scale(np.array([-7.0, 3.0, 9.0])) == pytest.approx([0.0, 1.0, 2.0])
    assert scale.cuts(np.array([-7.0, 3.0, 9.0])).tolist() == [True, False, True]
