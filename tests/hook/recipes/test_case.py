"""How far two cases lie apart, and what may be a key."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import InputError
from autotune.hook.recipes.case import Case

VALUES = st.fixed_dictionaries(
    {
        "m": st.integers(1, 10**6),
        "scale": st.floats(1e-3, 1e3),
        "causal": st.booleans(),
        "how": st.sampled_from(["relu", "none"]),
    }
)
CASES = st.builds(Case, VALUES, st.fixed_dictionaries({"x": st.sampled_from(["float16", "float32"])}))


@given(CASES, CASES)
def test_it_is_a_distance_among_those_that_can_be_compared(one: Case, other: Case) -> None:
    assert one.distance(one) == 0.0
    assert one.distance(other) == other.distance(one)
    alike = one.types == other.types and all(one.values[n] == other.values[n] for n in ("causal", "how"))
    assert (one.distance(other) is not None) == alike


def test_a_factor_of_two_in_one_number_is_one() -> None:
    case = Case({"m": 1024, "n": 512}, {})
    assert case.distance(Case({"m": 2048, "n": 512}, {})) == 1.0
    assert case.distance(Case({"m": 512, "n": 1024}, {})) == pytest.approx(math.sqrt(2))


def test_keys_of_all_kinds() -> None:
    given = {
        "n": np.int64(7),
        "eps": np.float32(0.5),
        "how": "relu",
        "bias": None,
        "causal": True,
        "other": [],
    }
    case = Case.of(["n", "eps", "how", "bias", "causal"], given)
    assert case == Case({"n": 7, "eps": 0.5, "how": "relu", "bias": "None", "causal": True}, {})


def test_what_is_no_key_is_said() -> None:
    with pytest.raises(InputError) as raised:
        Case.of(["n", "shape"], {"shape": (1, 2)})
    assert "the key 'n' is not among the arguments of the call" in str(raised.value)
    assert "the key 'shape' is a tuple" in str(raised.value)
