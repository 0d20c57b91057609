"""Any list of objects as a knob."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.interop.choices import Choices
from autotune.space.knobs import Choice, Flag, OrderedValues

OBJECTS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(),
    st.text(max_size=3),
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
    st.sampled_from(["None", "nan", "(0, 1)", "1"]),
)


@pytest.mark.parametrize(
    ("objects", "kind", "labels"),
    [
        ([16, 32, 64], OrderedValues, (16, 32, 64)),
        ([64, 32.5, 16], OrderedValues, (64, 32.5, 16)),
        ([1, 3, 2], Choice, (1, 3, 2)),
        ([True, False], Flag, (True, False)),
        ([True], Choice, (True,)),
        ([None, "None", "x"], Choice, ("None", "None (1)", "x")),
        (["None (2)", "None", None], Choice, ("None (2)", "None", "None (2) (2)")),
        ([1, 1.0, True], Choice, (1, "1.0 (1)", True)),
        ([np.int64(2), np.float64(4.0)], OrderedValues, (2, 4.0)),
        ([(1, 2), math.nan], Choice, ("(1, 2)", "nan")),
    ],
)
def test_what_a_list_becomes(objects: list[Any], kind: type, labels: tuple[Any, ...]) -> None:
    choices = Choices.of(objects)
    assert choices.labels == labels
    assert isinstance(choices.knob("k"), kind)


@given(st.lists(OBJECTS, min_size=1, max_size=6))
def test_every_object_is_found_by_its_label(objects: list[Any]) -> None:
    choices = Choices.of(objects)
    knob = choices.knob("k")
    assert knob.cardinality == len(objects)
    for place, one in enumerate(objects):
        label = knob.canonical(choices.labels[place])
        assert choices.object(label) is objects[place] or choices.object(label) == one


def test_an_empty_list_and_a_strange_label() -> None:
    with pytest.raises(ValueError, match="nothing to choose"):
        Choices.of([])
    with pytest.raises(KeyError):
        Choices.of([1]).object(2)
