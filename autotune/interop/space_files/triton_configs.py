"""The configurations of ``triton.autotune`` in a Python source as a space.yaml. The source is never run.

``configs`` and ``key`` of the decorator are worked out from the text
(:mod:`autotune.interop.space_files.python_text`). The knobs are the names in the configurations,
``num_warps`` and ``num_stages``; ``num_ctas`` and ``maxnreg`` where a configuration sets them. The
constraints leave exactly the configurations of the list. The names in ``key`` become the workload.
"""

from __future__ import annotations

import ast
import os
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from autotune.errors import InputError, Location, Problem, nearest, shorten
from autotune.interop.space_files.exact_rules import combinations, exact_rules
from autotune.interop.space_files.python_frame import Closure
from autotune.interop.space_files.python_text import Module, parsed
from autotune.interop.space_files.space_text import Converted, can_be_written
from autotune.interop.space_files.triton_kernels import Autotuned, autotuned, names_of
from autotune.space.configuration import Value
from autotune.space.knobs.values import key as value_key
from autotune.space.reading.space_file import load_text

OPTIONS: Mapping[str, Value | None] = {"num_warps": 4, "num_stages": 3, "num_ctas": 1, "maxnreg": None}
"""What Triton takes where a configuration does not say; ``maxnreg: None`` is no limit, here written 0."""

ALWAYS = ("num_warps", "num_stages")
"""Options that are knobs even where no configuration says them: they matter to every kernel."""

DEVICE: Mapping[str, object] = {
    "is_cuda": True,
    "is_nvidia": True,
    "is_hip": False,
    "is_amd": False,
    "is_xpu": False,
    "get_device_capability": (9, 0),
}
"""Functions by which sources tell devices apart, as they answer on a GPU of NVIDIA's Hopper generation."""

LEFT_OUT = ("prune_configs_by", "reset_to_zero", "restore_value", "pre_hook", "post_hook")
"""What ``triton.autotune`` takes after ``configs`` and ``key``, in its order, and has no place in a space."""

WORKLOAD = 1024
"""Stands for a size that only a call of the kernel tells."""

MOST_RULES = 500
"""More constraints than this nobody reads, and they take longer to test than they spare."""


@dataclass(frozen=True)
class Config:
    """A ``triton.Config`` of the source."""

    PUBLIC: ClassVar[tuple[str, ...]] = ("kwargs", *OPTIONS)

    kwargs: Mapping[str, Any]
    options: Mapping[str, Any]
    node: ast.Call = field(compare=False)
    pre_hook: bool = False

    @property
    def num_warps(self) -> Any:
        return self.options["num_warps"]

    @property
    def num_stages(self) -> Any:
        return self.options["num_stages"]

    @property
    def num_ctas(self) -> Any:
        return self.options["num_ctas"]

    @property
    def maxnreg(self) -> Any:
        return self.options["maxnreg"]


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
        text = load_text(file)
        try:
            tree = parsed(text, "exec")
        except SyntaxError as error:
            where = Location(str(file), error.lineno or 0, error.offset or 0)
            raise InputError(Problem(f"this is not Python: {error.msg}", where)) from None
        except ValueError as error:  # a NUL byte
            raise InputError(Problem(f"this is not Python: {error}", Location(str(file)))) from None
        self.notes: list[str] = []
        device = dict.fromkeys(DEVICE, self._device)
        configs = dict.fromkeys(names_of(tree, "Config"), self._config)
        calls = {**configs, "filter": self._filter, "getenv": self._variable, **device}
        self.module = Module(tree, str(file), calls, {"os.environ": self._variables})

    def convert(self, kernel: str, named: str, output: Path | None) -> Converted:
        found = self.choose(kernel)
        arguments = {word.arg: word.value for word in found.call.keywords if word.arg}
        arguments |= dict(zip(("configs", "key", *LEFT_OUT), found.call.args, strict=False))
        if named:
            configs = self.named_configs(named)
        elif "configs" in arguments:
            configs = self.configs(arguments["configs"], self.module.value(arguments["configs"], found.call))
        else:
            raise self.module.not_understood(found.call, "it has no configs")
        keys = self.keys(arguments["key"], found.call) if "key" in arguments else ()
        for word in LEFT_OUT:
            given = arguments.get(word)
            if given is not None and not (isinstance(given, ast.Constant) and given.value is None):
                advice = (
                    "write what it prunes as constraints" if word == "prune_configs_by" else "it is left out"
                )
                self.notes.append(f"{word} on line {given.lineno} is not translated: {advice}.")
        if any(config.pre_hook for config in configs):
            self.notes.append("the pre_hook of configurations is left out.")
        return self.space(found, configs, keys, output)

    def choose(self, kernel: str) -> Autotuned:
        """The kernel that is meant: the only one, or the one called ``kernel``."""
        found = {one.name: one for one in autotuned(self.module.tree)}
        where = Location(str(self.file))
        if not found:
            hint = "it converts the configs of @triton.autotune(...), or a T1 file (.json)"
            raise InputError(Problem("nothing here is decorated with triton.autotune", where, hint=hint))
        names = ", ".join(found)
        if kernel:
            if kernel not in found:
                raise InputError(
                    Problem(f"there is no kernel {kernel!r}", where, names, nearest(kernel, found))
                )
            return found[kernel]
        if len(found) > 1:
            raise InputError(Problem(f"there are {len(found)} kernels", where, f"--kernel, one of {names}"))
        return next(iter(found.values()))

    def named_configs(self, name: str) -> list[Config]:
        """Those of a list of this file, or of what a function of it returns."""
        node = ast.Name(name, ast.Load())
        value = self.module.value(node)
        if isinstance(value, Closure):
            return self.configs(value.function, self.module.apply(value, value.function, []))
        return self.configs(node, value)

    def configs(self, node: ast.AST, value: Any) -> list[Config]:
        found = list(value) if isinstance(value, (list, tuple)) else []
        strangers = [one for one in found if not isinstance(one, Config)]
        if not found or strangers:
            raise self.module.not_understood(
                node, "no list of triton.Config" if found or strangers else "it is empty"
            )
        return found

    def keys(self, node: ast.expr, call: ast.Call) -> tuple[str, ...]:
        value = self.module.value(node, call)
        if not isinstance(value, (list, tuple)) or not all(isinstance(one, str) for one in value):
            raise self.module.not_understood(node, "key is a list of names")
        strange = [name for name in value if not name.isidentifier()]
        self.notes += [f"key {name!r} is no name of an argument: it is left out." for name in strange]
        return tuple(name for name in value if name not in strange)

    def space(
        self, found: Autotuned, configs: Sequence[Config], keys: Sequence[str], output: Path | None
    ) -> Converted:
        rows = self.rows(configs)
        unique = {tuple(map(value_key, row.values())): row for row in rows}
        if len(unique) < len(rows):
            self.notes.append(f"the list repeats itself: of its {len(rows)}, {len(unique)} are different.")
        knobs = {name: _ordered([row[name] for row in unique.values()]) for name in rows[0]}
        constraints = exact_rules(knobs, [tuple(row.values()) for row in unique.values()])
        most, number = combinations(knobs), len(unique)
        if len(constraints) > MOST_RULES:
            constraints = []
            self.notes.append(
                f"no short rules leave just the {number:,} configurations of the list: all are in."
            )
        about = (
            f"The configurations of triton.autotune for {found.name} ({self.file.name}:{found.call.lineno}): "
        )
        about += f"{number:,} of {most:,} combinations. The default is the first of the list."
        about += " To search all combinations, take the constraints away." if constraints else ""
        return Converted(
            name=found.name,
            about=about,
            objective=f"{_beside(self.file, output)}:{found.name}",
            knobs=knobs,
            default=rows[0],
            constraints=constraints,
            workload=dict.fromkeys(keys, WORKLOAD),
            notes=tuple(dict.fromkeys(self.notes)),
            file=str(self.file),
        )

    def rows(self, configs: Sequence[Config]) -> list[dict[str, Value]]:
        """A value for each knob, by configuration."""
        first = configs[0]
        problems = []
        for config in configs:
            if config.kwargs.keys() != first.kwargs.keys():
                differing = ", ".join(sorted(config.kwargs.keys() ^ first.kwargs.keys()))
                message = f"this configuration and the first one do not set the same names: {differing}"
                problems.append(
                    Problem(message, self.place(config.node), "the same names in every configuration")
                )
        if problems:
            raise InputError(problems)
        said = [name for name in OPTIONS if any(config.options[name] != OPTIONS[name] for config in configs)]
        options = [name for name in OPTIONS if name in ALWAYS or name in said]
        return [
            {
                **{name: self.scalar(config, name, value) for name, value in config.kwargs.items()},
                **{name: self.scalar(config, name, config.options[name] or 0) for name in options},
            }
            for config in configs
        ]

    def scalar(self, config: Config, name: str, value: Any) -> Value:
        if isinstance(value, (bool, int, float, str)) and can_be_written(value):
            return value
        message = f"{name} is {shorten(reprlib.repr(value))}"
        raise InputError(Problem(message, self.place(config.node), "a finite number, a flag or a text"))

    def place(self, node: ast.AST) -> Location:
        return Location(str(self.file), getattr(node, "lineno", 0), getattr(node, "col_offset", -1) + 1)

    # -- calls that mean something here

    def _config(self, node: ast.Call, given: list[Any], by_name: dict[str, Any]) -> Config:
        names = ("kwargs", "num_warps", "num_stages", "num_ctas", "maxnreg", "pre_hook")
        arguments = {**dict(zip(names, given, strict=False)), **by_name}
        unknown = [name for name in arguments if name not in names]
        if unknown or len(given) > len(names) or not isinstance(arguments.get("kwargs"), dict):
            why = (
                f"triton.Config has no {unknown[0]!r} that is known here" if unknown else "its first argument"
            )
            raise self.module.not_understood(node, why)
        kwargs = arguments["kwargs"]
        if clash := [name for name in kwargs if name in OPTIONS or not isinstance(name, str)]:
            raise self.module.not_understood(node, f"{clash[0]!r} in the dictionary")
        options = {name: arguments.get(name, default) for name, default in OPTIONS.items()}
        return Config(kwargs, options, node, arguments.get("pre_hook") is not None)

    def _filter(self, node: ast.Call, given: list[Any], by_name: dict[str, Any]) -> list[Any]:
        """What the filter keeps; everything where it asks what only running it tells."""
        keep, many = given if len(given) == 2 else (None, None)
        if not isinstance(keep, Closure) or not isinstance(many, (list, tuple)):
            raise self.module.not_understood(node)
        try:
            return [one for one in many if self.module.apply(keep, node, [one])]
        except InputError as error:
            why = error.problems[0]
            self.notes.append(
                f"the filter on line {node.lineno} is left out, so that more is in: {why.message}."
            )
            return list(many)

    def _device(self, node: ast.Call, given: list[Any], by_name: dict[str, Any]) -> object:
        name = ast.unparse(node.func).rpartition(".")[2]
        answer = DEVICE[name]
        shown = str(answer).lower() if isinstance(answer, bool) else str(answer)
        self.notes.append(f"{name}() was taken to be {shown}.")
        return answer

    def _variable(self, node: ast.Call, given: list[Any], by_name: dict[str, Any]) -> Any:
        default = given[1] if len(given) > 1 else by_name.get("default")
        return self._variables().get("", default)

    def _variables(self) -> dict[str, str]:
        self.notes.append("environment variables were taken to be unset.")
        return {}


def _ordered(values: Sequence[Value]) -> list[Value]:
    """Each once; numbers in their order."""
    unique = list({value_key(value): value for value in values}.values())
    if all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in unique):
        return sorted(unique)  # type: ignore[type-var]  # they are numbers
    return unique


def _beside(file: Path, output: Path | None) -> str:
    """``file`` as a space file at ``output`` names it."""
    return os.path.relpath(file.absolute(), (output or file).absolute().parent)
