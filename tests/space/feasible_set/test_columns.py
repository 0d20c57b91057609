"""Columns and terms against evaluating one configuration at a time: equal to the last bit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune.space.configuration import Value
from autotune.space.feasible_set import bounds
from autotune.space.feasible_set.columns import ABSENT, DEFINED, INVALID, Column, apply, column, constant
from autotune.space.feasible_set.frontier import evaluate, frontier, spans
from autotune.space.feasible_set.lowering import Lowering
from autotune.space.feasible_set.parts import with_absent
from autotune.space.feasible_set.terms import Term, Terms
from autotune.space.knobs import IntegerRange, OrderedValues
from autotune.space.knobs.knob import Knob
from autotune.space.language import compute
from autotune.space.language.binding import bind_rule
from autotune.space.language.rule import Rule
from tests.space.spaces import SmallSpace, small_spaces

THOROUGH = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])

INTEGERS = st.one_of(
    st.integers(-20, 20), st.integers(-(2**64), 2**64), st.sampled_from([2**53, 2**53 + 1, 2**62])
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = st.one_of(INTEGERS, FLOATS, st.booleans(), st.sampled_from([0.1, 0.2, 0.3, 1e308, -0.0]))

SCALAR = {**compute.BINARY, **compute.COMPARE, **compute.FUNCTION, "abs": abs}


def same(one: object, other: object) -> bool:
    """Equal as Python numbers, NaN to NaN, and of the same truth."""
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other)


@THOROUGH
@given(
    st.sampled_from(["+", "-", "*", "/", "//", "%", "**", "ceildiv", "min", "max"]),
    st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=6),
    st.sampled_from(["any", "integers", "floats"]),
)
def test_arithmetic_is_pythons(operation: str, pairs: list[tuple[float, float]], kind: str) -> None:
    if kind == "integers":
        pairs = [(math.floor(a), math.floor(b)) for a, b in pairs]
    if kind == "floats":
        pairs = [(float(a), float(b)) for a, b in pairs]
    left, right = (list(side) for side in zip(*pairs, strict=True))
    result = apply(operation, (column(left), column(right)))
    for place, (a, b) in enumerate(pairs):
        try:
            expected = SCALAR[operation](a, b)
        except compute.Undefined:
            assert result.undefined is not None and result.undefined[place] == INVALID
            continue
        assert result.undefined is None or result.undefined[place] == DEFINED
        assert same(result.data[place : place + 1].tolist()[0], expected), (operation, a, b)


@THOROUGH
@given(
    st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
    st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=6),
)
def test_comparisons_are_pythons(operation: str, pairs: list[tuple[float, float]]) -> None:
    left, right = (list(side) for side in zip(*pairs, strict=True))
    result = apply(operation, (column(left), column(right)))
    assert result.data.tolist() == [SCALAR[operation](a, b) for a, b in pairs]


@THOROUGH
@given(st.lists(NUMBERS, min_size=1, max_size=6))
def test_functions_of_one_number_are_pythons(numbers: list[float]) -> None:
    logarithm = apply("log2", (column(numbers),))
    for place, number in enumerate(numbers):
        if number <= 0:
            assert logarithm.undefined is not None and logarithm.undefined[place] == INVALID
        else:
            assert logarithm.data[place] == math.log2(number)
    assert apply("abs", (column(numbers),)).data.tolist() == [abs(number) for number in numbers]
    assert apply("neg", (column(numbers),)).data.tolist() == [-number for number in numbers]


def test_columns_take_the_narrowest_exact_type() -> None:
    assert column([True, False]).data.dtype == bool
    assert column([1, True]).data.dtype == np.int64
    assert column([1.5, 2.0]).data.dtype == np.float64
    assert column([1, 2.5]).data.dtype == object
    assert column([2**80]).data.dtype == object
    assert column(["a", (1, 2)]).data.tolist() == ["a", (1, 2)]


def test_integers_past_64_bits_stay_exact() -> None:
    big = column([2**40, 3])
    assert apply("*", (big, big, big)).data.tolist() == [2**120, 27]
    assert apply("<=", (apply("*", (big, big)), constant(2**79))).data.tolist() == [False, True]


def test_the_first_undefined_operand_wins() -> None:
    absent = Column(np.zeros(1, np.int64), np.array([ABSENT], np.int8))
    invalid = apply("/", (column([1]), column([0])))
    assert apply("+", (absent, invalid)).undefined.tolist() == [ABSENT]  # type: ignore[union-attr]
    assert apply("+", (invalid, absent)).undefined.tolist() == [INVALID]  # type: ignore[union-attr]


def test_what_and_and_or_skip_is_not_needed() -> None:
    yes, no = column([True]), column([False])
    absent = Column(np.zeros(1, bool), np.array([ABSENT], np.int8))
    assert apply("and", (no, absent)).undefined is None
    assert apply("or", (yes, absent)).data.tolist() == [True]
    assert apply("and", (yes, absent)).undefined is not None
    assert apply("or", (absent, yes)).undefined is not None


# --- whole rules ---------------------------------------------------------------------------------


def grid(space: SmallSpace) -> list[dict[str, Value]]:
    """Every combination of knob values, each also absent where the knob is conditional."""
    rows: list[dict[str, Value]] = [{}]
    for knob in space.knobs:
        options: list[dict[str, Value]] = [{knob.name: value} for value in knob.cells[0].values]
        if knob.when is not None:
            options.append({})
        rows = [{**row, **option} for row in rows for option in options][:300]
    return rows


def single_cells(space: SmallSpace) -> SmallSpace | None:
    """The part of a space whose knobs are one cell each."""
    names = {knob.name for knob in space.knobs if len(knob.cells) == 1 and not knob.distinct}
    names -= {knob.name for knob in space.knobs if "[" in knob.cells[0].name}
    kept = tuple(knob for knob in space.knobs if knob.name in names)
    rules = [*space.constraints, *(knob.when for knob in space.knobs if knob.when is not None)]
    rules = [rule for rule in rules if rule.knobs and rule.knobs <= names]
    return SmallSpace(kept, tuple(rules)) if rules else None


class Lowered:
    """The rules of a space as terms over one variable a knob."""

    def __init__(self, space: SmallSpace) -> None:
        self.space = space
        self.terms = Terms()
        self.number = {knob.name: number for number, knob in enumerate(space.knobs)}
        self.variables = [self._variable(knob) for knob in space.knobs]

    def _variable(self, knob: Knob) -> Term:
        values = with_absent(column(knob.cells[0].values), knob.when is not None)
        return self.terms.variable(self.number[knob.name], values)

    def rule(self, rule: Rule) -> list[Term]:
        by_name = {knob.name: knob for knob in self.space.knobs}
        return Lowering(by_name, lambda name, _: self.variables[self.number[name]], self.terms).rule(rule)

    def columns(self, rows: Sequence[Mapping[str, Value]]) -> dict[Term, Column]:
        """The variables' columns for these rows."""
        found = {}
        for knob, variable in zip(self.space.knobs, self.variables, strict=True):
            gone = len(knob.cells[0].values)
            places = [knob.split(row[knob.name])[0] if knob.name in row else gone for row in rows]
            found[variable] = self.terms.columns[self.number[knob.name]].take(np.array(places))
        return found


@pytest.mark.long
@THOROUGH
@given(small_spaces())
def test_a_lowered_rule_holds_where_the_rule_does(drawn: SmallSpace) -> None:
    space = single_cells(drawn)
    if space is None:
        return
    lowered = Lowered(space)
    rows = grid(space)
    known = lowered.columns(rows)
    for rule in space.constraints:
        expected = [rule.holds(row) for row in rows]
        found = np.ones(len(rows), dtype=bool)
        for term in lowered.rule(rule):
            assert term.total
            found &= np.broadcast_to(evaluate(term, known, lowered.terms).data.astype(bool), len(rows))
        assert found.tolist() == expected, rule.text


@pytest.mark.long
@THOROUGH
@given(small_spaces(), st.randoms(use_true_random=False))
def test_the_frontier_is_all_that_has_to_be_remembered(drawn: SmallSpace, random: Random) -> None:
    """Assigning one variable after another, from the last frontier alone, gives the same; and bounds hold."""
    space = single_cells(drawn)
    if space is None:
        return
    lowered = Lowered(space)
    rows = grid(space)
    known = lowered.columns(rows)
    order = list(range(len(space.knobs)))
    random.shuffle(order)
    for rule in space.constraints:
        for term in lowered.rule(rule):
            expected = np.broadcast_to(evaluate(term, known, lowered.terms).data.astype(bool), len(rows))
            assigned = 0
            remembered: dict[Term, Column] = {}
            for number in order:
                variable = lowered.variables[number]
                now = {**remembered, variable: known[variable]}
                after = assigned | 1 << number
                wanted = frontier(lowered.terms, term, after)
                remembered = {one: evaluate(one, now, lowered.terms, assigned) for one in wanted}
                assigned = after
                spanned = {one: bounds.of_column(c) for one, c in remembered.items()}
                span = spans(term, spanned, lowered.terms, assigned, assigned, {})
                assert not (bounds.certainly_true(span) & ~expected).any(), (rule.text, assigned)
                assert not (bounds.certainly_false(span) & expected).any(), (rule.text, assigned)
            if term.mask:
                assert remembered.keys() == {term}
                assert remembered[term].data.astype(bool).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("text", "assigned", "remembered"),
    [
        ("(a * b + 2 * c) * (d + 2 * c) <= 100", {"a", "b"}, 1),
        ("(a * b + 2 * c) * (d + 2 * c) <= 100", {"a", "c"}, 2),
        ("a + b + c + d <= 9", {"a", "c", "d"}, 1),
        ("(3 * a + 5 * b + 7 * c + d) % 4 == 1", {"a", "b", "c"}, 1),
        ("not (a == 1 and b == 2 and c == 3)", {"a", "b"}, 1),
        ("max(a, b, c, d) <= 3", {"a", "c"}, 1),
    ],
)
def test_closed_subexpressions_are_folded(text: str, assigned: set[str], remembered: int) -> None:
    knobs = tuple(IntegerRange(name, 1, 9) for name in "abcd")
    lowered = Lowered(SmallSpace(knobs, ()))
    (term,) = lowered.rule(bind_rule(text, knobs=knobs))
    mask = sum(1 << lowered.number[name] for name in assigned)
    found = frontier(lowered.terms, term, mask)
    assert len(found) == remembered
    if "%" in text:
        (one,) = found
        assert bounds.width(one.span) == 4


def test_float_sums_keep_their_order() -> None:
    """0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1."""
    knobs = (
        OrderedValues("a", (0.1, 0.3)),
        OrderedValues("b", (0.2, 0.2000000001)),
        OrderedValues("c", (0.3, 0.1)),
    )
    lowered = Lowered(SmallSpace(knobs, ()))
    (term,) = lowered.rule(bind_rule("a + b + c == 0.6", knobs=knobs))
    assert not frontier(lowered.terms, term, 0b110) <= frontier(lowered.terms, term, 0b111)
    assert len(frontier(lowered.terms, term, 0b110)) == 2
    rows = [{"a": 0.1, "b": 0.2, "c": 0.3}, {"a": 0.3, "b": 0.2, "c": 0.1}]
    found = evaluate(term, lowered.columns(rows), lowered.terms).data.tolist()
    assert found == [0.1 + 0.2 + 0.3 == 0.6, 0.3 + 0.2 + 0.1 == 0.6] == [False, True]
