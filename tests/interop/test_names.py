"""Names of other tools' parameters become names that rules can speak of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import InputError
from autotune.interop.names import knob_name, knob_names
from autotune.space.syntax import FUNCTIONS, ROOTS, WORDS, check_name


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


def test_two_that_become_the_same_are_refused() -> None:
    assert knob_names(["a/b", "c"]) == {"a/b": "a_b", "c": "c"}
    with pytest.raises(InputError, match="'a/b' and 'a-b' are both called 'a_b'"):
        knob_names(["a/b", "a-b"])
