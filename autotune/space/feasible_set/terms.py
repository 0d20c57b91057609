"""Rules as terms over variables: simplified, bounded, and shared where they are equal.

A rule's syntax tree is lowered to *terms*. Equal subexpressions become the same object, and chains
of ``+``, ``*``, ``min``, ``max``, ``and`` and ``or`` become one term with many operands wherever
regrouping them changes no result (integers; operands that are always defined). A sum or product under
``% m`` is kept modulo ``m``. Each term knows the bounds of its value over the whole space, and whether it can
be undefined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from autotune.space.configuration import Value
from autotune.space.feasible_set import bounds
from autotune.space.feasible_set.columns import (
    ABSENT,
    DEFINED,
    Column,
    apply,
    constant,
    defined,
    holds_integers,
    truth,
)

FOLDING = frozenset({"+", "*", "min", "max", "and", "or", "+%", "*%", "distinct"})
"""Operations whose operands may be folded a few at a time, in any order."""

_IDEMPOTENT = frozenset({"min", "max", "and", "or"})
"""Those of them for which it makes no difference how often an operand occurs."""

_BOOLEAN = frozenset(
    {"==", "!=", "<", "<=", ">", ">=", "in", "not", "and", "or", "holds", "active", "present"}
)


class Term:
    """One expression over variables, made by :class:`Terms` only: equal terms are identical.

    ``mask`` has a bit for each variable it mentions; ``integral``: every value is an integer (or a
    flag); ``absent``, ``invalid``: it can be undefined in that way; ``folds``: its operands may be folded
    a few at a time; ``span``: bounds of its value.
    """

    __slots__ = (
        "_span", "absent", "arguments", "data", "folds", "integral", "invalid", "mask", "number", "operation",
    )  # fmt: skip

    def __init__(self, number: int, operation: str, arguments: tuple[Term, ...], data: Any) -> None:
        self.number = number
        self.operation = operation
        self.arguments = arguments
        self.data = data
        self.mask = 0
        self.integral = False
        self.absent = False
        self.invalid = False
        self.folds = False
        self._span: bounds.Span | None = None

    @property
    def span(self) -> bounds.Span:
        """Computed when first asked for: many terms are made only to be looked up."""
        if self._span is None:
            self._span = bounds.combine(self.operation, [a.span for a in self.arguments], self.data)
        return self._span

    @property
    def total(self) -> bool:
        """Whether it has a value for every assignment."""
        return not (self.absent or self.invalid)

    def __repr__(self) -> str:
        if self.operation == "literal":
            return repr(self.data)
        if self.operation == "variable":
            return f"v{self.data}"
        return f"{self.operation}({', '.join(map(repr, self.arguments))})"


class Terms:
    """The table in which terms are made, so that equal ones are the same object."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Term] = {}
        self.columns: dict[int, Column] = {}
        """The values of each variable: one entry per class, in the order of the classes."""

    def variable(self, index: int, values: Column) -> Term:
        """The value of variable ``index``; ``values`` lists one for each of its classes."""
        self.columns[index] = values
        term, fresh = self._intern("variable", (), index)
        if fresh:
            term.mask = 1 << index
            term.absent = values.undefined is not None
            data = values.data if values.undefined is None else values.data[values.undefined == DEFINED]
            term.integral = holds_integers(data)
            term._span = bounds.of_values(data, sure=values.undefined is None)
        return term

    def literal(self, value: Value) -> Term:
        term, fresh = self._intern("literal", (), value)
        if fresh:
            term.integral = isinstance(value, int)
            term._span = bounds.of_values(constant(value).data, sure=True)
        return term

    def make(self, operation: str, arguments: Sequence[Term], data: Any = None) -> Term:
        """``operation`` over ``arguments``, simplified; ``data`` is the modulus, or a lookup table."""
        if operation == "-" and all(argument.integral for argument in arguments):
            return self.make("+", (arguments[0], self.make("neg", (arguments[1],))))
        if operation == "neg" and arguments[0].integral:
            return self.make("*", (self.literal(-1), arguments[0]))
        if operation == "pos":
            return arguments[0]
        if operation in FOLDING:
            return self._fold(operation, arguments, data)
        if operation == "%" and (reduced := self._reduced(*arguments)) is not None:
            return reduced
        if operation in ("holds", "active") and arguments[0].total and arguments[0].operation in _BOOLEAN:
            return arguments[0]
        return self._plain(operation, tuple(arguments), data)

    def _reduced(self, value: Term, modulus: Term) -> Term | None:
        """``value % m`` for a constant ``m`` > 0 as a sum or product of residues."""
        by = modulus.data
        if modulus.operation != "literal" or not isinstance(by, int) or by <= 0 or not value.folds:
            return None
        if value.operation not in ("+", "*") or not value.total or not value.integral:
            return None
        residues = [self.make("%", (argument, modulus)) for argument in value.arguments]
        return self.make(value.operation + "%", residues, by)

    def _fold(self, operation: str, arguments: Sequence[Term], data: Any) -> Term:
        """A chain of an associative operation, flattened and its constants folded where that is exact."""
        absent = any(argument.absent for argument in arguments)
        invalid = any(argument.invalid for argument in arguments)
        if operation in ("and", "or"):
            folds = not absent and not invalid
        else:
            folds = all(argument.integral for argument in arguments) and not (absent and invalid)
        if not folds:
            if operation in ("+", "*", "min", "max") and len(arguments) > 2:  # as written, two at a time
                head = self._fold(operation, arguments[:-1], data)
                return self._plain(operation, (head, arguments[-1]), data)
            return self._plain(operation, tuple(arguments), data)
        flat: list[Term] = []
        for argument in arguments:
            same = argument.folds and argument.operation == operation and argument.data == data
            flat += argument.arguments if same else (argument,)
        literals = [argument for argument in flat if argument.operation == "literal"]
        others = [argument for argument in flat if argument.operation != "literal"]
        if literals:
            folded = apply_term(operation, [constant(literal.data) for literal in literals], data)
            one = self.literal(_only(folded))
            if not others:
                return one
            if one.data != _NEUTRAL.get(operation):
                others.append(one)
        if operation in _IDEMPOTENT:
            others = list(dict.fromkeys(others))
        if len(others) == 1:  # also of 'and' and 'or', whose operands are true or false once bound
            return others[0]
        return self._plain(operation, tuple(sorted(others, key=lambda t: t.number)), data, folds=True)

    def _plain(
        self, operation: str, arguments: tuple[Term, ...], data: Any = None, folds: bool = False
    ) -> Term:
        term, fresh = self._intern(operation, arguments, data)
        if fresh:
            term.folds = folds
            for argument in arguments:
                term.mask |= argument.mask
            term.integral = _integral(operation, arguments, data)
            if operation in ("holds", "active", "present"):
                term.absent = term.invalid = False
            else:
                term.absent = any(argument.absent for argument in arguments)
                term.invalid = any(argument.invalid for argument in arguments) or _can_fail(
                    operation, arguments
                )
        if not term.mask and term.total:
            return self.literal(_only(_evaluate(term)))
        return term

    def _intern(self, operation: str, arguments: tuple[Term, ...], data: Any) -> tuple[Term, bool]:
        same = repr(data) if operation == "literal" else data  # repr tells 1, 1.0, True and -0.0 apart
        key = (operation, tuple(argument.number for argument in arguments), same)
        term = self._known.get(key)
        if term is not None:
            return term, False
        term = self._known[key] = Term(len(self._known), operation, arguments, data)
        return term, True


def _evaluate(term: Term) -> Column:
    """The column of a term without variables."""
    if term.operation == "literal":
        return constant(term.data)
    return apply_term(term.operation, [_evaluate(argument) for argument in term.arguments], term.data)


def _only(column: Column) -> Value:
    """The one value of a column of constants."""
    value: Value = column.data.item()
    return value


_NEUTRAL: Mapping[str, Any] = {"+": 0, "*": 1, "and": True, "or": False, "+%": 0, "*%": 1}


def _integral(operation: str, arguments: Sequence[Term], data: Any) -> bool:
    if operation == "lookup":
        return holds_integers(data.values)
    if operation in _BOOLEAN or operation in ("+%", "*%", "distinct"):
        return True
    if operation == "**":
        return all(a.integral for a in arguments) and bounds.at_least(arguments[1].span, 0)
    if operation in ("/", "log2"):
        return False
    return all(argument.integral for argument in arguments)


def _can_fail(operation: str, arguments: Sequence[Term]) -> bool:
    """Whether the operation itself can be impossible for some values of its operands."""
    if operation in ("/", "//", "%", "ceildiv"):
        return not (bounds.excludes_zero(arguments[1].span) and all(map(_modest, arguments)))
    if operation == "log2":
        return not (bounds.positive(arguments[0].span) and _modest(arguments[0]))
    if operation == "**":
        return not (_modest(arguments[0]) and bounds.at_least(arguments[1].span, 0) and bounds.at_most(
            arguments[1].span, 8
        ) and arguments[1].integral)  # fmt: skip
    if operation in ("+", "-", "*") and not all(argument.integral for argument in arguments):
        return not all(map(_modest, arguments))
    return False


def _modest(term: Term) -> bool:
    """Whether float arithmetic on the term can neither overflow nor raise."""
    return bounds.at_most(term.span, 1e30) and bounds.at_least(term.span, -1e30)


# --- computing them ----------------------------------------------------------------------------


def apply_term(operation: str, arguments: Sequence[Column], data: Any = None) -> Column:
    """:func:`apply`, and the operations that only terms have."""
    if operation in ("+%", "*%"):
        return _residue(operation[0], arguments, data)
    if operation == "distinct":
        return _distinct(arguments)
    (first, *_) = arguments
    if operation == "holds":
        good = truth(first)
        if first.undefined is not None:
            good = np.where(first.undefined == DEFINED, good, first.undefined == ABSENT)
        return Column(good)
    if operation == "active":
        return Column(truth(first) & defined(first))
    if operation == "present":
        here = np.ones(first.data.shape, dtype=bool) if first.undefined is None else first.undefined != ABSENT
        return Column(np.asarray(here))
    if operation == "lookup":
        return Column(data.values[np.minimum(first.data, len(data.values) - 1)], first.undefined)
    return apply(operation, arguments)


def _residue(operation: str, arguments: Sequence[Column], modulus: int) -> Column:
    """A sum or product modulo ``modulus``, reduced at every step."""
    by = constant(modulus)
    result = apply("%", (arguments[0], by))
    for argument in arguments[1:]:
        result = apply("%", (apply(operation, (result, argument)), by))
    return result


def _distinct(arguments: Sequence[Column]) -> Column:
    """The union of sets of items, given as bits, or -1 where two of them overlap."""
    used = arguments[0]
    for argument in arguments[1:]:
        clash = (used.data < 0) | (argument.data < 0) | ((used.data & argument.data) != 0)
        data = np.where(clash.astype(bool), -1, used.data | argument.data)
        undefined = apply("+", (Column(np.zeros((), dtype=np.int64), used.undefined), argument)).undefined
        used = Column(data, undefined)
    return used
