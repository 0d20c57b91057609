"""Rules leave exactly the rows that they were made of."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.errors import InputError
from autotune.interop.space_files.exact_rules import boxes, combinations, exact_rules
from autotune.space.knobs import Choice
from autotune.space.space import Space

KNOBS = {"a": [16, 32, 64], "b": [1, 2, 4, 8], "c": ["x'", "y\\"], "d": [True, False]}
EVERYTHING = list(product(*KNOBS.values()))


def left(rows: list[tuple[object, ...]]) -> set[tuple[object, ...]]:
    names = [Choice(name, tuple(values)) for name, values in KNOBS.items()]
    space = Space(names, exact_rules(KNOBS, rows))
    return {tuple(row[name] for name in KNOBS) for row in space.feasible}


@settings(max_examples=60, deadline=None)
@given(st.sets(st.sampled_from(EVERYTHING), min_size=1))
def test_exactly_the_rows_are_left(rows: set[tuple[object, ...]]) -> None:
    assert left(sorted(rows, key=str)) == rows


def test_all_combinations_need_no_rule() -> None:
    assert exact_rules(KNOBS, EVERYTHING) == []
    assert combinations(KNOBS) == len(EVERYTHING) == 48


def test_what_differs_in_one_knob_is_one_box() -> None:
    found = boxes([(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)])
    assert len(found) == 2
    assert sorted(cell for box in found for cell in product(*box)) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]
    assert exact_rules({"a": [1, 2], "b": [3, 4]}, [(1, 3), (2, 3), (2, 4)]) in (
        ["b == 3 or (a == 2 and b == 4)"],
        ["(a == 1 and b == 3) or a == 2"],
    )


@pytest.mark.parametrize("flag", [True, False])
def test_values_that_rules_cannot_tell_apart_are_refused(flag: bool) -> None:
    """More than the list was left, without a word."""
    knobs = {"a": [int(flag), flag, 2], "b": [1, 2]}
    with pytest.raises(InputError, match=r"a has the values .*, which rules cannot tell apart"):
        exact_rules(knobs, [(int(flag), 1), (flag, 2), (2, 1), (2, 2)])
    assert exact_rules(knobs, list(product(*knobs.values()))) == []
    assert exact_rules(knobs, [(int(flag), 1), (flag, 1), (2, 1), (2, 2)]) != []


def test_long_lists_become_several_rules_of_a_length_that_can_be_read() -> None:
    rows = [row for place, row in enumerate(EVERYTHING) if place % 5 in (0, 2)]
    rules = exact_rules(KNOBS, rows)
    assert len(rules) > 1
    assert left(rows) == set(rows)
    without = [row for row in rows if row[0] != 32]  # nor may a value that does not occur come back
    assert len(exact_rules(KNOBS, without)) > 1
    assert left(without) == set(without)


def test_values_that_rules_cannot_tell_apart_may_be_in_a_long_list_that_does_not() -> None:
    """It was refused, as it was split by the knob that has them."""
    knobs = {**KNOBS, "a": [1, True, 64]}
    others = list(product(*(KNOBS[name] for name in "bcd")))
    half = [
        row for place, row in enumerate(others) if place.bit_count() % 2
    ]  # no two differ in one knob alone
    rest = [row for row in others if row not in half]
    rows = [*((1, *row) for row in half), *((True, *row) for row in half), *((64, *row) for row in rest)]
    rules = exact_rules(knobs, rows)
    assert len(rules) > 1
    space = Space([Choice(name, tuple(values)) for name, values in knobs.items()], rules)
    assert sorted(repr(tuple(row[name] for name in knobs)) for row in space.feasible) == sorted(
        map(repr, rows)
    )
    with pytest.raises(InputError, match="rules cannot tell apart"):
        exact_rules(knobs, rows[1:])
