"""The functions have the optimum that the benchmark says, and a search of them can be repeated."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.smooth_functions import FUNCTIONS, mean_logarithms, regrets, table

OPTIMA = {
    "Branin": (0.5428, 0.1517),
    "Ackley 2": (0.3, 0.3),
    "Hartmann 3": (0.114614, 0.555649, 0.852547),
    "valley 3": (0.35, 0.475, 0.6),
    "Hartmann 6": (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573),
    "six-hump camel": (0.51497, 0.32185),
    "Rosenbrock 3": (2 / 3,) * 3,
    "Levy 4": (0.55,) * 4,
    "valley 4": tuple(np.linspace(0.35, 0.6, 4)),
    "Styblinski-Tang 5": (0.2096466,) * 5,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_optimum_is_where_it_is_known_to_be(name: str) -> None:
    function = FUNCTIONS[name]
    assert function.above(np.array(OPTIMA[name])) == pytest.approx(0.0, abs=2e-3)
    rng = np.random.default_rng(1)
    assert min(function.above(at) for at in rng.random((2000, function.knobs))) > -1e-4


def test_a_search_is_repeated_by_its_seed() -> None:
    once, again = (regrets("Branin", "random", seed=3, tries=12) for _ in range(2))
    assert once == again and once == sorted(once, reverse=True)


def test_the_table_has_a_line_for_each_function() -> None:
    runs = {(name, way): [[3.0 - n / 30] * 30 for n in range(2)] for name in FUNCTIONS for way in ("a", "b")}
    *lines, ranks, means = table(["a", "b"], runs, [10, 20, 30])
    assert len(lines) == len(FUNCTIONS) + 2
    assert ranks == "| **mean rank** after 10, 20, 30 | 1.50, 1.50, 1.50 | 1.50, 1.50, 1.50 |"
    assert means == "| mean decimal logarithm | 0.47, 0.47, 0.47 | 0.47, 0.47, 0.47 |"


def test_a_regret_below_the_noise_counts_as_the_noise() -> None:
    runs = {("Branin", "a"): [[10.0, 1e-9], [1.0, 1e-3]], ("Branin", "b"): [[1e9, 1e9]]}
    assert mean_logarithms("a", runs, [1, 2]) == "0.50, -2.00"
