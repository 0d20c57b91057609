"""Which statements of a Python source a value depends on, by the names that they change. Pure.

A source does much that has nothing to do with the value: imports, kernels, launches. Only the statements
that may change what the value is made of have to be understood.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence

Names = frozenset[str]


def slice_of(body: Sequence[ast.stmt], nodes: Sequence[ast.AST]) -> list[ast.stmt]:
    """Those statements of ``body``, in their order, that ``nodes`` depend on."""
    changes = Changes(body)
    changing: dict[str, list[int]] = defaultdict(list)
    for index, statement in enumerate(body):
        for name in changes.of(statement):
            changing[name].append(index)
    needed = set[str]()
    chosen = set[int]()
    waiting = [name for node in nodes for name in mentioned(node)]
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        needed.add(name)
        for index in changing[name]:
            if index not in chosen:
                chosen.add(index)
                # What it assigns beside `name` may be the same list under another name.
                waiting += [*mentioned(body[index]), *changes.of(body[index])]
    return [body[index] for index in sorted(chosen)]


class Changes:
    """The names that statements of a source assign to, or whose lists and dictionaries they may change."""

    def __init__(self, body: Sequence[ast.stmt]) -> None:
        self._functions: dict[str, list[ast.FunctionDef]] = defaultdict(list)
        for statement in body:
            if isinstance(statement, ast.FunctionDef):
                self._functions[statement.name].append(statement)
        self._known: dict[str, Names] = {}

    def of(self, statement: ast.stmt) -> Names:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return frozenset({statement.name})
        found = set(_changed(statement))
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id in self._functions:
                found |= self._by_function(node.id)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                found |= self._given(node) if node.func.id in self._functions else set()
        return frozenset(found)

    def _by_function(self, name: str) -> Names:
        """What the functions of this name change, and those that they mention in turn."""
        if name not in self._known:
            found, reached, waiting = set[str](), set[str](), [name]
            while waiting:
                one = waiting.pop()
                if one in self._functions and one not in reached:
                    reached.add(one)
                    for function in self._functions[one]:
                        found |= set(_changed(function))
                        waiting += mentioned(function)
            self._known[name] = frozenset(found)
        return self._known[name]

    def _given(self, call: ast.Call) -> set[str]:
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        return {one.id for one in given if isinstance(one, ast.Name)}


def mentioned(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _changed(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name
            case ast.Call(func=ast.Attribute(value=whole)):
                yield from _root(whole)
            case ast.Subscript(value=whole, ctx=ast.Store() | ast.Del()):
                yield from _root(whole)
            case ast.Assign(value=ast.Name(id=name)):  # a second name, through which it can be changed
                yield name
            case ast.alias(name=name, asname=other):
                yield other or name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name


def _root(node: ast.expr) -> Iterator[str]:
    """The name that ``name.part[0].part`` begins with."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id
