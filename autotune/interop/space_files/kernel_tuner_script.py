"""The space of a script for Kernel Tuner as a space.yaml. The script is never run.

``tune_params`` and ``restrictions`` of its ``tune_kernel(...)`` are worked out from the text, as lists of
``triton.autotune`` are. A restriction is a condition in Python: a text, or a function that returns one.
"""

from __future__ import annotations

import ast
import copy
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from autotune.errors import InputError, Location, Problem, nearest, shorten
from autotune.interop.space_files.kernel_tuner_space import Gathered, workload_of
from autotune.interop.space_files.package_files import (
    File,
    Files,
    imports_in,
    notes_of_hidden_changes,
    read_source,
)
from autotune.interop.space_files.package_values import Package
from autotune.interop.space_files.python_frame import Frame
from autotune.interop.space_files.python_operators import FUNCTIONS
from autotune.interop.space_files.python_slice import mentioned
from autotune.interop.space_files.python_source import Closure
from autotune.interop.space_files.python_text import Module
from autotune.interop.space_files.space_text import Converted, can_be_written, name_problems
from autotune.interop.space_files.triton_kernels import names_of
from autotune.interop.space_files.triton_space import KERNEL_TUNER
from autotune.space.configuration import Value
from autotune.space.knobs.values import key
from autotune.space.language.parser import parse
from autotune.space.language.syntax import Binary, Boolean, Comparison, Literal, Name, Node

ARGUMENTS = ("kernel_name", "kernel_source", "problem_size", "arguments", "tune_params")
FURTHER = ("grid_div_x", "grid_div_y", "grid_div_z", "restrictions")
"""What ``tune_kernel`` takes, in its order, as far as its space is made of it."""

THREADS = ("block_size_x", "block_size_y", "block_size_z")
"""Parameters that Kernel Tuner takes for the sides of a thread block."""
MOST_THREADS = 1024
"""No device allows a block more threads than so many."""

RESTRICTION = "a text such as 'x * y <= 64', or a function such as lambda p: p['x'] * p['y'] <= 64"
OTHERWISE = "let Kernel Tuner write a T1 file, or the cache of what it measures, which autotune import reads"


def convert(file: Path, kernel: str = "") -> Converted:
    """The space of the ``tune_kernel`` in ``file``; of several, that of the kernel called ``kernel``.

    Raises :class:`InputError` with the place of what is not understood.
    """
    try:
        return _Script(file).convert(kernel)
    except RecursionError:
        raise InputError(Problem("the source is nested too deep", Location(str(file)))) from None


def tuned_in(tree: ast.Module) -> list[ast.Call]:
    """The calls of ``tune_kernel`` in a source that imports Kernel Tuner."""
    modules = set[str]()
    for statement, alias in imports_in(tree):
        modules.add(statement.module or "" if isinstance(statement, ast.ImportFrom) else alias.name)
    if KERNEL_TUNER not in {module.partition(".")[0] for module in modules}:
        return []
    names = names_of(tree, "tune_kernel")
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [one for one in calls if (getattr(one.func, "attr", "") or getattr(one.func, "id", "")) in names]


class _Script:
    """One script, and what is noted while it is read."""

    def __init__(self, file: Path) -> None:
        self.file = file
        text, tree = read_source(file)
        files = Files(())
        self.package = Package(files, file.resolve(), self.module_of, OTHERWISE)
        self.module = self.module_of(files.add(file.resolve(), tree, text), self.package)
        self.gathered = Gathered()

    def module_of(self, file: File, package: Package) -> Module:
        shown = str(self.file) if package.main == file.path else os.path.relpath(file.path)
        return Module(file.tree, shown, {}, otherwise=OTHERWISE, others=package)

    def convert(self, kernel: str) -> Converted:
        call, name = self.chosen(kernel)
        given = self.arguments(call)
        knobs = self.knobs(given["tune_params"], call)
        if "restrictions" in given:
            for restriction in self.restrictions(given["restrictions"], call):
                self.restrict(given["restrictions"], restriction, knobs)
        self.note_threads(knobs, self.gathered.constraints)
        self.note_goal(given)
        self.gathered.notes += notes_of_hidden_changes(self.module.tree)
        about = f"The space of tune_kernel for {name} ({self.file.name}:{call.lineno})."
        return self.gathered.space(name, about, self.file, knobs, self.workload(given, call))

    def chosen(self, kernel: str) -> tuple[ast.Call, str]:
        """The call that is meant, and the name of its kernel."""
        found = [(call, self.name_of(call)) for call in tuned_in(self.module.tree)]
        names = [name for _, name in found]
        where = Location(str(self.file))
        if kernel and kernel not in names:
            meant = nearest(kernel, names)
            raise InputError(Problem(f"there is no kernel {kernel!r}", where, ", ".join(names), meant))
        meant_ones = [one for one in found if kernel in ("", one[1])]
        if len(meant_ones) > 1:
            lines = ", ".join(f"{name} on line {call.lineno}" for call, name in meant_ones)
            raise InputError(Problem(f"tune_kernel is called for {lines}", where, "one, named by --kernel"))
        return meant_ones[0]

    def name_of(self, call: ast.Call) -> str:
        """The name of a call's kernel; that of the script where it is not understood."""
        try:
            name = self.module.value(self.arguments(call)["kernel_name"], call)
        except (InputError, KeyError):
            name = None
        return name if isinstance(name, str) and can_be_written(name) else self.file.stem

    def arguments(self, call: ast.Call) -> dict[str, ast.expr]:
        given = dict(zip((*ARGUMENTS, *FURTHER), call.args, strict=False))
        given |= {word.arg: word.value for word in call.keywords if word.arg}
        unseen = [word.value for word in call.keywords if word.arg is None]
        unseen += [one for one in call.args if isinstance(one, ast.Starred)]
        if unseen:
            raise self.module.not_understood(unseen[0], "arguments are read where they are written out")
        if "tune_params" not in given:
            raise self.module.not_understood(call, "it has no tune_params")
        return given

    def knobs(self, node: ast.expr, call: ast.Call) -> dict[str, tuple[Value, ...]]:
        """Each value once."""
        found = self.module.value(node, call)
        if not isinstance(found, dict) or not found:
            raise self.module.not_understood(node, "tune_params is a dictionary of lists")
        knobs: dict[str, tuple[Value, ...]] = {}
        for name, values in found.items():
            listed = values if isinstance(values, (list, tuple, range)) else ()
            many = Frame(self.module, {}).collect(node, listed)
            plain = (bool, int, float, str)
            wrong = [one for one in many if not isinstance(one, plain) or not can_be_written(one)]
            if not isinstance(name, str):
                raise self.module.not_understood(node, f"{name!r} is no text, which names a parameter")
            if wrong or not many:
                said = f"can be {shorten(repr(wrong[0]))}" if wrong else "has no list of values"
                raise self.module.not_understood(node, f"{name} {said}")
            knobs[name] = tuple({key(value): value for value in many}.values())
        if problems := name_problems(knobs, self.module.place(node)):
            raise InputError(problems)
        return knobs

    def restrictions(self, node: ast.expr, call: ast.Call) -> Sequence[Any]:
        found = self.module.value(node, call)
        if found is None:
            return ()
        return found if isinstance(found, (list, tuple)) else [found]

    def restrict(self, node: ast.expr, restriction: Any, knobs: Mapping[str, tuple[Value, ...]]) -> None:
        """Take a restriction in."""
        named: Sequence[str] | None = None
        if isinstance(restriction, tuple) and len(restriction) == 2:
            restriction, given = restriction
            named = self.parameters(node, given, knobs)
        where = self.module.place(node)
        if isinstance(restriction, Closure):
            where = self.module.place(restriction.function)
            restriction = self.condition(restriction, knobs, named)
        if not isinstance(restriction, str):
            why = "a restriction is a text, or a function that returns one"
            raise self.module.not_understood(node, why, RESTRICTION)
        self.gathered.add(restriction, where, knobs)

    def parameters(self, node: ast.expr, given: Any, knobs: Mapping[str, Sequence[Value]]) -> list[str]:
        """Those that a restriction is said to be of: Kernel Tuner hands it their values in this order."""
        names = list(given) if isinstance(given, (list, tuple)) else []
        strange = [one for one in names if not isinstance(one, str) or one not in knobs]
        if strange or not names:
            why = f"{shorten(repr(strange[0]))} is no parameter" if strange else "no list of parameters"
            raise self.module.not_understood(node, f"beside a restriction {why}", RESTRICTION)
        return names

    def condition(
        self, closure: Closure, knobs: Mapping[str, Sequence[Value]], named: Sequence[str] | None
    ) -> str:
        """What a function returns, as a text over knobs; other names in it as what they stand for.

        ``named`` are the knobs that its arguments are, in their order, where the script says so.
        """
        function = closure.function
        match function:
            case ast.Lambda(body=body):
                returned: ast.expr | None = body
            case ast.FunctionDef(body=[*first, ast.Return(value=value)]) if all(map(_says_nothing, first)):
                returned = value
            case _:
                returned = None
        given = function.args
        names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        plain = not (given.vararg or given.kwarg or closure.defaults)
        one_each = len(names) == len(named) if named else len(names) == 1 or {*names} <= {*knobs}
        if returned is None or not plain or not one_each:
            why = "a restriction is one expression over parameters, or over one dictionary of them"
            raise self.module.not_understood(function, why, RESTRICTION)
        loops = [part.target for part in ast.walk(returned) if isinstance(part, ast.comprehension)]
        own = set[str]().union(*map(mentioned, loops))
        meant = dict(zip(names, named or names, strict=True))
        if named and (both := own & {*names, *named}):
            why = f"{sorted(both)[0]} is a parameter, and a name in it"
            raise self.module.not_understood(function, why, RESTRICTION)
        settled = _Settled(closure, own, meant).visit(copy.deepcopy(returned))
        return ast.unparse(ast.fix_missing_locations(settled))

    def workload(self, given: Mapping[str, ast.expr], call: ast.Call) -> dict[str, Value]:
        try:
            return workload_of(self.module.value(given["problem_size"], call))
        except (InputError, KeyError):
            return {}

    def note_threads(self, knobs: Mapping[str, Sequence[Value]], constraints: Sequence[str]) -> None:
        """Name the constraint that Kernel Tuner adds to a script's, unless the script has one like it."""
        sides = [name for name in THREADS if name in knobs]
        if sides and not any(_limits(parse(rule), sides) for rule in constraints):
            self.gathered.notes.append(
                "Kernel Tuner also leaves out thread blocks that are too large for the device: "
                f"for that write the constraint {' * '.join(sides)} <= {MOST_THREADS}, say."
            )

    def note_goal(self, given: Mapping[str, ast.expr]) -> None:
        """Say so where the script tunes for something else than the time."""
        goal = given.get("objective")
        if goal is not None and ast.unparse(goal) != "'time'":
            what = shorten(ast.unparse(goal))
            self.gathered.notes.append(
                f"it is tuned for {what}, and this space is for time: its 'metrics' say what for."
            )


def _limits(rule: Node, sides: Sequence[str]) -> bool:
    """Whether a rule says that the product of ``sides`` is at most :data:`MOST_THREADS`, or less."""
    if isinstance(rule, Boolean) and rule.operator == "and":
        return any(_limits(part, sides) for part in rule.operands)
    if not isinstance(rule, Comparison):
        return False
    for sign, left, right in zip(rule.operators, rule.operands[:-1], rule.operands[1:], strict=True):
        less, more = (right, left) if sign in (">", ">=") else (left, right)
        bound = more.value if isinstance(more, Literal) else None
        small = isinstance(bound, (int, float)) and bound <= MOST_THREADS
        if sign in ("<", "<=", ">", ">=") and small and sorted(_factors(less)) == sorted(sides):
            return True
    return False


def _factors(product: Node) -> list[str]:
    """The names in a product of names; anything else in it as an empty one."""
    if isinstance(product, Binary) and product.operator == "*":
        return [*_factors(product.left), *_factors(product.right)]
    return [product.name if isinstance(product, Name) else ""]


class _Settled(ast.NodeTransformer):
    """Puts the values of other names than a function's own in their place, and knobs in that of arguments."""

    def __init__(self, closure: Closure, own: set[str], meant: Mapping[str, str]) -> None:
        self.closure = closure
        self.own = own
        self.meant = meant

    def visit_Name(self, node: ast.Name) -> ast.expr:
        source, scope = self.closure.source, self.closure.scope
        if node.id in self.meant:
            return ast.Name(self.meant[node.id], ast.Load())
        if node.id in self.own or (
            node.id in FUNCTIONS and node.id not in scope and not source.hides(node.id)
        ):
            return node
        found = scope[node.id] if node.id in scope else source.named(node)
        if isinstance(found, InputError):
            raise found
        if not isinstance(found, (bool, int, float, str)):
            why = "in a restriction it has to be a number or a text"
            raise source.not_understood(node, why, RESTRICTION)
        if isinstance(found, (int, float)) and found < 0:  # as Python reads it: -3 ** 2 is -(3 ** 2)
            return ast.UnaryOp(ast.USub(), ast.Constant(-found))
        return ast.Constant(found)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id not in FUNCTIONS:
            raise self.closure.source.not_understood(node, expected=RESTRICTION)
        if not isinstance(node.func, ast.Attribute):
            return self.generic_visit(node)
        node.args = [self.visit(one) for one in node.args]  # math.ceil(...) keeps its module
        return node


def _says_nothing(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
