"""The functions have the optimum that the benchmark says, and a search of them can be repeated."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from autotune.space.configuration import Configuration, Value
from autotune.space.space import Space
from benchmarks.smooth_functions import (
    FUNCTIONS,
    KINDS,
    WHOLE,
    Form,
    above,
    made_knobs,
    mean_logarithms,
    regrets,
    table,
)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_optimum_is_where_it_is_known_to_be(name: str) -> None:
    function = FUNCTIONS[name]
    assert function.above(np.array(function.lowest_at)) == pytest.approx(0.0, abs=2e-3)
    rng = np.random.default_rng(1)
    assert min(function.above(at) for at in rng.random((2000, function.knobs))) > -1e-4


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("form", get_args(Form))
def test_the_optimum_is_among_the_configurations_of_each_form(name: str, form: Form) -> None:
    function = FUNCTIONS[name]
    space = Space(made_knobs(function, form, np.random.default_rng(0)))
    best: dict[str, Value] = {"kind": "best"} if form == "mixed" else {}
    for number, at in enumerate(function.lowest_at):
        best[f"x{number}"] = round(WHOLE * at) if form == "integer" else at
    assert above(function, space.configuration(best)) < 0.01 * function.spread


def test_of_other_kinds_it_is_mirrored_and_higher() -> None:
    function = FUNCTIONS["valley 3"]
    for kind, height in KINDS.items():
        at = [at if kind == "best" else 1.0 - at for at in function.lowest_at]
        there = Configuration({"kind": kind, **{f"x{number}": x for number, x in enumerate(at)}})
        assert above(function, there) == pytest.approx(height * function.spread)


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
