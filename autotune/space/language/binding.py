"""From a parsed rule to one over knobs alone: names looked up, types checked, constants folded.

Folding follows the short-circuit of ``and`` and ``or`` and never hides an error at run time: a
constant that cannot be computed (``1 / 0``) is left in the tree, where it makes the rule false only
if it is needed. After binding a tree holds no ``len``, no fact and no name but those of knobs; every
operand of ``and``, ``or`` and ``not`` is true or false.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from autotune.errors import InputError, Location, nearest
from autotune.space.configuration import FrozenMap, Value, plain
from autotune.space.knobs import Assignment, OrderedValues, Permutation
from autotune.space.knobs.knob import Knob
from autotune.space.knobs.values import listing
from autotune.space.language import compute
from autotune.space.language.rule import NOTHING, Rule
from autotune.space.language.rule_types import (
    ARITHMETIC,
    FLAG,
    LIST,
    MAP,
    NUMBER,
    TEXT,
    Type,
    comparable,
    is_a,
    possible_values,
    type_of,
    type_of_values,
)
from autotune.space.language.scope import ReportedError, Scope, show
from autotune.space.language.syntax import (
    Binary,
    Boolean,
    Call,
    Comparison,
    Item,
    ListOf,
    Literal,
    Name,
    Node,
    Unary,
    render,
    walk,
)

ARGUMENTS = {"abs": 1, "log2": 1, "len": 1, "ceildiv": 2, "count": 2}


def bind_rule(
    rule: str | Node | Rule,
    *,
    knobs: Iterable[Knob],
    workload: Mapping[str, Value] = NOTHING,
    device: Mapping[str, Value] = NOTHING,
    where: Location | None = None,
) -> Rule:
    """The rule over these knobs, its names and types checked, facts and constants folded.

    Binding a bound rule again is harmless. Raises :class:`InputError` with every problem found.
    """
    if isinstance(rule, str):
        rule = Rule.parse(rule, where)
    elif not isinstance(rule, Rule):
        rule = Rule(render(rule), rule, where)
    by_name = {knob.name: knob for knob in knobs}
    roots = {"workload": workload, "device": device}
    binder = _Binder(rule.text, rule.where, by_name, roots, facts=dict(rule.facts))
    tree = binder.rule(rule.tree, condition=not rule.vacuous)
    if binder.problems:
        raise InputError(binder.problems)
    return replace(rule, tree=tree, facts=FrozenMap(binder.facts))


@dataclass
class _Binder(Scope):
    """Binds one rule. Every method for a kind of node returns the bound node and its type."""

    of_numbers: set[Node] = field(default_factory=set)
    """The nodes of ``and`` and ``or`` that have a number among their operands."""

    # -- the whole

    def rule(self, tree: Node, *, condition: bool) -> Node:
        """The bound tree; where there are problems, they are in :attr:`problems`.

        A constraint that nothing can satisfy is a mistake, and so is a ``when`` that is false by itself. One
        that the facts make false is not: it says that the knob is for other workloads or devices.
        """
        try:
            bound, type_ = self.node(tree)
            if type_ == NUMBER and not isinstance(bound, (Name, Item)):
                whole = replace(tree, column=0)
                raise self.fail(
                    whole, "this is a number, not a condition", "a comparison such as '... <= 64'"
                )
            bound = self.truth(bound, type_)
            if why := self.never(bound):
                if condition and self.facts:
                    return Literal(False)
                facts = ", ".join(f"{name} is {plain(value)!r}" for name, value in self.facts.items())
                expected = "a condition that some configuration meets"
                raise self.fail(bound, why, expected, f"here {facts}" if facts else "")
        except ReportedError:
            return tree
        return bound

    def never(self, tree: Node) -> str:
        """Why nothing can satisfy the rule; empty where something may."""
        parts = tree.operands if isinstance(tree, Boolean) and tree.operator == "and" else (tree,)
        if any(isinstance(part, Literal) and part.value is False for part in parts):
            return "this rule is always false"
        constant = not any(isinstance(node, (Name, Item)) for node in walk(tree))
        if constant and not Rule(self.text, tree).holds(NOTHING):  # a chain may not need all of it
            return "this rule is always false: it cannot be computed"
        return ""

    # -- nodes

    def node(self, node: Node) -> tuple[Node, Type]:
        match node:
            case Literal():
                return node, type_of(node.value)
            case Name():
                return self.name(node)
            case Item():
                return self.item(node)
            case Unary():
                return self.unary(node)
            case Binary():
                return self.binary(node)
            case Comparison():
                return self.comparison(node)
            case Boolean():
                return self.boolean(node)
            case Call():
                return self.call(node)
            case ListOf():
                return self.listing(node)

    def several(self, nodes: tuple[Node, ...]) -> list[tuple[Node, Type]]:
        """All of ``nodes``, with the problems of all of them."""
        found, failed = [], False
        for node in nodes:
            try:
                found.append(self.node(node))
            except ReportedError:
                failed = True
        if failed:
            raise ReportedError
        return found

    def fold(self, node: Node, compute_it: Callable[..., Any], *operands: Node) -> Node:
        """The value of ``node`` where all its operands are constant; else, or if it has none, ``node``."""
        values = [operand.value for operand in operands if isinstance(operand, Literal)]
        if len(values) < len(operands):
            return node
        try:
            return Literal(compute.checked(compute_it(*values)))
        except compute.TooLargeError as error:
            raise self.fail(node, str(error), hint="write a smaller number") from None
        except compute.Undefined:
            return node

    # -- operations

    def unary(self, node: Unary) -> tuple[Node, Type]:
        operand, type_ = self.node(node.operand)
        if node.operator == "not":
            operand = self.truth(operand, type_)
        else:
            self.arithmetic(node.operand, type_, f"'{node.operator}'")
        bound = self.fold(replace(node, operand=operand), compute.UNARY[node.operator], operand)
        return bound, FLAG if node.operator == "not" else NUMBER

    def binary(self, node: Binary) -> tuple[Node, Type]:
        (left, left_type), (right, right_type) = self.several((node.left, node.right))
        self.arithmetic(node.left, left_type, f"'{node.operator}'")
        self.arithmetic(node.right, right_type, f"'{node.operator}'")
        bound = replace(node, left=left, right=right)
        return self.fold(bound, compute.BINARY[node.operator], left, right), NUMBER

    def arithmetic(self, node: Node, type_: Type, what: str) -> None:
        if not type_ <= ARITHMETIC:
            raise self.fail(node, f"{what} needs numbers, but {show(node)} {is_a(type_)}")
        self.refuse_logic(node)

    def refuse_logic(self, node: Node) -> None:
        """Raise for an ``and`` or ``or`` of numbers that in Python comes to one of them: ``a or 1``."""
        if node in self.of_numbers:
            message = f"{show(node)} is true or false here, not one of its numbers as in Python"
            hint = "write min or max, or a rule for each case"
            raise self.fail(node, message, "a number", hint)

    def truth(self, node: Node, type_: Type) -> Node:
        """``node`` as something that is true or false; a number is true where it is not 0."""
        if type_ == FLAG:
            return node
        if not type_ <= ARITHMETIC:
            message = f"{show(node)} {is_a(type_)}, which is neither true nor false"
            raise self.fail(node, message, "a comparison")
        if isinstance(node, Literal):
            return Literal(bool(node.value))
        return Comparison(("!=",), (node, Literal(0)), node.column)

    def boolean(self, node: Boolean) -> tuple[Node, Type]:
        decisive = node.operator == "or"
        bound: list[Node] = []
        failed = False
        for operand in node.operands:
            try:
                side, type_ = self.node(operand)
                part = self.truth(side, type_)
            except ReportedError:
                failed = True
                continue
            if type_ != FLAG or operand in self.of_numbers:
                self.of_numbers.add(node)
            if isinstance(part, Literal) and part.value is not decisive:
                continue  # 'x and true' is x
            bound.append(part)
        if failed:
            raise ReportedError
        # What comes after a decided operand is checked above, but never needed.
        for place, part in enumerate(bound):
            if isinstance(part, Literal):
                del bound[place + 1 :]
                break
        if not bound:
            return Literal(not decisive), FLAG
        return (bound[0] if len(bound) == 1 else replace(node, operands=tuple(bound))), FLAG

    def listing(self, node: ListOf) -> tuple[Node, Type]:
        bound = self.several(node.items)
        for item in node.items:
            self.refuse_logic(item)
        items = tuple(item for item, _ in bound)
        values = tuple(item.value for item in items if isinstance(item, Literal))
        constant = len(values) == len(items)
        return Literal(values, node.column) if constant else replace(node, items=items), LIST

    def comparison(self, node: Comparison) -> tuple[Node, Type]:
        bound = self.several(node.operands)
        if (spelt_out := self.order_equals(node, [operand for operand, _ in bound])) is not None:
            return self.node(spelt_out)
        for place, sign in enumerate(node.operators):
            (left, left_type), (right, right_type) = bound[place], bound[place + 1]
            written = node.operands[place], node.operands[place + 1]
            for one, other_type in zip(written, (right_type, left_type), strict=True):
                if sign not in ("==", "!=") or other_type != FLAG:
                    self.refuse_logic(one)
            if sign in ("in", "not in"):
                self.membership(written, left, left_type, right, right_type)
            elif sign in ("==", "!="):
                self.equality(node, (left, right), left_type, right_type)
                self.possible(left, right)
                self.possible(right, left)
            else:
                for operand, type_ in zip(written, (left_type, right_type), strict=True):
                    if not type_ <= ARITHMETIC:
                        message = f"{show(operand)} {is_a(type_)}; only numbers have an order"
                        raise self.fail(operand, message, "== or !=" if type_ == TEXT else "")
        operands = tuple(operand for operand, _ in bound)
        folded = self.fold(replace(node, operands=operands), _chain(node), *operands)
        return folded, FLAG

    def order_equals(self, node: Comparison, operands: list[Node]) -> Node | None:
        """``order == ['j', 'i']`` as ``order[0] == 'j' and order[1] == 'i'``; ``None`` for anything else."""
        if node.operators not in (("==",), ("!=",)):
            return None
        name, wanted = operands if isinstance(operands[0], Name) else reversed(operands)
        knob = self.knob_of(name)
        if not isinstance(knob, Permutation) or not isinstance(wanted, Literal) or not self.has_items(name):
            return None
        if not isinstance(wanted.value, tuple) or len(wanted.value) != len(knob.items):
            expected = f"a list of its {len(knob.items)} items"
            raise self.fail(wanted, f"{knob.name!r} is never {plain(wanted.value)!r}", expected)
        pairs = (
            (Item(knob.name, place, node.column), Literal(item, wanted.column))
            for place, item in enumerate(wanted.value)
        )
        every = Boolean("and", tuple(Comparison(("==",), pair, node.column) for pair in pairs), node.column)
        return every if node.operators == ("==",) else Unary("not", every, node.column)

    def equality(self, node: Node, operands: tuple[Node, Node], left: Type, right: Type) -> None:
        for operand, type_ in zip(operands, (left, right), strict=True):
            if type_ == MAP or self.has_items(operand) or isinstance(operand, ListOf):
                raise self.whole(operand)
        if not comparable(left, right):
            one, other = map(show, operands)
            raise self.fail(node, f"{one} {is_a(left)} and {other} {is_a(right)}: they are never equal")

    def whole(self, node: Node) -> ReportedError:
        how = "compare single items"
        if isinstance(node, ListOf):
            how += ", joined by 'and' and 'or': x == 1 and y == 2 or x == 3 and y == 4"
        return self.fail(node, f"{show(node)} cannot be compared as a whole", hint=how)

    def membership(
        self, written: tuple[Node, Node], left: Node, left_type: Type, right: Node, right_type: Type
    ) -> None:
        if right_type != LIST or isinstance(right, (Name, Item)):
            count = isinstance(right, Name) and right_type == MAP and isinstance(left, Literal)
            hint = f"write count({render(right)}, {show(left)}) > 0" if count else ""
            message = f"{show(written[1])} {is_a(right_type)}"
            raise self.fail(written[1], message, "a list that is written out, such as [1, 2, 4]", hint)
        if isinstance(right, ListOf):
            members = list(right.items)
        else:
            assert isinstance(right, Literal) and isinstance(right.value, tuple)
            columns = written[1].items if isinstance(written[1], ListOf) else ()
            members = [Literal(v, columns[i].column if columns else 0) for i, v in enumerate(right.value)]
        for part in (left, *members):
            if self.has_items(part) or isinstance(part, ListOf):
                raise self.whole(part)
        for member in members:
            if not comparable(left_type, self.node(member)[1]):
                message = f"{show(written[0])} {is_a(left_type)} and is never {show(member)}"
                raise self.fail(member, message)
            self.possible(left, member)

    def possible(self, node: Node, other: Node) -> None:
        """Refuse to compare a choice with what it never is; with facts (column 0) it may be compared."""
        knob = self.knob_of(node)
        if knob is None or not isinstance(other, Literal) or not other.column:
            return
        possible = possible_values(knob)
        if possible is None or other.value in possible:
            return
        if isinstance(knob, OrderedValues) and not isinstance(other.value, str):
            return  # numbers are compared with thresholds, too
        texts = [value for value in possible if isinstance(value, str)]
        near = nearest(other.value, texts) if isinstance(other.value, str) else ""
        expected = f"one of {listing(possible)}"
        raise self.fail(other, f"{show(node)} is never {plain(other.value)!r}", expected, near)

    # -- functions

    def call(self, node: Call) -> tuple[Node, Type]:
        given, wanted = len(node.arguments), ARGUMENTS.get(node.function)
        if given == 0 or (wanted is not None and given != wanted):
            needs = "at least one argument" if wanted is None else f"{wanted} argument{'s' * (wanted > 1)}"
            raise self.fail(node, f"{node.function} takes {needs}, but {given} were given")
        if node.function == "len":
            return self.length(node)
        arguments = self.several(node.arguments)
        if node.function == "count":
            return self.count(node, arguments)
        if given == 1 and wanted is None:
            node, arguments = self.spread(node, arguments[0])
        for written, (_, type_) in zip(node.arguments, arguments, strict=True):
            self.arithmetic(written, type_, node.function)
        operands = tuple(argument for argument, _ in arguments)
        if len(operands) == 1 and wanted is None:
            return operands[0], NUMBER
        bound = self.fold(replace(node, arguments=operands), compute.FUNCTION[node.function], *operands)
        return bound, NUMBER

    def spread(self, node: Call, argument: tuple[Node, Type]) -> tuple[Call, list[tuple[Node, Type]]]:
        """``min([a, b])`` is ``min(a, b)``."""
        many, _ = argument
        if isinstance(many, Literal) and isinstance(many.value, tuple):
            many = ListOf(tuple(Literal(value) for value in many.value), many.column)
        if not isinstance(many, ListOf) or not many.items:
            raise self.fail(node, f"{node.function} takes two numbers or more, or a list of them")
        return replace(node, arguments=many.items), self.several(many.items)

    def length(self, node: Call) -> tuple[Node, Type]:
        (argument,) = node.arguments
        knob = self.knob_of(argument)
        if isinstance(argument, Name) and isinstance(knob, (Permutation, Assignment)):
            return Literal(len(knob.items)), NUMBER
        bound, type_ = self.node(argument)
        if isinstance(bound, ListOf):
            return Literal(len(bound.items)), NUMBER
        if isinstance(bound, Literal) and isinstance(bound.value, (tuple, str, FrozenMap)):
            return Literal(len(bound.value)), NUMBER
        message = f"{show(argument)} {is_a(type_)}, which has no length"
        raise self.fail(argument, message, "a list, or a knob with items")

    def count(self, node: Call, arguments: list[tuple[Node, Type]]) -> tuple[Node, Type]:
        (place, _), (option, option_type) = arguments
        knob = self.knob_of(place)
        if not isinstance(place, Name) or not isinstance(knob, Assignment):
            raise self.fail(node.arguments[0], "count needs an assignment first", "count(KNOB, OPTION)")
        if not comparable(type_of_values(knob.options), option_type):
            message = f"{show(option)} {is_a(option_type)} and is no option of {knob.name!r}"
            raise self.fail(node.arguments[1], message)
        self.possible(Item(knob.name, knob.items[0]), option)
        return replace(node, arguments=(place, option)), NUMBER


def _chain(node: Comparison) -> Callable[..., bool]:
    """The whole chain as a function of its operands."""
    tests = [compute.COMPARE[sign] for sign in node.operators]

    def chain(*values: Value) -> bool:
        pairs = zip(tests, values[:-1], values[1:], strict=True)
        return all(test(one, other) for test, one, other in pairs)

    return chain
