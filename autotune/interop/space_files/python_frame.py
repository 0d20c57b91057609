"""Carrying out the statements of one scope of a Python source that is not run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from autotune.interop.space_files.python_decorators import LATER, hands_functions, keeps_results
from autotune.interop.space_files.python_expressions import Expressions, is_iterable
from autotune.interop.space_files.python_operators import MODULES
from autotune.interop.space_files.python_slice import assigned_by
from autotune.interop.space_files.python_source import FOREIGN, Break, Continue, Return

LOGGING = ("debug", "info", "warning", "warn", "error")
"""Functions of loggers, which change nothing."""


class Frame(Expressions):
    """Carries out statements in one scope, which they change; names that are not in it are the source's."""

    def run(self, statement: ast.stmt) -> None:
        """Carry out one statement of a function, or of the module."""
        self.source.step(statement)
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute()) if name in self.source.calls:
                pass  # another name for a function that is known by it
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if self.only_made(value):
                self.scope[name] = self.source.not_understood(statement)
            case ast.Assign(targets=targets, value=value):
                found = self.value(value)
                for target in targets:
                    self.assign(target, found)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, self.value(value))
            case ast.AugAssign(target=target, op=op, value=value):
                self.assign(target, self.augmented(statement, self.value(target), op, self.value(value)))
            case ast.For() | ast.While():
                self.loop(statement)
            case ast.If(test=test, body=body, orelse=orelse):
                self.run_all(body if self.value(test) else orelse)
            case ast.FunctionDef(name=name, decorator_list=around) if all(map(keeps_results, around)):
                self.scope[name] = self.defined(statement)
            case ast.FunctionDef(name=name) if self.only_wrapped(statement):
                self.scope[name] = self.source.not_understood(statement)
            case ast.Import(names=names) if all(one.name in MODULES for one in names):
                pass
            case ast.ImportFrom(module=whole) if whole in MODULES:
                pass
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                for alias in names:
                    self.bind(statement, alias)
            case ast.Assert() | ast.Pass() | ast.AnnAssign() | ast.Expr(ast.Call(ast.Name("print"))):
                pass
            case ast.Expr(ast.Call(ast.Attribute(attr=name))) if name in LOGGING:
                pass
            case ast.Expr(value=value):
                self.value(value)
            case ast.Return(value=value):
                raise Return(None if value is None else self.value(value))
            case ast.Break():
                raise Break
            case ast.Continue():
                raise Continue
            case _:
                raise self.source.not_understood(statement)

    def bind(self, statement: ast.stmt, alias: ast.alias) -> None:
        """Give a name that is imported its value, where it comes from another file of the package."""
        found = self.source.brought(statement, alias)
        if found is FOREIGN:
            raise self.source.not_understood(statement)
        for name in assigned_by(alias):
            self.scope[name] = found

    def run_all(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self.run(statement)

    def loop(self, statement: ast.For | ast.While) -> None:
        for _ in self.rounds(statement):
            try:
                self.run_all(statement.body)
            except Continue:
                continue
            except Break:
                return
        self.run_all(statement.orelse)

    def rounds(self, statement: ast.For | ast.While) -> Iterator[None]:
        if isinstance(statement, ast.While):
            while self.value(statement.test):
                yield
        else:
            for item in self.items(statement.iter):
                self.assign(statement.target, item)
                yield

    def only_wrapped(self, function: ast.FunctionDef) -> bool:
        """Whether imported decorators stand around it, so that it alone is unknown from then on.

        What their arguments and its defaults change is carried out.
        """
        for decorator in function.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            names = ast.unparse(called).split(".")
            if names[0] in self.scope or not self.source.foreign(names[0]):
                return False
            if not isinstance(decorator, ast.Call):
                continue
            if names[-1] not in LATER and hands_functions(decorator, lambda name: bool(self.closure(name))):
                return False  # they may be called at once
            self.carry_out_arguments(decorator)
        self.defined(function)  # its defaults
        return True

    def only_made(self, value: ast.expr) -> bool:
        """Whether it is ``triton.autotune(...)(kernel)`` or the like, so that it alone is unknown."""
        called = value
        while isinstance(called, ast.Call):
            called = called.func
        names = ast.unparse(called).split(".")
        own = names[0] in self.scope or not self.source.foreign(names[0])
        if called is value or own or names[-1] not in LATER:
            return False
        self.carry_out_arguments(value)
        return True

    def carry_out_arguments(self, call: ast.expr) -> None:
        """Of a call that is not understood itself."""
        while isinstance(call, ast.Call):
            for given in (*call.args, *(keyword.value for keyword in call.keywords)):
                calls = any(isinstance(part, (ast.Call, ast.NamedExpr)) for part in ast.walk(given))
                if calls and not self.only_made(given):
                    self.spread([given])
            call = call.func

    def augmented(self, statement: ast.stmt, left: Any, op: ast.operator, right: Any) -> Any:
        """``left += right``: a list, dictionary or set stays the same one, also under its other names."""
        if isinstance(left, list) and isinstance(op, ast.Add) and is_iterable(right):
            left += self.collect(statement, right)
            return self.sized(statement, left)
        found = self.binary(statement, op, left, right)
        if isinstance(left, list):
            left[:] = found
        elif isinstance(left, (dict, set)):
            found = found.copy()
            left.clear()
            left.update(found)
        return left if isinstance(left, (list, dict, set)) else found
