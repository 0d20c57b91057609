"""The operators and functions of Python whose results are known without running a source. Pure."""

from __future__ import annotations

import ast
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

MOST_ITEMS = 100_000
"""Of a list, or letters of a text, that is made."""

BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Invert: operator.invert,
}
COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, many: one in many,
    ast.NotIn: lambda one, many: one not in many,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


def as_text(value: object) -> str:
    """As ``str``, but of no lists: one of lists of lists may be longer than any memory."""
    if not isinstance(value, (int, float, str)) and value is not None:
        raise TypeError("the text of a list")
    return str(value)


def total(many: Iterable[Any], start: Any = 0) -> Any:
    """As ``sum``. Lists are joined at once: Python copies all that it has for each of them."""
    if not isinstance(start, (list, tuple)):
        return sum(many, start)
    parts = [start, *many]
    if not all(isinstance(part, type(start)) for part in parts):
        raise TypeError("lists are joined to lists, and tuples to tuples")
    if sum(map(len, parts)) > MOST_ITEMS:
        raise ValueError("it is too large")
    return type(start)(itertools.chain.from_iterable(parts))


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "range": range,
    "len": len,
    "min": min,
    "max": max,
    "abs": abs,
    "int": int,
    "float": float,
    "bool": bool,
    "str": as_text,
    "sum": total,
    "any": any,
    "all": all,
    "list": list,
    "tuple": tuple,
    "set": set,
    "dict": dict,
    "OrderedDict": dict,
    "sorted": sorted,
    "reversed": reversed,
    "zip": zip,
    "enumerate": enumerate,
    "map": map,
    "product": itertools.product,
    "chain": itertools.chain,
    "from_iterable": itertools.chain.from_iterable,
    "combinations": itertools.combinations,
    "permutations": itertools.permutations,
    "ceil": math.ceil,
    "floor": math.floor,
    "gcd": math.gcd,
    "log2": math.log2,
    "round": round,
    "sqrt": math.sqrt,
    "cdiv": lambda one, other: -(-one // other),
    "next_power_of_2": lambda number: 1 << (number - 1).bit_length() if number > 0 else 0,  # as Triton's
}
MODULES = ("itertools", "itertools.chain", "chain", "builtins", "collections", "math", "triton")
"""Where these functions are."""

KNOWN_BY_NAME = ("cdiv", "next_power_of_2")
"""Those of Triton that many packages have among their own helpers: the same, wherever they come from."""

METHODS: Mapping[type, tuple[str, ...]] = {
    list: ("append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "copy", "index"),
    dict: ("items", "keys", "values", "get", "update", "setdefault", "pop", "clear", "copy"),
    set: ("add", "update", "remove", "discard", "union", "intersection", "difference", "copy"),
    tuple: ("index",),
    int: ("bit_length",),
    str: ("startswith", "endswith", "lower", "upper", "strip", "split"),
}
METHOD_NAMES = frozenset(itertools.chain.from_iterable(METHODS.values()))
