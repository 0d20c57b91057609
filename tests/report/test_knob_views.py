"""Values of knobs as places, features and groups."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from autotune.report.knob_views import (
    bins_of,
    feature_columns,
    knob_views,
    positions,
    say_configuration,
    say_value_of,
)

DOCUMENT = {
    "space": {
        "knobs": {
            "tile": {"values": [1, 2, 4], "default": 1},
            "rate": {"range": [1e-4, 1.0], "scale": "log", "default": 1e-3},
            "mode": {"choices": ["a", "b", "c"], "default": "a"},
            "on": {"flag": True, "default": True},
            "order": {"permutation": ["i", "j"], "default": ["i", "j"]},
            "place": {"assign": ["x", "y"], "to": [0, 1], "default": {"x": 0, "y": 0}},
        }
    }
}
TILE, RATE, MODE, ON, ORDER, PLACE = knob_views(DOCUMENT)


def test_places_follow_the_knob() -> None:
    assert positions(TILE, [4, 1, None]).tolist()[:2] == [2.0, 0.0]
    assert math.isnan(positions(TILE, [None])[0])
    assert np.allclose(positions(RATE, [1e-2, 1.0]), [math.log(1e-2), 0.0])
    assert positions(MODE, ["c", "a"]).tolist() == [2.0, 0.0]


def test_four_and_four_point_nothing_are_the_same() -> None:
    assert positions(TILE, [4, 4.0]).tolist() == [2.0, 2.0]


def test_features_have_a_column_for_each_thing_to_know() -> None:
    assert feature_columns(TILE, [1, 4]).shape == (2, 1)
    assert feature_columns(ON, [True, False]).ravel().tolist() == [1.0, 0.0]
    assert feature_columns(MODE, ["a", "b", "c"]).tolist() == np.eye(3).tolist()
    assert feature_columns(ORDER, [("j", "i")]).tolist() == [[1.0, 0.0]]
    assert feature_columns(PLACE, [{"x": 0, "y": 1}, None]).shape == (2, 2)
    assert [feature_columns(knob, []).shape for knob in (ORDER, PLACE, TILE)] == [(0, 2), (0, 2), (0, 1)]


def test_a_knob_that_only_trials_have_is_a_choice() -> None:
    assert knob_views({}, ["lost"])[0].name == "lost"
    assert knob_views({"space": None}, [])[:] == ()


VALUES = st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=5), st.booleans())


@given(st.lists(VALUES, max_size=40))
def test_whatever_stands_in_a_column_has_a_group_or_none(column: list[object]) -> None:
    for knob in (TILE, RATE, MODE):
        bins = bins_of(knob, column, 5)
        assert len(bins.places) == len(column)
        assert len(bins.labels) <= 5
        assert all(-1 <= place < max(len(bins.labels), 1) for place in bins.places)


def test_many_values_are_put_together() -> None:
    bins = bins_of(RATE, [10.0 ** -(n / 10) for n in range(40)], 4)
    assert len(bins.labels) == 4 and " to " in bins.labels[0]
    assert np.bincount(bins.places).tolist() == [10, 10, 10, 10]
    assert bins_of(MODE, [f"v{n}" for n in range(9)], 3).labels[-1] == "7 others"


def test_groups_that_lie_close_together_have_names_of_their_own() -> None:
    column = [0.1 + 1e-4 * n for n in range(40)]
    labels = bins_of(RATE, column, 8).labels
    assert labels[:2] == ("0.1 to 0.1004", "0.1005 to 0.1009") and len(set(labels)) == 8
    assert bins_of(RATE, [0.1, 0.10000001], 8).labels == ("0.1", "0.10000001")


def test_values_are_said_shortly() -> None:
    assert [say_value_of(v) for v in (True, 0.1 + 0.2, (1, 2), {"a": 1}, None, "", ("", "j"))] == [
        "true",
        "0.3",
        "1, 2",
        "a: 1",
        "-",
        '""',
        '"", j',
    ]


def test_in_a_configuration_a_list_is_told_from_the_knob_after_it() -> None:
    """``order=i, j, fused=true`` was said."""
    configuration = {"order": ("i", "j"), "fused": True, "place": {"head": "cpu"}, "lr": 0.1}
    assert say_configuration(configuration) == "order=[i, j], fused=true, place={head: cpu}, lr=0.1"
