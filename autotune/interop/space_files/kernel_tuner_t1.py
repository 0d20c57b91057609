"""The T1 file of a Kernel Tuner script as a space.yaml: parameters as knobs, conditions as constraints.

T1 is the format in which auto-tuners describe a kernel and its space to each other (schema T1 1.0.0, as
Kernel Tuner ships it). Values are texts in Python, ``"[1, 2, 4]"`` or ``"list(range(1, 9))"``, worked out
without running them. What the file says of the kernel's arguments, launch and metrics is not taken over: an
objective says it here.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from autotune.errors import InputError, Location, Problem, shorten
from autotune.interop.space_files.kernel_tuner_space import Gathered, workload_of
from autotune.interop.space_files.python_frame import Frame
from autotune.interop.space_files.python_text import Module, parsed
from autotune.interop.space_files.space_text import Converted, can_be_written
from autotune.space.configuration import Value
from autotune.space.knobs.values import key
from autotune.space.language.syntax import check_name
from autotune.space.reading.space_file import load_text

KINDS: Mapping[str, tuple[type, ...]] = {
    "int": (int,),
    "uint": (int,),
    "float": (int, float),
    "bool": (bool, int),
    "string": (str,),
}
"""What the values of a parameter of each type may be."""


LISTS: Mapping[str, str] = {
    "TuningParameters": '[{"Name": "tile", "Type": "int", "Values": "[1, 2, 4]"}, ...]',
    "Conditions": '[{"Expression": "tile * width <= 64"}, ...]',
}
"""What the lists of the file look like."""

CONDITIONS = ("conditions", "constraints", "restrictions")
"""What the list of conditions is called here and there, in small letters."""


def convert(file: Path) -> Converted:
    """The space that the T1 file describes. Raises :class:`InputError` with everything that is wrong."""
    return _Reader(file).convert()


class _Reader:
    """One T1 file, with the places of its texts."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.text = load_text(file)
        try:
            self.document = json.loads(self.text)
        except json.JSONDecodeError as error:
            where = Location(str(file), error.lineno, error.colno)
            raise InputError(Problem(f"this is not JSON: {error.msg}", where)) from None
        except ValueError as error:  # a number of thousands of digits
            raise InputError(Problem(f"this cannot be read: {error}", Location(str(file)))) from None
        except RecursionError:
            raise InputError(Problem("it is nested too deep", Location(str(file)))) from None
        self.problems: list[Problem] = []
        self.gathered = Gathered()
        self.module = Module(ast.Module([], []), str(file), {})

    def convert(self) -> Converted:
        space = self.mapping(self.document, "ConfigurationSpace")
        parameters = self.listed(space, "TuningParameters")
        knobs: dict[str, tuple[Value, ...]] = {}
        defaults: dict[str, Value] = {}
        for index, parameter in enumerate(parameters):
            before = sum("Values" in one for one in parameters[:index])
            where = self.place("Values", before) if "Values" in parameter else Location(str(self.file))
            try:
                name = self.name_of(parameter, index, where, knobs)
                knobs[name] = self.values_of(parameter, name, where)
            except InputError as error:
                self.problems += error.problems
                continue
            if parameter.get("Default") is not None:
                self.default(name, parameter["Default"], knobs[name], defaults)
        if not parameters:
            self.problems.append(Problem("there are no TuningParameters", Location(str(self.file))))
        self.raise_all()
        self.raise_for_conditions_elsewhere(space)
        conditions = self.listed(space, "Conditions")
        for index, condition in enumerate(conditions):
            before = sum("Expression" in one for one in conditions[:index])
            if isinstance(expression := condition.get("Expression"), str):
                try:
                    self.gathered.add(expression, self.place("Expression", before), knobs)
                except InputError as error:
                    self.problems += error.problems
            else:
                self.problems.append(
                    Problem(f"condition {index} has no Expression", Location(str(self.file)), "a text")
                )
        self.raise_all()
        return self.converted(knobs, defaults)

    def raise_all(self) -> None:
        if self.problems:
            raise InputError(self.problems)

    def raise_for_conditions_elsewhere(self, space: Mapping[str, Any]) -> None:
        """Older files have them under another key, often an empty one: none may be lost."""
        for name, value in space.items():
            if name.lower() in CONDITIONS and name != "Conditions" and value:
                expected = LISTS["Conditions"]
                raise InputError(
                    Problem(f"{name} is no key of T1: it has Conditions", self.place(name, 0), expected)
                )

    def mapping(self, whole: Any, name: str) -> Mapping[str, Any]:
        found = whole.get(name) if isinstance(whole, dict) else None
        if not isinstance(found, dict):
            hint = "a recorded search is read by autotune import"
            message = f"this is no T1 file: it has no {name}"
            raise InputError(Problem(message, Location(str(self.file)), "ConfigurationSpace: {...}", hint))
        return found

    def listed(self, whole: Mapping[str, Any], name: str) -> Sequence[Any]:
        found = whole.get(name) or []
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise InputError(Problem(f"{name} is no list of objects", self.place(name, 0), LISTS[name]))
        return found

    def name_of(
        self, parameter: Mapping[str, Any], number: int, where: Location, taken: Collection[str]
    ) -> str:
        name = parameter.get("Name")
        if not isinstance(name, str):
            raise InputError(Problem(f"parameter {number} has no Name", where))
        if name in taken:
            raise InputError(Problem(f"there are two parameters {name!r}", where))
        try:
            check_name(name)
        except ValueError as error:
            raise InputError(Problem(str(error), where, hint="rename it there")) from None
        return name

    def values_of(self, parameter: Mapping[str, Any], name: str, where: Location) -> tuple[Value, ...]:
        """Each value once, of the type that the parameter is said to have."""
        kind = parameter.get("Type")
        if not isinstance(kind, str) or kind not in KINDS:
            raise InputError(Problem(f"{name} is of type {kind!r}", where, f"one of {', '.join(KINDS)}"))
        values = self.values(parameter.get("Values"), where)
        wrong = [v for v in values if not isinstance(v, KINDS[kind]) or not can_be_written(v)]
        wrong += [v for v in values if kind == "bool" and v not in (0, 1)]
        wrong += [v for v in values if kind == "uint" and isinstance(v, int) and v < 0]
        if wrong or not values:
            message = f"{name} can be {wrong[0]!r}" if wrong else f"{name} has no values"
            finite = "finite " if kind == "float" else ""
            raise InputError(Problem(message, where, f"{finite}values of type {kind}"))
        meant = map(bool, values) if kind == "bool" else values
        return tuple({key(value): value for value in meant}.values())

    def default(self, name: str, written: Any, values: Sequence[Value], defaults: dict[str, Any]) -> None:
        """Some write the default as a text, as they write values."""
        meant = [written]
        if isinstance(written, str) and written not in values:
            with suppress(InputError):
                meant = self.values(written, Location(str(self.file)))
        found = [value for value in values if [value] == meant]
        if found:
            defaults[name] = found[0]
        else:
            said = f"the Default of {name}, {shorten(repr(written))}, is none of its values"
            self.gathered.notes.append(f"{said}: it counts as not given.")

    def values(self, written: Any, where: Location) -> list[Any]:
        """The values, of a list or of the text of one."""
        if isinstance(written, list):
            return written
        if not isinstance(written, str):
            said = "there are no Values" if written is None else f"the Values are {shorten(repr(written))}"
            raise InputError(Problem(said, where, 'a text such as "[1, 2, 4]"'))
        try:
            tree = parsed(written.strip(), "eval").body
            found = self.module.value_in(tree, {"true": True, "false": False})
            if isinstance(found, set):  # it has no order, and of texts another one each time
                found = sorted(found, key=_place)
            many = isinstance(found, (list, tuple, range, Iterator))
            return Frame(self.module, {}).collect(tree, found) if many else [found]
        except (SyntaxError, ValueError, RecursionError) as error:
            message = f"{shorten(written)!r} is no Python: {getattr(error, 'msg', error)}"
            raise InputError(Problem(message, where)) from None
        except InputError as error:
            problem = error.problems[0]
            raise InputError(Problem(problem.message, where, problem.expected, problem.hint)) from None

    def place(self, name: str, number: int) -> Location:
        """Where the text of the key ``name`` begins when it is met for the ``number``-th time, from 0."""
        found = list(re.finditer(rf'"{name}"\s*:\s*"?', self.text))
        if number >= len(found):
            return Location(str(self.file))
        end = found[number].end()
        line_start = self.text.rfind("\n", 0, end) + 1
        return Location(str(self.file), self.text.count("\n", 0, end) + 1, end - line_start + 1)

    def converted(self, knobs: Mapping[str, tuple[Value, ...]], defaults: Mapping[str, Value]) -> Converted:
        kernel = self.document.get("KernelSpecification")
        kernel = kernel if isinstance(kernel, dict) else {}
        name = str(kernel.get("KernelName") or self.file.stem)
        name = name if can_be_written(name) else self.file.stem
        workload = workload_of(kernel.get("ProblemSize"))
        about = f"The space of {name} from {self.file.name}, a T1 file."
        return self.gathered.space(name, about, self.file, knobs, workload, defaults)


def _place(value: object) -> tuple[bool, float, str]:
    """Numbers by their size, then all else by its text."""
    if isinstance(value, (int, float)):
        return False, value, ""
    return True, 0.0, repr(value)
