"""The configurations of ``triton.autotune`` in a Python source as a space.yaml. The source is never run.

``configs`` and ``key`` of the decorator are worked out from the text
(:mod:`autotune.interop.space_files.python_text`), and from that of the files of its package that it imports
(:mod:`autotune.interop.space_files.package_values`).
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from autotune.errors import InputError, Location, Problem, nearest
from autotune.interop.space_files.assumed_device import BUILD, DEVICE, PACKAGES, Installed
from autotune.interop.space_files.package_files import File, Files, notes_of_hidden_changes, read_source
from autotune.interop.space_files.package_values import Package
from autotune.interop.space_files.python_operators import KNOWN_BY_NAME
from autotune.interop.space_files.python_slice import local_names
from autotune.interop.space_files.python_source import Call, Closure, Known
from autotune.interop.space_files.python_text import Module
from autotune.interop.space_files.space_text import Converted
from autotune.interop.space_files.triton_kernels import Autotuned, autotuned, changes_of_configs, names_of
from autotune.interop.space_files.triton_space import (
    OPTIONS,
    Config,
    Listed,
    chosen,
    names_in,
    not_translated,
    space_of,
)

LEFT_OUT = ("prune_configs_by", "reset_to_zero", "restore_value", "pre_hook", "post_hook")
"""What ``triton.autotune`` takes after ``configs`` and ``key``, in its order, and has no place in a space."""

UNREAD = ("pre_hook", "ir_override")
"""What ``triton.Config`` takes and has no place in a space."""

UNSEEN = "a kernel that a function of the source decorates is found by convert --run, which imports it"

RUN = "convert --run imports the source and takes the configurations that it makes"


def convert(file: Path, kernel: str = "", configs: str = "", output: Path | None = None) -> Converted:
    """The space of the configurations in ``file``.

    ``kernel`` names one of several kernels, ``configs`` a list or a function of the file that is read in the
    place of the decorator's ``configs``. ``output`` is where the space file will lie. Raises
    :class:`InputError` with the place of what is not understood.
    """
    try:
        return _Reader(file).convert(kernel, configs, output)
    except RecursionError:
        raise InputError(Problem("the source is nested too deep", Location(str(file)))) from None


class _Reader:
    """One source, and what is noted while it is read."""

    def __init__(self, file: Path) -> None:
        self.file = file
        text, tree = read_source(file)
        self.notes: list[str] = []
        flags = {
            name: partial(self._assumed, name, answer)
            for flag, answer in DEVICE.items()
            for name in (flag, flag.upper())
        }
        flags |= {name: partial(self._assumed, name, answer) for name, answer in BUILD.items()}
        there = {name: partial(Installed, name) for name in PACKAGES}
        self.known: dict[str, Known] = {"os.environ": self._variables, **there, **flags}
        files = Files({*self.known, *DEVICE, *KNOWN_BY_NAME})
        self.package = Package(files, file.resolve(), self.module_of, RUN)
        self.module = self.module_of(files.add(file.resolve(), tree, text), self.package)

    def module_of(self, file: File, package: Package) -> Module:
        """What evaluates a file: the source, or another of its package."""
        calls: dict[str, Call] = {"filter": self._filter, "getenv": self._variable}
        calls |= dict.fromkeys(names_of(file.tree, "Config"), self._config)
        for name in package.files.made_in(file) & calls.keys():
            del calls[name]
            calls[f"triton.{name}"] = self._config
        calls |= dict.fromkeys(DEVICE, self._device)
        shown = str(file.path) if self.file.is_absolute() else os.path.relpath(file.path)
        if package.main == file.path:
            shown = str(self.file)
        return Module(file.tree, shown, calls, self.known, UNREAD, RUN, package)

    def convert(self, kernel: str, named: str, output: Path | None) -> Converted:
        kernels = autotuned(self.module.tree)
        found = chosen(kernel, {one.name: one for one in kernels}, self.file, UNSEEN)
        lines = [one.call.lineno for one in kernels if one.name == found.name]
        if len(lines) > 1:
            message = f"{found.name} is decorated on the lines {', '.join(map(str, lines))}"
            raise InputError(Problem(message, self.module.place(found.call), "one kernel of that name", RUN))
        arguments = {word.arg: word.value for word in found.call.keywords if word.arg}
        if found.by:
            self.notes.append(f"@{found.by} on line {found.call.lineno} was taken to be triton.autotune.")
        else:
            arguments |= dict(zip(("configs", "key", *LEFT_OUT), found.call.args, strict=False))
        unseen = [word.value for word in found.call.keywords if word.arg is None]
        unseen += [one for one in found.call.args if isinstance(one, ast.Starred)]
        if unseen and not {"configs", "key"} <= arguments.keys():
            raise self.module.not_understood(unseen[0], "configs and key are read where they are written out")
        if named:
            configs = self.named_configs(named)
        elif "configs" in arguments:
            configs = self.configs(arguments["configs"], self.module.value(arguments["configs"], found.call))
        else:
            raise self.module.not_understood(found.call, "it has no configs")
        keys = self.keys(arguments["key"], found) if "key" in arguments else ()
        for word in LEFT_OUT:
            given = arguments.get(word)
            if given is not None and not (isinstance(given, ast.Constant) and given.value is None):
                self.notes.append(not_translated(word, given.lineno))
        for line in changes_of_configs(self.module.tree, found.name):
            self.notes.append(f"line {line} changes {found.name}.configs, which is not followed.")
        self.notes += notes_of_hidden_changes(self.module.tree)
        for path, names in sorted(self.package.taken.items()):
            self.notes.append(f"{path.name} was read too: {', '.join(sorted(names))}.")
        listed = Listed(found.name, found.call.lineno, configs, keys, self.notes)
        return space_of(listed, self.file, output)

    def named_configs(self, name: str) -> list[Config]:
        """Those of a list of this file, or of what a function of it returns."""
        known = local_names(self.module.tree, self.module.tree)
        if not known & {name, "*"}:
            message = f"there is no list or function {name!r}"
            raise InputError(Problem(message, Location(str(self.file)), hint=nearest(name, sorted(known))))
        node = ast.Name(name, ast.Load())
        value = self.module.value(node)
        if isinstance(value, Closure):
            return self.configs(value.function, self.module.apply(value, value.function, []))
        return self.configs(node, value)

    def configs(self, node: ast.AST, value: Any) -> list[Config]:
        found = list(value) if isinstance(value, (list, tuple, Iterator)) else [value]
        strangers = [one for one in found if not isinstance(one, Config)]
        if isinstance(node, (ast.List, ast.Tuple)) and not node.elts:  # running it would tell the same
            hint = "--configs NAME takes those of a list or function of the source"
            raise InputError(
                Problem("configs is empty: nothing is chosen from", self.module.place(node), hint=hint)
            )
        if not found or strangers:
            raise self.module.not_understood(node, "no list of triton.Config" if strangers else "it is empty")
        return found

    def keys(self, node: ast.expr, kernel: Autotuned) -> tuple[str, ...]:
        value = self.module.value(node, kernel.call)
        if isinstance(value, (str, set)):  # Triton goes through whatever it is given
            value = list(value) if isinstance(value, str) else sorted(value, key=str)
        if not isinstance(value, (list, tuple)) or not all(isinstance(one, str) for one in value):
            raise self.module.not_understood(node, "key is a list of names")
        names, notes = names_in(value, kernel.parameters)
        self.notes += notes
        return names

    # -- calls that mean something here

    def _config(self, node: ast.Call, given: list[Any], by_name: dict[str, Any]) -> Config:
        names = ("kwargs", "num_warps", "num_stages", "num_ctas", "maxnreg", *UNREAD)
        arguments = {**dict(zip(names, given, strict=False)), **by_name}
        unknown = [name for name in arguments if name not in names]
        if unknown or len(given) > len(names) or not isinstance(arguments.get("kwargs"), dict):
            why = (
                f"triton.Config has no {unknown[0]!r} that is known here" if unknown else "its first argument"
            )
            raise self.module.not_understood(node, why)
        kwargs = arguments["kwargs"]
        if strange := [name for name in kwargs if not isinstance(name, str)]:
            raise self.module.not_understood(node, f"{strange[0]!r} in the dictionary")
        options = {name: arguments.get(name, default) for name, default in OPTIONS.items()}
        left_out = tuple(name for name in UNREAD if arguments.get(name) is not None)
        return Config(kwargs, **options, where=self.module.place(node), left_out=left_out)

    def _filter(self, node: ast.Call, given: list[Any], by_name: dict[str, Any]) -> Iterator[Any]:
        """What the filter keeps; everything where it asks what only running it tells."""
        keep, many = given if len(given) == 2 else (None, None)
        if not isinstance(keep, Closure) or not isinstance(many, (list, tuple, Iterator)):
            raise self.module.not_understood(node)
        many = list(many)
        try:
            return iter([one for one in many if self.module.apply(keep, node, [one])])
        except InputError as error:
            why = error.problems[0]
            self.notes.append(
                f"the filter on line {node.lineno} is left out, so that more is in: {why.message}."
            )
            return iter(many)

    def _device(self, node: ast.Call, given: list[Any], by_name: dict[str, Any]) -> object:
        text = ast.unparse(node.func)
        name = text if text in DEVICE else text.rpartition(".")[2]
        return self._assumed(f"{name}()", DEVICE[name])

    def _assumed(self, what: str, answer: object) -> object:
        shown = str(answer).lower() if isinstance(answer, bool) else str(answer)
        self.notes.append(f"{what} was taken to be {shown}.")
        return answer

    def _variable(self, node: ast.Call, given: list[Any], by_name: dict[str, Any]) -> Any:
        self._variables()  # which notes it
        return given[1] if len(given) > 1 else by_name.get("default")

    def _variables(self) -> dict[str, str]:
        self.notes.append("environment variables were taken to be unset.")
        return {}
