"""How many states are expected, and the order of variables that follows."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.space.feasible_set import bounds
from autotune.space.feasible_set.columns import column
from autotune.space.feasible_set.estimating import Estimates
from autotune.space.feasible_set.frontier import frontier
from autotune.space.feasible_set.ordering import arrange
from autotune.space.feasible_set.terms import Term, Terms


def variables(terms: Terms, sizes: list[int]) -> list[Term]:
    return [terms.variable(v, column(list(range(size)))) for v, size in enumerate(sizes)]


def repeats(term: Term) -> bool:
    """Whether an operand stands somewhere twice, as in ``x + x``: estimates count it once."""
    return len(set(term.arguments)) < len(term.arguments) or any(map(repeats, term.arguments))


def by_hand(terms: Terms, sizes: list[int], rules: list[Term], assigned: int) -> float:
    """As it is meant: from the terms that a diagram would remember, made and bounded one by one."""
    logs = [math.log(size) for size in sizes]

    def everything(mask: int) -> float:
        return math.fsum(log for v, log in enumerate(logs) if mask >> v & 1)

    def values(term: Term) -> float:
        product = term.operation in ("*", "*%") and term.mask.bit_count() > 1
        most = everything(term.mask) * (0.8 if product else 1.0)
        return min(most, math.log(max(bounds.width(term.span), 1.0))) if term.integral else most

    begun = [rule for rule in rules if rule.mask & ~assigned]
    remembered = {term for rule in begun for term in frontier(terms, rule, assigned)}
    kept = math.fsum(map(values, remembered))
    return min(everything(assigned) - 0.7 * (len(rules) - len(begun)), kept) + 0.05 * len(remembered)


@settings(deadline=None, max_examples=80)
@given(st.permutations(range(5)), st.lists(st.integers(1, 6), min_size=5, max_size=5), st.data())
def test_an_estimate_is_that_of_what_is_remembered(
    order: list[int], sizes: list[int], data: st.DataObject
) -> None:
    terms = Terms()
    expressions = st.recursive(
        st.sampled_from([*variables(terms, sizes), terms.literal(3)]),
        lambda inner: st.tuples(
            st.sampled_from(["+", "*", "min", "-", "//"]), st.lists(inner, min_size=2, max_size=2)
        ).map(lambda made: terms.make(*made)),
        max_leaves=6,
    )
    tests = st.tuples(expressions, expressions).map(lambda pair: terms.make("<=", pair))
    tests = tests.filter(lambda test: not repeats(test))
    rules = data.draw(st.lists(tests, min_size=1, max_size=3, unique=True))
    estimates, assigned = Estimates(sizes, rules), 0
    for chosen in order:
        for variable in set(range(5)) - {v for v in range(5) if assigned >> v & 1}:
            expected = by_hand(terms, sizes, rules, assigned | 1 << variable)
            assert estimates.after(variable) == pytest.approx(expected, abs=1e-8)
        estimates.assign(chosen)
        assigned |= 1 << chosen


def test_an_order_of_many_variables_looks_at_each_pair_once(monkeypatch: pytest.MonkeyPatch) -> None:
    terms, sizes = Terms(), [4] * 200
    total = terms.make("+", variables(terms, sizes))
    looks, after = [0], Estimates.after

    def counted(estimates: Estimates, variable: int) -> float:
        looks[0] += 1
        return after(estimates, variable)

    monkeypatch.setattr(Estimates, "after", counted)
    order = arrange(sizes, [terms.make("<=", (total, terms.literal(100)))], [None] * 200)
    assert sorted(order) == list(range(200))
    assert looks[0] <= 200 * 201 // 2
