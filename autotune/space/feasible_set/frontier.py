"""What has to be remembered of a partly assigned configuration, for a rule.

Once some of the variables are assigned, a rule depends on them only through its :func:`frontier`: the largest
subexpressions whose variables are all assigned. In ``(bx*tx + 2*t) * (by*ty + 2*t) * (2 + sh) * 4 <= 49152``,
once ``bx`` and ``tx`` are set, only their product matters. The value of the whole rule, and its bounds, are
computed from what is remembered.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from autotune.space.feasible_set import bounds
from autotune.space.feasible_set.columns import Column, constant
from autotune.space.feasible_set.terms import Term, Terms, apply_term

_MANY = 8
"""From so many operands on it pays to fold their bounds once for all states."""


def frontier(terms: Terms, term: Term, assigned: int) -> frozenset[Term]:
    """The largest subexpressions of ``term`` whose variables are all in ``assigned`` (a bit mask)."""
    if not term.mask & assigned:
        return frozenset()
    if not term.mask & ~assigned:
        return frozenset((term,))
    found: set[Term] = set()
    closed = []
    for argument in term.arguments:
        if argument.mask and not argument.mask & ~assigned:
            closed.append(argument)
        elif argument.mask & assigned:
            found |= frontier(terms, argument, assigned)
    if closed and term.folds:
        found.add(terms.make(term.operation, closed, term.data))
    else:
        found.update(closed)
    return frozenset(found)


def evaluate(term: Term, known: Mapping[Term, Column], terms: Terms, assigned: int = 0) -> Column:
    """The column of ``term`` from those in ``known``: the frontier at ``assigned`` and new variables."""
    if term in known:
        return known[term]
    if term.operation == "literal":
        return constant(term.data)
    if term.folds:
        groups = split(term, known, terms, assigned)
        return apply_term(term.operation, [evaluate(g, known, terms, assigned) for g in groups], term.data)
    arguments = [evaluate(argument, known, terms, assigned) for argument in term.arguments]
    return apply_term(term.operation, arguments, term.data)


def split(term: Term, known: Container[Term], terms: Terms, assigned: int) -> Sequence[Term]:
    """The operands of a folding term, with those that are remembered folded together as a single one."""
    before = [a for a in term.arguments if a.mask and not a.mask & ~assigned]
    if len(before) < 2 or len(before) == len(term.arguments):
        return term.arguments
    partial = terms.make(term.operation, before, term.data)
    if partial not in known:
        return term.arguments
    return [
        partial,
        *(argument for argument in term.arguments if argument.mask & ~assigned or not argument.mask),
    ]


def spans(
    term: Term,
    known: Mapping[Term, bounds.Span],
    terms: Terms,
    assigned: int,
    reached: int,
    memo: dict[Term, bounds.Span],
) -> bounds.Span:
    """Bounds of ``term`` whatever the open variables are.

    ``known`` bounds the frontier at ``assigned`` and the variables in ``reached`` beyond it.
    """
    if term in known:
        return known[term]
    if not term.mask & reached:
        return term.span
    found = memo.get(term)
    if found is None:
        groups = _ahead(term, known, terms, assigned, reached) if term.folds else term.arguments
        operands = [spans(group, known, terms, assigned, reached, memo) for group in groups]
        found = memo[term] = bounds.combine(term.operation, operands, term.data)
    return found


def _ahead(term: Term, known: Container[Term], terms: Terms, assigned: int, reached: int) -> Sequence[Term]:
    """As :func:`split`, with those operands of which nothing is known as one: its span is always the same."""
    groups = split(term, known, terms, assigned)
    ahead = [group for group in groups if not group.mask & reached]
    if len(ahead) < _MANY or len(ahead) == len(term.arguments):
        return groups
    return [
        *(group for group in groups if group.mask & reached),
        terms.make(term.operation, ahead, term.data),
    ]
