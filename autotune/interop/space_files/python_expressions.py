"""Evaluating expressions in one scope of a Python source that is not run."""

from __future__ import annotations

import ast
import itertools
import operator
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Iterator, Sized
from typing import Any

from autotune.errors import InputError
from autotune.interop.space_files.python_operators import (
    BINARY,
    COMPARE,
    FUNCTIONS,
    METHOD_NAMES,
    METHODS,
    MODULES,
    MOST_ITEMS,
    UNARY,
    as_text,
)
from autotune.interop.space_files.python_slice import defaults_of
from autotune.interop.space_files.python_source import FOREIGN, Closure, Opened, Scope, Source

MOST_BITS = 1_000
MOST_REPEATS = 20

RAISED = (TypeError, ValueError, KeyError, IndexError, ArithmeticError, AttributeError)
"""What Python's own functions and operators raise for values that they cannot take."""


class Expressions:
    """Evaluates expressions in one scope; names that are not in it are the source's."""

    def __init__(self, source: Source, scope: Scope) -> None:
        self.source = source
        self.scope = scope

    def value(self, node: ast.expr) -> Any:
        self.source.step(node)
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name():
                return self.name(node)
            case ast.List(elts=parts):
                return self.sized(node, self.spread(parts))
            case ast.Tuple(elts=parts):
                return tuple(self.sized(node, self.spread(parts)))
            case ast.JoinedStr(values=parts):
                return self.joined(node, [self.value(part) for part in parts])
            case ast.FormattedValue(value=part, conversion=-1, format_spec=None):
                return self.guarded(node, as_text, self.value(part))
            case ast.Set(elts=parts):
                return self.guarded(node, set, self.spread(parts))
            case ast.Dict(keys=keys, values=values):
                return self.dictionary(node, keys, values)
            case ast.UnaryOp(op=op, operand=operand):
                return self.guarded(node, UNARY[type(op)], self.value(operand))
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(node, op, self.value(left), self.value(right))
            case ast.BoolOp() | ast.Compare() | ast.IfExp():
                return self.logic(node)
            case ast.Subscript(value=whole, slice=index):
                return self.guarded(node, operator.getitem, self.value(whole), self.value(index))
            case ast.Slice(lower=lower, upper=upper, step=step):
                return slice(*(None if part is None else self.value(part) for part in (lower, upper, step)))
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self.comprehension(node)
            case ast.Call():
                return self.call(node)
            case ast.Lambda():
                return self.defined(node)
            case ast.Attribute() if (text := ast.unparse(node)) in self.source.known:
                return self.source.known[text]()
            case ast.Attribute(value=whole, attr=name) if not name.startswith("_"):
                return self.attribute(node, self.value(whole), name)
        raise self.source.not_understood(node)

    def name(self, node: ast.Name) -> Any:
        found = self.scope[node.id] if node.id in self.scope else self.source.named(node)
        if isinstance(found, InputError):
            raise found
        return found

    def understood(self, name: str) -> Any:
        """What a name stands for; ``None`` where that is not understood."""
        return self.scope[name] if name in self.scope else self.source.understood(name)

    def attribute(self, node: ast.AST, whole: Any, name: str) -> Any:
        if isinstance(whole, Opened):
            return self.member(node, whole, name)
        known = getattr(type(whole), "PUBLIC", ())
        if name not in known:
            raise self.source.not_understood(node)
        return getattr(whole, name)

    def member(self, node: ast.AST, whole: Opened, name: str) -> Any:
        found = whole.member(name)
        if isinstance(found, InputError):
            raise found
        if found is FOREIGN:
            raise self.source.not_understood(node, "it is imported")
        return found

    def opened(self, node: ast.expr) -> Opened | None:
        """The module of the package that an expression stands for, if it is one."""
        found: Any = None
        if isinstance(node, ast.Name):
            found = self.understood(node.id)
        elif isinstance(node, ast.Attribute) and (whole := self.opened(node.value)):
            found = whole.member(node.attr)
        return found if isinstance(found, Opened) else None

    def logic(self, node: ast.BoolOp | ast.Compare | ast.IfExp) -> Any:
        match node:
            case ast.BoolOp(op=op, values=parts):
                value: Any = None
                for part in parts:
                    value = self.value(part)
                    if bool(value) == isinstance(op, ast.Or):
                        break
                return value
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.value(body) if self.value(test) else self.value(orelse)
            case ast.Compare(left=left, ops=ops, comparators=others):
                one = self.value(left)
                for sign, other in zip(ops, others, strict=True):
                    two = self.value(other)
                    if not self.guarded(node, COMPARE[type(sign)], one, two):
                        return False
                    one = two
                return True

    def binary(self, node: ast.AST, op: ast.operator, left: Any, right: Any) -> Any:
        """A result that stays small; Python's own ``2 ** 10 ** 9`` would not end."""
        lengths = [len(x) for x in (left, right) if isinstance(x, (list, tuple, str, bytes))]
        times = [x for x in (left, right) if isinstance(x, int)]
        big = sum(lengths) > MOST_ITEMS
        if isinstance(op, ast.Mult) and lengths and times:
            big = lengths[0] * times[0] > MOST_ITEMS
        if isinstance(op, (ast.Pow, ast.LShift)) and isinstance(left, int) and isinstance(right, int):
            big = abs(right) * (left.bit_length() if isinstance(op, ast.Pow) else 1) > MOST_BITS
        if big or any(isinstance(x, int) and x.bit_length() > MOST_BITS for x in (left, right)):
            raise self.source.not_understood(node, "it is too large")
        if type(op) not in BINARY or (isinstance(op, ast.Mod) and isinstance(left, str)):
            raise self.source.not_understood(node)
        return self.guarded(node, BINARY[type(op)], left, right)

    def joined(self, node: ast.AST, texts: list[str]) -> str:
        if sum(map(len, texts)) > MOST_ITEMS:
            raise self.source.not_understood(node, "it is too large")
        return "".join(texts)

    def dictionary(self, node: ast.AST, keys: list[ast.expr | None], values: list[ast.expr]) -> Any:
        found: dict[Any, Any] = {}
        for key, value in zip(keys, values, strict=True):
            if key is None:
                found |= self.guarded(node, dict, self.value(value))
            else:
                self.guarded(node, found.__setitem__, self.value(key), self.value(value))
        return found

    def spread(self, parts: list[ast.expr]) -> list[Any]:
        found: list[Any] = []
        for part in parts:
            if isinstance(part, ast.Starred):
                found += self.collect(part, self.items(part.value))
            else:
                found.append(self.value(part))
        return found

    def defined(self, function: ast.FunctionDef | ast.Lambda) -> Closure:
        """A function, whose defaults are worked out where it stands, as Python does."""
        defaults: Scope = {}
        for name, default in defaults_of(function.args):
            try:
                defaults[name] = self.value(default)
            except InputError as error:  # a call may do without it
                defaults[name] = error
        return Closure(function, self.scope, defaults, self.source)

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Any:
        inner = Expressions(self.source, ChainMap({}, self.scope))
        first = self.items(node.generators[0].iter)  # of the names outside, and at once
        if isinstance(node, ast.DictComp):
            key, value = node.key, node.value
            pairs = inner.looped(first, node.generators, lambda: (inner.value(key), inner.value(value)))
            return self.guarded(node, dict, self.collect(node, pairs))
        found = inner.looped(first, node.generators, lambda: inner.value(node.elt))
        if isinstance(node, ast.GeneratorExp):
            return self.in_turn(node, found)
        listed = self.collect(node, found)
        return self.guarded(node, set, listed) if isinstance(node, ast.SetComp) else listed

    def looped(
        self, values: Iterator[Any], loops: list[ast.comprehension], item: Callable[[], Any]
    ) -> Iterator[Any]:
        first, *rest = loops
        for value in values:
            self.assign(first.target, value)
            if not all(self.value(test) for test in first.ifs):
                continue
            if rest:
                yield from self.looped(self.items(rest[0].iter), rest, item)
            else:
                yield item()

    def assign(self, target: ast.expr, value: Any) -> None:
        match target:
            case ast.Name(id=name):
                self.scope[name] = value
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                values = list(itertools.islice(iter(value), len(parts) + 1)) if is_iterable(value) else []
                if any(isinstance(part, ast.Starred) for part in parts):
                    raise self.source.not_understood(target, "a * in what is assigned to is not known here")
                if len(values) != len(parts):
                    raise self.source.not_understood(target, "it takes another number of values")
                for part, item in zip(parts, values, strict=True):
                    self.assign(part, item)
            case ast.Subscript(value=whole, slice=ast.expr() as index) if not isinstance(index, ast.Slice):
                changed = self.value(whole)
                if not isinstance(changed, (list, dict)):
                    raise self.source.not_understood(target)
                self.guarded(target, operator.setitem, changed, self.value(index), value)
            case _:
                raise self.source.not_understood(target)

    def call(self, node: ast.Call) -> Any:
        called = node.func
        name = self.own_name(getattr(called, "id", "")) or getattr(called, "attr", "")
        name = name if name in self.source.calls else self.dotted(called, name)
        arguments = self.spread(node.args)
        by_name = self.named_arguments(node, self.source.unread if name in self.source.calls else ())
        if name in self.source.calls:
            return self.source.calls[name](node, arguments, by_name)
        if (function := self.function(called)) is not None:
            return self.source.apply(function, node, arguments, by_name)
        arguments = [self.counted(node, self.callable(node, argument)) for argument in arguments]
        by_name = {keyword: self.callable(node, value) for keyword, value in by_name.items()}
        foreign = (
            isinstance(called, ast.Attribute) and self.own_name(ast.unparse(called.value)) not in MODULES
        )
        if isinstance(called, ast.Attribute) and foreign and name in METHOD_NAMES:
            return self.method(node, self.value(called.value), name, arguments, by_name)
        hidden = isinstance(called, ast.Name) and (called.id in self.scope or self.source.hides(called.id))
        if name not in FUNCTIONS or foreign or hidden:
            since = "" if foreign else self.source.since(name)
            why = f"what {ast.unparse(called)}() does is not known here{since}"
            raise self.source.not_understood(node, why)
        if by_name.get("repeat", 1) not in range(MOST_REPEATS):
            raise self.source.not_understood(node, "it is too large")
        found = self.guarded(node, FUNCTIONS[name], *arguments, **by_name)
        return self.in_turn(node, found) if isinstance(found, Iterator) else found

    def named_arguments(self, node: ast.Call, unread: Collection[str]) -> dict[str, Any]:
        """Those given by name; of the ``unread`` what is not understood is an error among the values."""
        by_name: dict[str, Any] = {}
        for keyword in node.keywords:
            try:
                value = self.value(keyword.value)
            except InputError as error:
                if keyword.arg not in unread:
                    raise
                value = error
            by_name |= {keyword.arg: value} if keyword.arg else self.guarded(node, dict, value)
        return by_name

    def own_name(self, name: str) -> str:
        """``itertools.chain`` for ``it.chain``, where ``it`` is the name that it is imported under."""
        first, dot, rest = name.partition(".")
        return name if first in self.scope else self.source.imported.get(first, first) + dot + rest

    def method(self, node: ast.Call, whole: Any, name: str, given: list[Any], by_name: Scope) -> Any:
        if name not in METHODS.get(type(whole), ()):
            raise self.source.not_understood(node)
        found = self.guarded(node, getattr(type(whole), name), whole, *given, **by_name)
        if isinstance(whole, (list, dict, set)):
            self.check_size(node, whole)
        return found

    def dotted(self, called: ast.expr, name: str) -> str:
        """``triton.Config`` where that is known by both its names alone, and not ``Config``."""
        text = ast.unparse(called) if isinstance(called, ast.Attribute) else name
        return text if text in self.source.calls else name

    def function(self, called: ast.expr) -> Closure | None:
        """The function of the source, or of another file of its package, that is called."""
        if isinstance(called, ast.Name):
            return self.closure(called.id)
        if isinstance(called, ast.Attribute) and (whole := self.opened(called.value)):
            found = self.member(called, whole, called.attr)
            return found if isinstance(found, Closure) else None
        return None

    def closure(self, name: str) -> Closure | None:
        """The function of the source that a name stands for."""
        found = self.understood(name)
        return found if isinstance(found, Closure) else None

    def callable(self, node: ast.AST, value: Any) -> Any:
        """A function of the source as one that ``sorted`` and ``map`` can call."""
        if not isinstance(value, Closure):
            return value
        return lambda *given: self.source.apply(value, node, list(given))

    def counted(self, node: ast.AST, argument: Any) -> Any:
        """What is iterated over is finite and not too long."""
        size = 0
        if isinstance(argument, range):  # its len() fails beyond 2^63
            size = (argument[-1] - argument[0]) // argument.step + 1 if argument else 0
        elif isinstance(argument, (list, tuple, set, dict)):
            size = len(argument)
        if size > MOST_ITEMS:
            raise self.source.not_understood(node, f"it has {size:,} items")
        return argument

    def items(self, node: ast.expr) -> Iterator[Any]:
        many = self.value(node)
        if not is_iterable(many):
            raise self.source.not_understood(node, "nothing that can be gone through")
        return self.in_turn(node, many)

    def in_turn(self, node: ast.AST, many: Iterable[Any]) -> Iterator[Any]:
        """What ``node`` gives one by one, each when it is asked for: lists may change meanwhile."""
        try:
            for number, item in enumerate(many):
                if number == MOST_ITEMS:
                    raise self.source.not_understood(node, f"it has more than {MOST_ITEMS:,} items")
                self.source.step(node)
                yield item
        except RecursionError:
            raise
        except (RuntimeError, *RAISED) as error:  # the former of a dictionary that has grown meanwhile
            raise self.source.not_understood(node, str(error)) from None

    def collect(self, node: ast.AST, items: Iterable[Any]) -> list[Any]:
        return self.sized(node, list(itertools.islice(items, MOST_ITEMS + 1)))

    def sized(self, node: ast.AST, items: list[Any]) -> list[Any]:
        self.check_size(node, items)
        return items

    def check_size(self, node: ast.AST, many: Sized) -> None:
        if len(many) > MOST_ITEMS:
            raise self.source.not_understood(node, f"it has more than {MOST_ITEMS:,} items")

    def guarded(self, node: ast.AST, function: Callable[..., Any], *values: Any, **by_name: Any) -> Any:
        """``function`` of these; what it raises is said of ``node``."""
        try:
            return function(*values, **by_name)
        except RAISED as error:
            raise self.source.not_understood(node, str(error)) from None


def is_iterable(value: Any) -> bool:
    return hasattr(value, "__iter__")
