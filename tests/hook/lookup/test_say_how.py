"""How sure a recipe is, in words."""

from __future__ import annotations

import math

import pytest

from autotune.hook.lookup.say_how import say_speedup
from autotune.hook.recipes.recipe import Speedup


@pytest.mark.parametrize(
    ("speedup", "said"),
    [
        (Speedup(1.42, 1.4, 1.44), "1.42x [1.4, 1.44]"),
        (Speedup(2.5, 1.2, math.inf), "2.5x [1.2, ...]"),
        (Speedup(1463.0, 1401.0, 1520.0), "1,460x [1,400, 1,520]"),
        (Speedup(999.7, 10.0, 2e9), "1,000x [10, 2e+09]"),
    ],
)
def test_a_ratio_is_written_in_full_as_long_as_people_can_read_that(speedup: Speedup, said: str) -> None:
    assert say_speedup(speedup) == said
