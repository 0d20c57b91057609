"""Rules leave exactly the rows that they were made of."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

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


def test_long_lists_become_several_rules_of_a_length_that_can_be_read() -> None:
    rows = [row for place, row in enumerate(EVERYTHING) if place % 5 in (0, 2)]
    rules = exact_rules(KNOBS, rows)
    assert len(rules) > 1
    assert left(rows) == set(rows)
