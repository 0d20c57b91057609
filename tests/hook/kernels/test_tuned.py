"""What tells the calls of a tuned kernel apart."""

from __future__ import annotations

from itertools import combinations

from autotune.hook.kernels.tuned import call_key

PLACES = ((0, "n"),)


def test_equal_numbers_of_different_types_are_different_calls() -> None:
    by_place = [call_key(PLACES, (n,), {}) for n in (1, True, 1.0)]
    by_name = [call_key(PLACES, (), {"n": n}) for n in (1, True, 1.0)]
    for keys in (by_place, by_name):
        assert all(tuple(one) != tuple(other) for one, other in combinations(keys, 2))


def test_what_is_no_part_of_the_key_may_have_any_value_of_its_type() -> None:
    assert call_key(PLACES, (1, 2.0), {}) == call_key(PLACES, (1, 3.0), {})
    assert call_key(PLACES, (1,), {"flag": True}) == call_key(PLACES, (1,), {"flag": False})
