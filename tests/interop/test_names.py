"""Names of other tools' parameters become names that rules can speak of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.interop.names import doubtful, knob_name, knob_names
from autotune.space.language.syntax import FUNCTIONS, ROOTS, WORDS, check_name


@pytest.mark.parametrize(
    ("name", "legal"),
    [
        ("tile_m", "tile_m"),
        ("model/lr", "model_lr"),
        ("n.units-2", "n_units_2"),
        ("2d", "_2d"),
        ("", "_"),
        ("max", "max_"),
        ("größe", "größe"),
    ],
)
def test_what_a_name_becomes(name: str, legal: str) -> None:
    assert knob_name(name) == legal


@given(st.one_of(st.text(max_size=12), st.sampled_from(sorted(FUNCTIONS | WORDS | ROOTS))))
def test_any_name_becomes_one_that_a_knob_can_have(name: str) -> None:
    check_name(knob_name(name))


@pytest.mark.parametrize(
    ("names", "called"),
    [
        (["a/b", "c"], ["a_b", "c"]),
        (["a/b", "a-b", "a b"], ["a_b", "a_b_2", "a_b_3"]),
        (["a/b", "a_b"], ["a_b_2", "a_b"]),
        (["a/b", "a-b", "a_b_2"], ["a_b", "a_b_3", "a_b_2"]),
    ],
)
def test_each_name_gets_another(names: list[str], called: list[str]) -> None:
    assert knob_names(names) == dict(zip(names, called, strict=True))


@given(st.lists(st.text("a_/.2", max_size=5), unique=True, max_size=8))
def test_all_names_are_told_apart_and_stay_when_others_come(names: list[str]) -> None:
    called = knob_names(names)
    assert len(set(called.values())) == len(names)
    for name in called.values():
        check_name(name)
    if names and knob_name(names[-1]) != names[-1]:
        assert knob_names(names[:-1]).items() <= called.items()


def test_a_rule_that_may_mean_either_is_said() -> None:
    names = knob_names(["a/b", "a.b", "c"])
    assert doubtful(names, {"a_b", "c"}) == [
        "'a_b' in the constraints is the parameter 'a/b'; 'a.b' is 'a_b_2'"
    ]
    assert doubtful(names, {"c"}) == []
    assert doubtful(names, {"a_b", "a_b_2"}) == []
