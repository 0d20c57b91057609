"""Which statements of a Python source a value depends on, by the names that they change. Pure.

A source does much that has nothing to do with the value: imports, kernels, launches. Only the statements
that may change what the value is made of have to be understood.
"""

from __future__ import annotations

import ast
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from autotune.interop.space_files.python_operators import FUNCTIONS, METHOD_NAMES

Names = frozenset[str]

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

Called = Definition | ast.Lambda

HARMLESS = METHOD_NAMES | {"print", "pprint", "debug", "info", "warning", "warn", "error", "tune_kernel"}
"""Functions that change nothing of what they are given: those carried out, or that say it or tune with it."""


def slice_of(body: Sequence[ast.stmt], nodes: Sequence[ast.AST], changes: Changes) -> list[ast.stmt]:
    """Those statements of ``body``, in their order, that ``nodes`` depend on; ``changes`` are theirs."""
    changing: dict[str, list[int]] = defaultdict(list)
    for index, statement in enumerate(body):
        for name in changes.of(statement) | changes.handed(statement):
            changing[name].append(index)
    needed = _of_comprehensions([*body, *nodes])  # nothing outside changes what these stand for
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
                waiting += mentioned(body[index])
    return [body[index] for index in sorted(chosen)]


def _of_comprehensions(trees: Sequence[ast.AST]) -> set[str]:
    """The names that only comprehensions give values, each of them its own."""
    parts = [*itertools.chain.from_iterable(map(ast.walk, trees))]
    targets = [mentioned(part.target) for part in parts if isinstance(part, ast.comprehension)]
    others = itertools.chain.from_iterable(map(assigned_by, trees))
    return set[str]().union(*targets) - {*others, *(part.arg for part in parts if isinstance(part, ast.arg))}


class Changes:
    """The names that statements of a source assign to, or whose lists and dictionaries they may change.

    A list can be changed by another name, and what is in it by that of a loop: ``c.num_warps = 8`` in a loop
    ``for c in configs`` changes ``configs``.
    """

    def __init__(self, body: Sequence[ast.stmt], followed: Names = frozenset()) -> None:
        """``followed`` are names that are imported from where what they stand for is found out."""
        self._definitions: dict[str, list[Called]] = defaultdict(list)
        self._held: dict[str, set[str]] = defaultdict(set)
        """Of a name those whose lists it may stand for, or hold."""
        self._modules = _only_imported(body) - followed
        for statement in body:
            for name, called in _defining(statement):
                self._definitions[name].append(called)
            for name, held in _holding(statement):
                self._held[name].add(held)
        self._known: dict[str, Names] = {}
        self._apart: dict[str, tuple[Names, Names]] = {}

    def of(self, statement: ast.stmt) -> Names:
        run: Sequence[ast.AST] = [statement]
        decorators: Sequence[ast.AST] = []
        assigned = set(assigned_by(statement))
        if isinstance(statement, Definition):  # what is in its functions runs when they are called
            run, decorators, assigned = (
                _run_by_defining(statement),
                statement.decorator_list,
                {statement.name},
            )
        altered = {name for part in run for name in _altered(part)}
        for node in itertools.chain.from_iterable(map(ast.walk, (*run, *decorators))):
            if isinstance(node, ast.Name):
                altered |= self._by_calling(node.id)
            if isinstance(node, ast.Call):
                altered |= self._given(node)
        return frozenset(assigned | self._reached(altered))

    def handed(self, statement: ast.stmt) -> Names:
        """The names whose lists unknown functions are given by calls that can have no other purpose."""
        if isinstance(statement, Definition):
            return frozenset()
        return frozenset(self._reached(_handed(statement)))

    def by_calls(self, called: Called) -> Names:
        """What calling a function or the methods of a class changes of the module's."""
        own, declared = _names_in(called)
        return frozenset((self._reached({*_altered(called), *_handed(called)}) - own) | declared)

    def in_place(self, tree: ast.AST) -> Names:
        """What a tree may change in place, wherever in it."""
        return frozenset(self._reached(_altered(tree)))

    def _reached(self, names: Iterable[str]) -> set[str]:
        """These names, and those whose lists they may hold."""
        found, waiting = set[str](), list(names)
        while waiting:
            name = waiting.pop()
            if name not in found and name not in self._modules:
                found.add(name)
                waiting += self._held.get(name, ())
        return found

    def _by_calling(self, name: str) -> Names:
        """What the functions and classes of this name change, and those that they mention in turn."""
        if name not in self._known:
            found, reached, waiting = set[str](), set[str](), [*self._reached([name])]
            while waiting:
                one = waiting.pop()
                if one in self._definitions and one not in reached:
                    reached.add(one)
                    changed, mentions = self._alone(one)
                    found |= changed
                    waiting += mentions - reached
            self._known[name] = frozenset(found)
        return self._known[name]

    def _alone(self, name: str) -> tuple[Names, Names]:
        """What the functions and classes of this name change themselves, and which others they mention."""
        if name not in self._apart:
            definitions = self._definitions[name]
            changed = frozenset[str]().union(*map(self._outside, definitions))
            mentions = self._reached(itertools.chain.from_iterable(map(mentioned, definitions)))
            self._apart[name] = changed, frozenset(mentions & self._definitions.keys())
        return self._apart[name]

    def _outside(self, called: Called) -> set[str]:
        """What calling it changes of the module's: all but its own names and those of functions in it."""
        parts = [*ast.walk(called)]
        own, declared = _names_in(called)
        assigned = itertools.chain.from_iterable(map(assigned_by, ast.iter_child_nodes(called)))
        changed = {*assigned, *_altered(called), *_handed(called)}
        changed = changed.union(*map(self._given, (part for part in parts if isinstance(part, ast.Call))))
        itself = (
            {called.name} if isinstance(called, ast.FunctionDef) and changed & _made_once(called) else set()
        )
        return (self._reached(changed) - own) | declared | itself

    def _given(self, call: ast.Call) -> set[str]:
        """The names that a function or class of the source is given.

        Also that of a list whose method is called by another name: ``add = configs.append``.
        """
        if isinstance(call.func, ast.Attribute):
            return set()
        called = self._reached(_root(call.func))
        if not called & {*self._definitions}:
            return called - {*_root(call.func)}
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        return {one.id for one in given if isinstance(one, ast.Name)}


def _made_once(function: ast.FunctionDef) -> set[str]:
    """Arguments with a list or the like as default: it is the same in all calls, and one may change it."""
    lists = ast.List, ast.Dict, ast.Set, ast.Call
    return {name for name, default in defaults_of(function.args) if isinstance(default, lists)}


def _names_in(called: Called) -> tuple[set[str], set[str]]:
    """The own names of a function or class, and of those in it; and those of the module that they declare."""
    parts = [*ast.walk(called)]
    own = {name for part in parts if isinstance(part, Called) for name in local_names(part, part)}
    return own, {name for part in parts if isinstance(part, ast.Global) for name in part.names}


def _only_imported(body: Sequence[ast.stmt]) -> Names:
    """Names of modules and the like: what they stand for is not known, so that nothing changes it either."""
    imported, assigned = set[str](), set[str]()
    for node in itertools.chain.from_iterable(map(ast.walk, body)):
        match node:
            case ast.alias(name=name, asname=other):
                imported.add(other or name.partition(".")[0])
            case ast.Name(id=name, ctx=ast.Store()):
                assigned.add(name)
    return frozenset(imported - assigned)


def _defining(statement: ast.stmt) -> Iterator[tuple[str, Called]]:
    """A function or class with its name; also one without a name of its own that is assigned to one."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield statement.name, statement
        case ast.Assign(targets=targets, value=ast.Lambda() as called):
            yield from ((target.id, called) for target in targets if isinstance(target, ast.Name))


def _run_by_defining(definition: Definition) -> Sequence[ast.AST]:
    """What of a function or class runs where it stands: defaults, or the statements of a class."""
    if isinstance(definition, ast.ClassDef):
        return [part for part in definition.body if not isinstance(part, Definition)]
    defaults = (*definition.args.defaults, *definition.args.kw_defaults)
    return [node for node in defaults if node is not None]


def mentioned(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def local_names(statement: ast.AST, node: ast.AST) -> Names:
    """What a function, class or block around ``node`` assigns to itself, its arguments too."""
    found, waiting = set[str](), [*ast.iter_child_nodes(statement)]
    while waiting:
        part = waiting.pop()
        match part:
            case ast.arg(arg=name):
                found.add(name)
            case (
                ast.FunctionDef(name=name, body=body)
                | ast.AsyncFunctionDef(name=name, body=body)
                | ast.ClassDef(name=name, body=body)
            ):
                found.add(name)
                if not any(inner is node for one in body for inner in ast.walk(one)):
                    continue  # its own names are of no concern to the node
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                continue
            case ast.Name() | ast.alias():
                found |= {*assigned_by(part)}
        waiting += ast.iter_child_nodes(part)
    return frozenset(found)


def assigned_by(statement: ast.AST) -> Iterator[str]:
    """Names that a statement gives values, or takes these from."""
    for node in _outside_of_comprehensions(statement):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name
            case ast.alias(name=name, asname=other):
                yield other or name.partition(".")[0]
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name


def _outside_of_comprehensions(statement: ast.AST) -> Iterator[ast.AST]:
    """All parts but the targets of comprehensions, whose names are theirs alone."""
    waiting = [statement]
    while waiting:
        node = waiting.pop()
        yield node
        for part in ast.iter_child_nodes(node):
            if not isinstance(node, ast.comprehension) or part is not node.target:
                waiting.append(part)


def _altered(statement: ast.AST) -> Iterator[str]:
    """The names of what may be changed in place."""
    for node in ast.walk(statement):
        match node:
            case ast.Call(func=ast.Attribute(value=whole)):
                yield from _root(whole)
            case ast.Subscript(value=whole, ctx=ast.Store() | ast.Del()):
                yield from _root(whole)
            case ast.Attribute(value=whole, ctx=ast.Store() | ast.Del()):
                yield from _root(whole)
            case ast.AugAssign(target=ast.Name(id=name)):
                yield name


def _handed(statement: ast.AST) -> Iterator[str]:
    """Names that unknown functions are given, by calls of whose results nothing is made."""
    for node in ast.walk(statement):
        if not isinstance(node, ast.Expr) or not isinstance(call := node.value, ast.Call):
            continue
        if (getattr(call.func, "attr", "") or getattr(call.func, "id", "")) in HARMLESS:
            continue
        for given in (*call.args, *(keyword.value for keyword in call.keywords)):
            yield from _parts(given)


def _holding(statement: ast.AST) -> Iterator[tuple[str, str]]:
    """Names, each with one whose lists, or what is in them, it may stand for or hold from then on."""
    for node in ast.walk(statement):
        match node:
            case ast.Assign(value=value, targets=targets):
                pairs = [(target, value) for target in targets]
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.AugAssign(target=target, value=value)
                | ast.For(target=target, iter=value)
                | ast.comprehension(target=target, iter=value)
            ):
                pairs = [(target, value)]
            case ast.Call(func=ast.Attribute(value=whole), args=given):
                pairs = [(whole, value) for value in given]
            case ast.ClassDef(name=name, body=body):  # its parts, as K.sizes
                inner = itertools.chain.from_iterable(map(assigned_by, body))
                pairs = [(ast.Name(name), ast.Name(one)) for one in inner]
            case ast.arguments():
                pairs = [(ast.Name(one), value) for one, value in defaults_of(node)]
            case _:
                pairs = []
        for target, value in pairs:
            yield from itertools.product(_roots(target), _parts(value))


def defaults_of(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    """The names of arguments that have a default, and that."""
    positions = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    yield from zip(positions[len(positions) - len(arguments.defaults) :], arguments.defaults, strict=True)
    for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if value is not None:
            yield one.arg, value


def _parts(node: ast.AST) -> Iterator[str]:
    """The names of what a value may be, or be made of; not of what unknown functions are given."""
    if isinstance(node, ast.Name):
        yield node.id
    elif not isinstance(node, ast.Call):
        for child in ast.iter_child_nodes(node):
            yield from _parts(child)
    elif getattr(node.func, "id", "") in FUNCTIONS:  # it may give what it is given, but not itself
        for given in (*node.args, *node.keywords):
            yield from _parts(given)


def _roots(target: ast.AST) -> Iterator[str]:
    """The names that a target assigns to, or to a part of."""
    if isinstance(target, (ast.Tuple, ast.List, ast.Starred)):
        for child in ast.iter_child_nodes(target):
            yield from _roots(child)
    elif isinstance(target, ast.expr):
        yield from _root(target)


def _root(node: ast.expr) -> Iterator[str]:
    """The name that ``name.part[0].part`` begins with."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id
