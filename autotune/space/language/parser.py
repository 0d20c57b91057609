"""From the text of a rule to its syntax tree: a small Pratt parser with errors made for people.

Pratt, Top Down Operator Precedence (POPL 1973): every operator has a binding power, and an operand
takes in operators for as long as they bind tighter than what stands to its left. Precedence and
grouping are Python's; what Python has and this language has not is named in the error.
"""

from __future__ import annotations

import math
import re
from typing import cast, get_args

from autotune.errors import InputError, Location, Problem, nearest, shorten
from autotune.space.language.syntax import (
    FUNCTIONS,
    Binary,
    BinaryOperator,
    Boolean,
    BooleanOperator,
    Call,
    Comparison,
    ComparisonOperator,
    FunctionName,
    Item,
    ListOf,
    Literal,
    Name,
    Node,
    Unary,
    UnaryOperator,
    children,
)
from autotune.space.language.tokens import ESCAPES, INSTEAD, NUMBER, Token, scan

MOST_CHARACTERS = 2_000
DEEPEST = 100
LARGEST_INTEGER = 2**63
"""Limits on the text of a rule, how deep it is nested and its integers: its file may be anybody's."""

POWERS = {"or": 1, "and": 2, "not": 3, "comparison": 4, "+": 5, "-": 5, "*": 6, "/": 6, "//": 6, "%": 6}
SIGN, POWER = 7, 8
COMPARISONS = frozenset(get_args(ComparisonOperator))


def parse(text: str, origin: Location | None = None) -> Node:
    """The syntax tree of ``text``; every node knows its column in it, counted from 1.

    ``origin`` is where the text begins in a file, for errors. Raises :class:`InputError` for text
    that is not a rule, is longer than 2,000 characters or is nested deeper than 100.
    """
    if len(text) > MOST_CHARACTERS:
        message = f"this rule has {len(text):,} characters"
        raise problem(text, origin, 1, message, f"at most {MOST_CHARACTERS:,}", "split it into several rules")
    return _Parser(text, origin).rule()


def problem(
    text: str, origin: Location | None, column: int, message: str, expected: str = "", hint: str = ""
) -> InputError:
    """An error about what stands at ``column`` (from 1; 0 means the whole) of a rule's text."""
    rule = Location(f"rule {shorten(text)!r}", column=column)
    where = rule if origin is None else origin.at(max(column - 1, 0))
    return InputError(Problem(message, where, expected, hint))


class _Parser:
    """One text. ``self.token`` is the token that comes next, ``self.end`` where it ends."""

    def __init__(self, text: str, origin: Location | None) -> None:
        self.text = text
        self.origin = origin
        self.depth = 0
        self.token, self.end = scan(text, 0)

    # -- tokens

    def advance(self) -> Token:
        token = self.token
        self.token, self.end = scan(self.text, self.end)
        return token

    def sees(self, text: str) -> bool:
        """Whether the next token is the sign or word ``text``."""
        return self.token.text == text and self.token.kind in ("sign", "name")

    def ended(self) -> bool:
        return self.token.kind == "end"

    def take(self, text: str) -> bool:
        """Step over the next token where it is ``text``."""
        found = self.sees(text)
        if found:
            self.advance()
        return found

    def fail(self, token: Token, message: str, expected: str = "", hint: str = "") -> InputError:
        return problem(self.text, self.origin, token.column, message, expected, hint)

    def unexpected(self, expected: str, hint: str = "") -> InputError:
        """The error that the next token cannot stand here."""
        token = self.token
        if token.kind == "sign" and token.text in "'\"":
            message = f"a text that begins with {token.text} does not end"
            return self.fail(token, message, f"a closing {token.text}")
        return self.fail(token, f"expected {expected}, found {token}", hint=INSTEAD.get(token.text, hint))

    def close(self, bracket: str, opened: Token) -> None:
        if self.take(bracket):
            return
        if self.ended():
            raise self.fail(opened, f"'{opened.text}' is never closed", f"'{bracket}'")
        raise self.unexpected(f"an operator or '{bracket}'", self._operator_hint())

    # -- grammar

    def rule(self) -> Node:
        if self.ended():
            raise self.fail(self.token, "the rule is empty", 'a condition such as "tile <= 64"')
        tree = self.expression(0)
        if not self.ended():
            if self.token.text in (")", "]"):
                raise self.fail(self.token, f"nothing was opened that this '{self.token.text}' closes")
            if self.token.text == ",":
                hint = "write each condition as a rule of its own"
                raise self.fail(self.token, "a rule is one condition, found ','", hint=hint)
            raise self.unexpected("an operator", self._operator_hint())
        if _depth(tree) > DEEPEST:
            raise self.too_deep(Token("end", "", 1))
        return tree

    def _operator_hint(self) -> str:
        if self.token.kind != "name":
            return ""
        return nearest(self.token.text, ("and", "or", "not", "in")) or "a text needs quotes"

    def too_deep(self, token: Token) -> InputError:
        return self.fail(
            token, f"this rule is nested more than {DEEPEST} deep", hint="split it into several rules"
        )

    def expression(self, power: int) -> Node:
        """An operand and all operators behind it that bind tighter than ``power``."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.too_deep(self.token)
        tree = self.operand(power)
        while (operator := self._operator()) and POWERS.get(operator, POWERS["comparison"]) > power:
            tree = self.behind(tree, operator, self._advance_over(operator))
        self.depth -= 1
        return tree

    def _operator(self) -> str:
        """The operator that comes next, ``''`` where none does."""
        text = self.token.text
        if self.token.kind not in ("sign", "name") or text == "comparison":
            return ""
        if text == "not":
            following, _ = scan(self.text, self.end)
            return "not in" if (following.kind, following.text) == ("name", "in") else ""
        return text if text in COMPARISONS or text in POWERS else ""

    def _advance_over(self, operator: str) -> Token:
        token = self.advance()
        if operator == "not in":
            self.advance()
        return token

    def behind(self, left: Node, operator: str, token: Token) -> Node:
        """``left`` with the operator just read and its right side."""
        if operator in ("and", "or"):
            operands = [left, self.expression(POWERS[operator])]
            while self.take(operator):
                operands.append(self.expression(POWERS[operator]))
            return Boolean(cast(BooleanOperator, operator), tuple(operands), token.column)
        if operator in COMPARISONS:
            return self.comparison(left, operator, token)
        right = self.expression(POWERS[operator])
        return Binary(cast(BinaryOperator, operator), left, right, token.column)

    def comparison(self, left: Node, operator: str, token: Token) -> Node:
        """``left < a <= b ...``: one node for the whole chain."""
        operators = [cast(ComparisonOperator, operator)]
        operands = [left, self.expression(POWERS["comparison"])]
        while (operator := self._operator()) in COMPARISONS:
            self._advance_over(operator)
            operators.append(cast(ComparisonOperator, operator))
            operands.append(self.expression(POWERS["comparison"]))
        return Comparison(tuple(operators), tuple(operands), token.column)

    def operand(self, power: int) -> Node:
        """A value with the sign in front of it or the power behind it."""
        token = self.token
        if self.sees("-") or self.sees("+"):
            self.advance()
            # Takes in what binds as tightly as another sign, that is a power: -2 ** 2 is -(2 ** 2).
            return Unary(cast(UnaryOperator, token.text), self.expression(SIGN - 1), token.column)
        if self.sees("not"):
            if power > POWERS["not"]:
                raise self.unexpected("a value", "put brackets around it: (not ...)")
            self.advance()
            return Unary("not", self.expression(POWERS["not"]), token.column)
        tree = self.primary()
        if self.sees("**"):
            operator = self.advance()
            # Binds tighter than a sign on its left, looser than one on its right; groups to the right.
            return Binary("**", tree, self.expression(POWER), operator.column)
        return tree

    def primary(self) -> Node:
        token = self.token
        if token.kind == "number":
            return Literal(self.number(self.advance()), token.column)
        if token.kind == "text":
            return Literal(self.string(self.advance()), token.column)
        if token.kind == "name" and token.text not in ("and", "or", "in") and token.text not in INSTEAD:
            return self.named(self.advance())
        if self.sees("("):
            return self.bracket()
        if self.sees("["):
            return ListOf(self.items("]", self.advance()), token.column)
        raise self.unexpected("a knob, a number, a text or '('")

    def bracket(self) -> Node:
        """``(a)``, or a list written as ``(a, b)``."""
        opened = self.advance()
        if self.take(")"):
            return ListOf((), opened.column)
        first = self.expression(0)
        if not self.take(","):
            self.close(")", opened)
            return first
        return ListOf((first, *self.items(")", opened)), opened.column)

    def items(self, bracket: str, opened: Token) -> tuple[Node, ...]:
        """Expressions with commas between them, up to and with the closing bracket."""
        found: list[Node] = []
        while not self.take(bracket):
            found.append(self.expression(0))
            if not self.take(","):
                self.close(bracket, opened)
                break
        return tuple(found)

    def named(self, token: Token) -> Node:
        """What begins with a name: a word, a function, ``workload.m``, ``order[0]``, a knob."""
        if token.text in ("True", "true", "False", "false"):
            return Literal(token.text in ("True", "true"), token.column)
        if token.text in FUNCTIONS and not self.sees("("):
            raise self.unexpected(f"'(' after the function {token.text}")
        if self.sees("("):
            return self.call(token)
        name = token.text
        while self.take("."):
            if self.token.kind != "name":
                raise self.unexpected(f"a name after '{name}.'")
            name += f".{self.advance().text}"
        if self.sees("("):
            raise self.fail(token, f"there is no function {name!r}", f"one of {', '.join(sorted(FUNCTIONS))}")
        if self.sees("["):
            opened = self.advance()
            item = Item(name, self.key(), token.column)
            self.close("]", opened)
            return item
        return Name(name, token.column)

    def key(self) -> int | str:
        """What stands in ``order[...]``: a position or a text."""
        negative = self.take("-")
        token = self.token
        if token.kind == "number":
            key = self.number(self.advance())
            if isinstance(key, int):
                return -key if negative else key
        elif token.kind == "text" and not negative:
            return self.string(self.advance())
        raise self.fail(token, f"expected a position or a text in quotes, found {token}")

    def call(self, name: Token) -> Node:
        if name.text not in FUNCTIONS:
            functions = f"one of {', '.join(sorted(FUNCTIONS))}"
            hint = nearest(name.text, FUNCTIONS)
            raise self.fail(name, f"there is no function {name.text!r}", functions, hint)
        arguments = self.items(")", self.advance())
        return Call(cast(FunctionName, name.text), arguments, name.column)

    # -- literals

    def number(self, token: Token) -> int | float:
        match = NUMBER.fullmatch(token.text)
        if match is None:
            hint = "a name cannot begin with a digit" if token.text[-1].isalpha() else ""
            raise self.fail(token, f"{token} is not a number", hint=hint)
        if match["whole"] is None:
            number = float(token.text)
            if not math.isfinite(number):
                raise self.fail(token, "this number is too large", "at most 1.7e308")
            return number
        integer = int(token.text, 0)
        if integer > LARGEST_INTEGER:
            raise self.fail(token, "this number is too large", "at most 2**63, or a float such as 1e30")
        return integer

    def string(self, token: Token) -> str:
        def escape(match: re.Match[str]) -> str:
            if match[0] not in ESCAPES:
                raise self.fail(
                    token, f"{match[0]!r} means nothing in a text", hint="for a backslash, write two"
                )
            return ESCAPES[match[0]]

        return re.sub(r"\\.", escape, token.text[1:-1], flags=re.DOTALL)


def _depth(tree: Node) -> int:
    """How many nodes stand above each other at most; a long sum is as deep as it is long."""
    deepest, stack = 0, [(tree, 1)]
    while stack:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        stack.extend((child, depth + 1) for child in children(node))
    return deepest
