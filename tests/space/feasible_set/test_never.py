"""Rules that no values satisfy, as bounds prove."""

import numpy as np
import pytest

from autotune.errors import InputError
from autotune.space import Choice, Flag, FloatRange, IntegerRange, Permutation, Space
from autotune.space.feasible_set.never import never_holds

KNOBS = [
    FloatRange("x", 0.0, 1.0),
    FloatRange("y", 0.5, 2.0),
    IntegerRange("n", 1, 2**50),
    Flag("on"),
    Choice("kind", ("a", "b")),
    Permutation("order", ("i", "j")),
    FloatRange("there", 0.0, 1.0, when="on"),
]


@pytest.mark.parametrize(
    ("rule", "never"),
    [
        ("x + y < 0", True),
        ("x * x < -1 or y > 3", True),
        ("x * n > 2 ** 51", True),
        ("x + y <= 3 and y > 2", True),
        ("x + y < 0.6", False),
        ("x > 2 or on", False),
        ("x == 0.5", False),
        ("x - x > 0.5", False),
        ("there > 2", False),
        ("kind == 'b' and order[0] == 'j' and x < 1", False),
        ("x / 0 > 1", False),
    ],
)
def test_what_bounds_prove(rule: str, never: bool) -> None:
    space = Space(KNOBS, [rule])
    assert never_holds(space.constraints[0], {knob.name: knob for knob in space.knobs}) == never


def test_it_is_said() -> None:
    with pytest.raises(
        InputError, match=r"no configuration satisfies 'x \+ y < 0': it is false for all values"
    ):
        Space(KNOBS, ["x + y < 0"]).sample(np.random.default_rng(0))
