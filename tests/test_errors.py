"""Errors say which known name was meant."""

from __future__ import annotations

import pytest

from autotune.errors import InputError, Location, Problem, listed, nearest, shorten, shorten_middle
from autotune.search.registry import STRATEGIES, strategy_class
from autotune.space.reading.reader import parse_spec


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("baies", "bayes"),
        ("BAYES", "bayes"),
        ("bayesian", "bayes"),
        ("tpe", "optuna-tpe"),
        ("NSGA2", "optuna-nsga2"),
        ("forest", "skopt-forest"),
        ("gp", ""),  # there are two
        ("simplex", ""),
    ],
)
def test_a_misspelt_strategy_is_named_in_the_file_and_in_the_shell(written: str, meant: str) -> None:
    said = f"did you mean {meant!r}?" if meant else ""
    assert nearest(written, STRATEGIES) == said
    with pytest.raises(InputError) as shell:
        strategy_class(written)
    with pytest.raises(InputError) as file:
        parse_spec(
            f"autotune: 1\nname: n\ncommand: [echo]\nknobs: {{a: 1..2}}\nsearch: {{strategy: {written}}}"
        )
    for error in (shell, file):
        assert [p.hint for p in error.value.problems if "strategy" in p.message] == [said]


def test_a_name_that_differs_in_capitals_is_given_as_it_is_known() -> None:
    assert nearest("TILE_m", ["tile_M", "x"]) == "did you mean 'tile_M'?"


def test_long_texts_and_lists_are_cut() -> None:
    assert shorten("a" * 60) == "a" * 60 and shorten("a" * 61) == "a" * 57 + "..."
    assert shorten_middle("a  b", 3) == "a b"
    assert (
        shorten_middle("what was wrong, and much more of it: what to do", 30)
        == "what was wron ... : what to do"
    )
    assert listed("abc") == "a, b, c" and listed(range(3), 2) == "0, 1, ... (3 in all)"


def test_what_problems_in_a_row_have_in_common_is_said_once() -> None:
    """Seven facts that no machine without a GPU has had seven lists of those that it has."""
    alike = [
        Problem(f"no {name}", Location("f", 1, place), "a, b", "do") for place, name in enumerate("xyz", 1)
    ]
    other = Problem("no w", Location("f", 2, 1), "a, b")
    said = str(InputError([*alike, other, alike[0]])).split("\n")
    tail = ["  expected: a, b", "  do"]
    heads = ["f:1:1: no x", "f:1:2: no y", "f:1:3: no z"]
    assert said == [*heads, *tail, "f:2:1: no w", "  expected: a, b", "f:1:1: no x", *tail]
    assert InputError([*alike]).problems == tuple(alike)
