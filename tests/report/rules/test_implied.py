"""What is said to be decided is so for every workload that could come so far."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.report.rules.guards import Surroundings, guard
from autotune.report.rules.implied import Known, facts_of
from autotune.space.language.rule import compiled
from autotune.space.language.syntax import Node

DECIDED = [
    (["m <= 20"], "64 <= m", False),
    (["m <= 20"], "m <= 20", True),
    (["m <= 20"], "m < 21", True),
    (["not (16 <= m)"], "64 <= m", False),
    (["not (m % 4 == 0)"], "m % 8 == 0", False),
    (["m == 8"], "m % 8 == 1", None),
    (["m % 8 == 0"], "m % 4 == 0", True),
    (["not (4 <= m and m % 4 == 0)"], "8 <= m and m % 8 == 0 and n > 3", False),
    (["m > 300"], "64 <= m and m >= 16", True),
    (["kind == 'half'"], "kind == 'single'", False),
    (["m * n <= 64"], "m * n > 100", False),
    (["not (causal or m > 4)"], "causal", False),
    (["m <= 20"], "n <= 20", None),
    (["m <= 20"], "m <= 10", None),
    (["not (m % 8 == 0)"], "m % 4 == 0", None),
    (["not (m > 4 and n > 4)"], "m > 5", None),
    (["not (m > 4 and n > 4)", "n > 8"], "m > 5", False),
    ([], "1 < m <= 3", None),
]


def read(text: str) -> Node:
    """The condition as a guard has it, without its place in a text."""
    space = {"constraints": [text], "knobs": {}, "facts": {}}
    return guard(Surroundings(space, {}, frozenset(("m", "n", "kind", "causal"))), {})


@pytest.mark.parametrize(("before", "condition", "decided"), DECIDED)
def test_what_conditions_say_of_one_another(before: list[str], condition: str, decided: bool | None) -> None:
    known = Known()
    for one in before:
        known = known.after(read(one.removeprefix("not ")), holds=not one.startswith("not "))
    assert known.decides(read(condition)) is decided


CONDITIONS = [
    *(
        f"{sides}"
        for n in (2, 3, 4)
        for sides in (f"m <= {n}", f"{n} < m", f"m == {n}", f"m != {n}", f"m % {n} == 0")
    ),
    *(
        "m <= 2.5",
        "n >= 3",
        "m * n <= 6",
        "kind == 'a'",
        "kind != 'a'",
        "kind in ['a', 'b']",
        "m - n < 1",
        "1 < n <= 3",
    ),
]
parts = st.recursive(
    st.sampled_from(CONDITIONS),
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("(not {})".format, inner),
    ),
    max_leaves=4,
)
workloads = [{"m": m, "n": n, "kind": kind} for m in range(1, 7) for n in range(1, 5) for kind in "abc"]


@given(st.lists(st.tuples(parts, st.booleans()), max_size=3), parts)
def test_nothing_is_decided_that_is_not(before: list[tuple[str, bool]], condition: str) -> None:
    known, possible = Known(), workloads
    for text, holds in before:
        known = known.after(read(text), holds)
        asked = compiled(read(text))
        possible = [workload for workload in possible if bool(asked(workload)) == holds]
    decided = known.decides(read(condition))
    answers = {bool(compiled(read(condition))(workload)) for workload in possible}
    assert decided is None or answers <= {decided}
    assert all(facts_of(read(text)) for text, _ in before)
