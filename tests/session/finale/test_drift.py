"""Whether a machine was another one in the finale."""

from __future__ import annotations

import math

import pytest

from autotune.session.finale.drift import drift, say_drift


@pytest.mark.parametrize(
    ("searched", "again", "factor"),
    [
        ({"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 5.0}, 2.5),
        ({"a": 1.0, "b": 2.0}, {"a": 0.5, "b": 0.5}, 0.5),
        ({"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 1.9}, 1.0),
        ({"a": 1.0, "b": 2.0}, {"a": 3.0, "c": 5.0}, 1.0),
        ({"a": -1.0, "b": 2.0}, {"a": 3.0, "b": 5.0}, 1.0),
        ({"a": 1.0, "b": 2.0}, {"a": math.inf, "b": 5.0}, 1.0),
        ({}, {}, 1.0),
    ],
)
def test_it_is_what_all_have_in_common(
    searched: dict[str, float], again: dict[str, float], factor: float
) -> None:
    assert drift(searched, again) == factor


def test_only_what_is_much_is_said() -> None:
    assert say_drift(1.4) == say_drift(1.0) == say_drift(0.7) == ""
    assert "2 times as large" in say_drift(2.0)
    assert "4 times as small" in say_drift(0.25)
