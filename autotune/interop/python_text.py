"""What expressions and short functions of a Python source come to, found without running any of it.

Understood are literals, arithmetic, comparisons, comprehensions, a handful of functions such as ``range`` and
``itertools.product``, names that the module itself assigns, and its functions made of assignments,
``if``, ``for``, ``append`` and ``return``. Anything else is an error that names its file, line and column.
Work and sizes are bounded, since the source is somebody else's.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any, Literal, overload

from autotune.errors import InputError, Location, Problem
from autotune.interop.python_frame import Closure, Frame, Return, Scope

MOST_STEPS = 500_000

UNDERSTOOD = "literals, ranges, comprehensions, and names and functions of this file made of them"

Call = Callable[[ast.Call, list[Any], dict[str, Any]], Any]
"""Takes the node of a call, and the values of its arguments by position and by name."""


@overload
def parsed(text: str, mode: Literal["exec"]) -> ast.Module: ...
@overload
def parsed(text: str, mode: Literal["eval"]) -> ast.Expression: ...
def parsed(text: str, mode: Literal["exec", "eval"]) -> ast.AST:
    """The tree of a source or of an expression. ``SyntaxError``, or ``ValueError`` (a NUL byte), else."""
    try:
        return ast.parse(text, mode=mode)
    except (RecursionError, MemoryError):  # of Python's own parser: thousands of signs or brackets in a row
        raise SyntaxError("it is nested too deep") from None


class Module:
    """A Python source as text. ``calls`` says what calls of further functions come to, by their last name."""

    def __init__(self, tree: ast.Module, file: str, calls: Mapping[str, Call]) -> None:
        self.tree = tree
        self.file = file
        self.calls = calls
        self._values: Scope = {}
        self._looking: set[str] = set()
        self._calling: list[ast.AST] = []
        self._steps = 0

    def not_understood(self, node: ast.AST, why: str = "", hint: str = "") -> InputError:
        """The error that ``node`` is more than can be understood without running it."""
        text = ast.unparse(node)
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        where = Location(self.file, getattr(node, "lineno", 0), getattr(node, "col_offset", -1) + 1)
        message = f"{shown!r} is not understood" + (f": {why}" if why else "")
        return InputError(Problem(message, where, UNDERSTOOD, hint))

    def value(self, node: ast.expr, scope: Scope | None = None) -> Any:
        """What ``node`` comes to; ``scope`` holds what was assigned around it."""
        return Frame(self, {} if scope is None else scope).value(node)

    def function(self, name: str) -> ast.FunctionDef | None:
        found = [n for n in self.tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
        return found[-1] if found else None

    def named(self, node: ast.Name) -> Any:
        """What the module has assigned to a name, by all its statements that touch it."""
        name = node.id
        if name in self._values:
            return self._values[name]
        if name in self._looking:
            raise self.not_understood(node, "it is defined by itself")
        if (function := self.function(name)) is not None:
            return Closure(function, {})
        statements = [s for s in self.tree.body if not isinstance(s, ast.FunctionDef) and _touches(s, name)]
        if not statements:
            raise self.not_understood(node, f"this file assigns nothing to {name}")
        if any(isinstance(statement, (ast.Import, ast.ImportFrom)) for statement in statements):
            raise self.not_understood(node, "it is imported")
        self._looking.add(name)
        try:
            scope: Scope = {}
            for statement in statements:
                Frame(self, scope).run(statement)
        finally:
            self._looking.discard(name)
        if name not in scope:
            raise self.not_understood(node, f"{name} is not assigned here")
        self._values[name] = scope[name]
        return scope[name]

    def apply(self, closure: Closure, node: ast.AST, given: list[Any], by_name: Scope | None = None) -> Any:
        """What a function of the module returns for these arguments; ``node`` is where it is called."""
        function = closure.function
        name = getattr(function, "name", "lambda")
        if function in self._calling:
            raise self.not_understood(node, "it calls itself")
        scope = {**closure.scope, **self._bound(function, name, node, given, by_name or {})}
        self._calling.append(function)
        try:
            if isinstance(function, ast.Lambda):
                return self.value(function.body, scope)
            for statement in function.body:
                Frame(self, scope).run(statement)
        except Return as returned:
            return returned.value
        finally:
            self._calling.pop()
        return None

    def _bound(
        self,
        function: ast.FunctionDef | ast.Lambda,
        called: str,
        node: ast.AST,
        given: list[Any],
        by_name: Scope,
    ) -> Scope:
        arguments = function.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        if arguments.vararg or arguments.kwarg or len(given) > len(names):
            raise self.not_understood(node, f"the arguments of {called}()")
        scope: Scope = dict(zip(names, given, strict=False))
        defaults = dict(zip(names[len(names) - len(arguments.defaults) :], arguments.defaults, strict=True))
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            names.append(argument.arg)
            if default is not None:
                defaults[argument.arg] = default
        scope |= by_name
        for name in names:
            if name not in scope:
                if name not in defaults:
                    raise self.not_understood(node, f"{called}() needs {name}")
                scope[name] = self.value(defaults[name])
        return scope

    def step(self, node: ast.AST) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise self.not_understood(node, f"it takes more than {MOST_STEPS:,} steps")


def _touches(statement: ast.stmt, name: str) -> bool:
    """Whether a statement of the module assigns to a name or changes what it stands for."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            return True
        changed = node.func if isinstance(node, ast.Call) else node
        if isinstance(changed, (ast.Attribute, ast.Subscript)) and _is_name(changed.value, name):
            is_call = isinstance(node, ast.Call) and isinstance(changed, ast.Attribute)
            is_store = isinstance(changed, ast.Subscript) and not isinstance(changed.ctx, ast.Load)
            if is_call or is_store:
                return True
    return isinstance(statement, (ast.Import, ast.ImportFrom)) and any(
        (alias.asname or alias.name) == name for alias in statement.names
    )


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
