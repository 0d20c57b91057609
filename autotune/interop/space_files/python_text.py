"""What expressions and short functions of a Python source come to, found without running any of it.

Understood are literals, arithmetic, comparisons, comprehensions, a handful of functions such as ``range`` and
``itertools.product``, names that the module itself assigns, and its functions made of assignments,
``if``, loops, changes of lists and dictionaries, and ``return``. Anything else is an error that names its
file, line and column. Work and sizes are bounded, since the source is somebody else's.
"""

from __future__ import annotations

import ast
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, overload

from autotune.errors import InputError, Location, Problem, shorten
from autotune.interop.space_files.python_frame import Frame
from autotune.interop.space_files.python_operators import KNOWN_BY_NAME, MODULES
from autotune.interop.space_files.python_place import met_before
from autotune.interop.space_files.python_slice import Changes, assigned_by, slice_of
from autotune.interop.space_files.python_source import (
    FOREIGN,
    Call,
    Closure,
    Jump,
    Known,
    Others,
    Return,
    Scope,
)

MOST_STEPS = 500_000

MUTABLE = (list, dict, set)

UNDERSTOOD = "literals, ranges, comprehensions, and names and functions of this file made of them"


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
    """A Python source as text.

    ``calls`` says what calls of further functions come to, by their last name; ``known`` what imported
    names stand for that only running the source tells, such as ``os.environ``; ``unread`` which arguments of
    those further functions need not be understood. ``otherwise`` is what to do about a source that is not.
    ``others`` are the files that it imports from, if any are read.
    """

    def __init__(
        self,
        tree: ast.Module,
        file: str,
        calls: Mapping[str, Call],
        known: Mapping[str, Known] = MappingProxyType({}),
        unread: Collection[str] = (),
        otherwise: str = "",
        others: Others | None = None,
    ) -> None:
        self.tree = tree
        self.file = file
        self.calls = calls
        self.known = known
        self.unread = unread
        self.otherwise = otherwise
        self.others = others
        self.imported: Mapping[str, str] = dict(_imported(tree))
        self._changes = Changes(())
        self._values: Scope = {}
        self._failed: dict[str, InputError | None] = {}
        """Names that a statement gave a value that is not understood, and why; None for an import."""
        self._bound_by_imports: Scope = {}
        """What names stood for when they were imported."""
        self._local: frozenset[str] = frozenset()
        """Names that a function, class or loop around what is evaluated has for itself."""
        self._calling: list[ast.AST] = []
        self._steps = 0

    def place(self, node: ast.AST) -> Location:
        return Location(self.file, getattr(node, "lineno", 0), getattr(node, "col_offset", -1) + 1)

    def not_understood(self, node: ast.AST, why: str = "", expected: str = UNDERSTOOD) -> InputError:
        """The error that ``node`` is more than can be understood without running it."""
        message = f"{shorten(ast.unparse(node))!r} is not understood" + (f": {why}" if why else "")
        return InputError(Problem(message, self.place(node), expected, self.otherwise))

    def value(self, node: ast.expr, before: ast.AST | None = None) -> Any:
        """What ``node`` comes to where ``before`` stands in the source; at its end without."""
        met = met_before(before, self.tree)
        statements = [*met.module, *met.own]
        changes = self.others.changes(self.file, statements) if self.others else Changes(statements)
        chosen = slice_of(statements, [node], changes)
        if self.others:
            self.others.begin(self.file, [*chosen, node])
        self.run(chosen, changes, {id(one): met.unknown for one in met.own})
        self._local = met.unknown
        return Frame(self, {}).value(node)

    def run(
        self, statements: Iterable[ast.stmt], changes: Changes, local: Mapping[int, frozenset[str]]
    ) -> None:
        """Carry out statements of the module, from an empty one on.

        ``local`` are the names, by the ``id`` of a statement, that a function around that has for itself.
        """
        self._values, self._failed, self._bound_by_imports, self._steps = {}, {}, {}, 0
        self._changes = changes
        for statement in statements:
            self._local = local.get(id(statement), frozenset())
            self._run(statement)
        self._local = frozenset()
        self._steps = 0  # so that what took too many is named, and not what asks for it

    def exported(self, name: str) -> Any:
        """What a name of the module stands for to others that import it; as :attr:`Opened.member`."""
        if name in self._values:
            return self._values[name]
        if name not in self._failed:
            return self.not_understood(ast.Name(name), "no statement of this file gives it a value")
        why = self._failed[name]
        return FOREIGN if why is None else why

    def doubt(self, name: str, why: str) -> None:
        """Take a name, and all that shares its lists, for unknown from now on."""
        self._forget([name], self.not_understood(ast.Name(name), why))

    def value_in(self, node: ast.expr, scope: Scope) -> Any:
        """What ``node`` comes to where the names of ``scope`` have these values."""
        self._steps = 0
        return Frame(self, scope).value(node)

    def _run(self, statement: ast.stmt) -> None:
        """Carry out a statement of the module; what it changes is not known where it is not understood."""
        changed = self._changes.of(statement)
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            for alias in statement.names:
                self._import(statement, alias)
            return
        try:
            Frame(self, self._values).run(statement)
        except InputError as error:
            lists = {one for one in self._changes.handed(statement) if not self._is_constant(one)}
            self._forget(changed | lists, error)
        except Jump:  # a return that stands in no function
            self._forget(changed, self.not_understood(statement))
        unknown = {name: why for name, why in self._values.items() if isinstance(why, InputError)}
        self._failed = {name: why for name, why in self._failed.items() if name not in self._values}
        self._failed |= unknown
        for name in unknown:
            del self._values[name]

    def _import(self, statement: ast.stmt, alias: ast.alias) -> None:
        for name in assigned_by(alias):
            self._forget([name], None)
            found = self.brought(statement, alias)
            if isinstance(found, InputError):
                self._failed[name] = found
            elif found is not FOREIGN:
                self._values[name] = found
                del self._failed[name]
            self._bound_by_imports[name] = self._failed.get(name, found)

    def brought(self, statement: ast.stmt, alias: ast.alias) -> Any:
        """What a name of an import stands for; as :attr:`Opened.member`."""
        return FOREIGN if self.others is None else self.others.imported(self.file, statement, alias)

    def _is_constant(self, name: str) -> bool:
        """Whether nobody who is given a value can change it."""
        return isinstance(self._values.get(name, ()), (bool, int, float, str))

    def _forget(self, changed: Iterable[str], why: InputError | None) -> None:
        """These names, and others of the same lists or with these in their own, may be half changed."""
        halves = {id(self._values[name]) for name in changed if isinstance(self._values.get(name), MUTABLE)}
        holding = self._values.items() if halves else ()
        also = [name for name, value in holding if not halves.isdisjoint(_parts(value))]
        for name in (*changed, *also):
            self._values.pop(name, None)
            self._failed[name] = why

    def named(self, node: ast.Name) -> Any:
        """What the statements of the module have made of a name so far."""
        name = node.id
        if name in self._local:
            raise self.not_understood(node, "it is a name of the function or block that this stands in")
        if name == "__name__":
            return Path(self.file).stem
        if (error := self._failed.get(name)) is not None:
            raise error
        if name in self._values:
            return self._values[name]
        why = f"this file assigns nothing to {name} before, outside of functions and classes"
        if name in self._failed:
            if name in self.known:
                return self.known[name]()
            why = "it is imported"
        raise self.not_understood(node, why)

    def understood(self, name: str) -> Any:
        """What a name stands for; ``None`` where that is not understood."""
        return None if name in self._failed or name in self._local else self._values.get(name)

    def hides(self, name: str) -> bool:
        """Whether a name stands for what is not understood, or is imported from where nothing is known."""
        if name in self._local:
            return True
        return name in self._failed and not (self._failed[name] is None and name in self.imported)

    def since(self, name: str) -> str:
        """Why a name is not understood, as the end of a sentence; empty where it is imported or not there."""
        error = self._failed.get(name)
        if error is None:
            return ""
        problem = error.problems[0]
        if not problem.where:
            return ""
        place = "on" if problem.where.file == self.file else f"in {Path(problem.where.file).name} on"
        return f", since {place} line {problem.where.line} {problem.message}"

    def foreign(self, name: str) -> bool:
        """Whether a name is imported, so that nothing of the source runs where it is called."""
        now = self._failed[name] if name in self._failed else self._values.get(name, self)
        return name not in self._local and self._bound_by_imports.get(name, FOREIGN) is now

    def apply(self, closure: Closure, node: ast.AST, given: list[Any], by_name: Scope | None = None) -> Any:
        """What a function of the module returns for these arguments; ``node`` is where it is called."""
        if closure.source is not self:
            return closure.source.apply(closure, node, given, by_name)
        function = closure.function
        if function in self._calling:
            raise self.not_understood(node, "it calls itself")
        scope = ChainMap(self._bound(closure, node, given, by_name or {}), closure.scope)
        self._calling.append(function)
        try:
            if isinstance(function, ast.Lambda):
                return Frame(self, scope).value(function.body)
            for statement in function.body:
                Frame(self, scope).run(statement)
        except Return as returned:
            return returned.value
        finally:
            self._calling.pop()
        return None

    def _bound(self, closure: Closure, node: ast.AST, given: list[Any], by_name: Scope) -> Scope:
        called = getattr(closure.function, "name", "lambda")
        arguments = closure.function.args
        positions = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        names = [*positions, *(a.arg for a in arguments.kwonlyargs)]
        others = {name: value for name, value in by_name.items() if name not in names}
        too_many = len(given) > len(positions) and not arguments.vararg
        if too_many or (others and not arguments.kwarg):
            raise self.not_understood(node, f"the arguments of {called}()")
        scope: Scope = {**dict(zip(positions, given, strict=False)), **by_name}
        if arguments.vararg:
            scope[arguments.vararg.arg] = tuple(given[len(positions) :])
        if arguments.kwarg:
            scope[arguments.kwarg.arg] = others
        for name in names:
            if name not in scope:
                if name not in closure.defaults:
                    raise self.not_understood(node, f"{called}() needs {name}")
                scope[name] = closure.defaults[name]
                if isinstance(scope[name], InputError):
                    raise scope[name]
        return scope

    def step(self, node: ast.AST) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise self.not_understood(node, f"it takes more than {MOST_STEPS:,} steps")


def _parts(value: object) -> Iterator[int]:
    """The ``id`` of a value, and of all that is in it."""
    seen, waiting = set[int](), [value]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield id(one)
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, (list, tuple)):
            waiting += one


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The names under which the modules whose functions are known, and those functions, are imported."""
    for statement in ast.walk(tree):
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            whole = getattr(statement, "module", None)
            for alias in statement.names:
                if (whole or alias.name) in MODULES or alias.name in KNOWN_BY_NAME:
                    yield alias.asname or alias.name, alias.name
