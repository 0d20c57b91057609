"""A list of ``triton.Config`` as a space: however the list was found, in a text or by running it.

The knobs are the names in the configurations, ``num_warps`` and ``num_stages``; ``num_ctas`` and ``maxnreg``
where a configuration sets them. The constraints leave exactly the configurations of the list. The names in
``key`` become the workload.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from autotune.errors import InputError, Location, Problem, nearest, shorten
from autotune.interop.space_files.exact_rules import combinations, exact_rules
from autotune.interop.space_files.space_text import Converted, can_be_written
from autotune.space.configuration import Value
from autotune.space.knobs.values import is_number
from autotune.space.knobs.values import key as value_key
from autotune.space.language.parser import MOST_CHARACTERS

OPTIONS: Mapping[str, Value | None] = {"num_warps": 4, "num_stages": 3, "num_ctas": 1, "maxnreg": None}
"""What Triton takes where a configuration does not say; ``maxnreg: None`` is no limit, here written 0."""

ALWAYS = ("num_warps", "num_stages")
"""Options that are knobs even where no configuration says them: they matter to every kernel."""

KERNEL_TUNER = "kernel_tuner"
"""What a script for Kernel Tuner imports, in which there is no kernel of Triton."""

TUNED = "autotune(", "triton.autotune"
"""What a source has that speaks of tuning kernels of Triton, however it calls that."""

WORKLOAD = 1024
"""Stands for a size that only a call of the kernel tells."""

MOST_RULES = 500
"""More constraints than this nobody reads, and they take longer to test than they spare."""

_Kernel = TypeVar("_Kernel")


@dataclass(frozen=True)
class Config:
    """A ``triton.Config``."""

    PUBLIC: ClassVar[tuple[str, ...]] = ("kwargs", *OPTIONS)

    kwargs: Mapping[str, Any]
    num_warps: Any
    num_stages: Any
    num_ctas: Any
    maxnreg: Any
    where: Location = field(compare=False)
    left_out: tuple[str, ...] = ()
    """What else was said of it, such as ``pre_hook``."""


@dataclass(frozen=True)
class Listed:
    """A kernel and the configurations that its ``triton.autotune`` goes over."""

    kernel: str
    line: int
    """Of the decorator, in the file that was read."""
    configs: Sequence[Config]
    keys: Sequence[str]
    notes: Sequence[str]


def chosen(kernel: str, found: Mapping[str, _Kernel], file: Path, unseen: str) -> _Kernel:
    """The kernel that is meant: the only one that was ``found`` in ``file``, or the one called ``kernel``.

    ``unseen`` says how else kernels may be found, where the file speaks of tuning and none was.
    """
    where = Location(str(file))
    if not found:
        hint = (
            "it converts the configs of @triton.autotune(...), the tune_params of a tune_kernel(...),"
            " or a T1 file (.json)"
        )
        text = file.read_text(errors="replace")
        if any(word in text for word in TUNED):
            hint = unseen
        if KERNEL_TUNER in text:
            hint = (
                "of a script for Kernel Tuner it converts what stands in its call of tune_kernel(...); what "
                "it has measured comes in by autotune import CACHE.json, where "
                "tune_kernel(..., cache='CACHE.json') has written that"
            )
        raise InputError(Problem("nothing here is decorated with triton.autotune", where, hint=hint))
    names = ", ".join(found)
    if kernel:
        if kernel not in found:
            raise InputError(Problem(f"there is no kernel {kernel!r}", where, names, nearest(kernel, found)))
        return found[kernel]
    if len(found) > 1:
        raise InputError(Problem(f"there are {len(found)} kernels", where, f"--kernel, one of {names}"))
    return next(iter(found.values()))


def not_translated(word: str, line: int = 0) -> str:
    """The note that an argument of ``triton.autotune`` has no place in a space."""
    advice = "write what it prunes as constraints" if word == "prune_configs_by" else "it is left out"
    place = f" on line {line}" if line else ""
    return f"{word}{place} is not translated: {advice}."


def names_in(keys: Sequence[str], parameters: Collection[str] | None) -> tuple[tuple[str, ...], list[str]]:
    """Those of ``keys`` that are arguments of the kernel, and notes on the others, which Triton passes over.

    ``parameters`` are the kernel's; ``None`` where they are not known.
    """
    known, notes = [], []
    for name in keys:
        if not name.isidentifier():
            notes.append(f"key {name!r} is no name of an argument: it is left out.")
        elif parameters is not None and name not in parameters:
            meant = nearest(name, parameters)
            left = f"; {meant}" if meant else "."
            notes.append(f"key {name!r} is no argument of the kernel: it is left out{left}")
        else:
            known.append(name)
    return tuple(known), notes


def space_of(listed: Listed, file: Path, output: Path | None = None) -> Converted:
    """The space of what is ``listed`` in ``file``. ``output`` is where the space file will lie."""
    notes = list(listed.notes)
    for name in dict.fromkeys(name for config in listed.configs for name in config.left_out):
        notes.append(f"the {name} of configurations is left out.")
    rows = _rows(listed.configs)
    unique = {tuple(map(value_key, row.values())): row for row in rows}
    if len(unique) < len(rows):
        notes.append(f"the list repeats itself: of its {len(rows)}, {len(unique)} are different.")
    knobs = {name: _ordered([row[name] for row in unique.values()]) for name in rows[0]}
    try:
        constraints = exact_rules(knobs, [tuple(row.values()) for row in unique.values()])
    except InputError as error:  # which knows no places
        where = Location(str(file), listed.line)
        raise InputError(replace(one, where=where) for one in error.problems) from None
    most, number = combinations(knobs), len(unique)
    if len(constraints) > MOST_RULES or any(len(rule) > MOST_CHARACTERS for rule in constraints):
        constraints = []
        notes.append(f"no short rules leave just the {number:,} configurations of the list: all are in.")
    about = f"The configurations of triton.autotune for {listed.kernel} ({file.name}:{listed.line}): "
    about += f"{number:,} of {most:,} combinations. The default is the first of the list."
    return Converted(
        name=listed.kernel,
        about=about,
        objective=f"{_beside(file, output)}:{listed.kernel}",
        knobs=knobs,
        default=rows[0],
        constraints=constraints,
        workload=dict.fromkeys(listed.keys, WORKLOAD),
        listed=list(unique.values()),
        notes=tuple(dict.fromkeys(notes)),
        file=str(file),
    )


def _rows(configs: Sequence[Config]) -> list[dict[str, Value]]:
    """A value for each knob, by configuration."""
    first = configs[0]
    problems = []
    for config in configs:
        if clash := [name for name in config.kwargs if name in OPTIONS]:
            message = f"{clash[0]} stands in the dictionary, where Triton takes no notice of it"
            expected = f"triton.Config({{...}}, {clash[0]}=...)"
            problems.append(Problem(message, config.where, expected))
        if config.kwargs.keys() != first.kwargs.keys():
            differing = ", ".join(sorted(config.kwargs.keys() ^ first.kwargs.keys()))
            message = f"this configuration and the first one do not set the same names: {differing}"
            problems.append(Problem(message, config.where, "the same names in every configuration"))
    if problems:
        raise InputError(problems)
    said = [name for name in OPTIONS if any(_option(config, name) != OPTIONS[name] for config in configs)]
    options = [name for name in OPTIONS if name in ALWAYS or name in said]
    return [
        {
            # In the order of the first: a row is its values.
            **{name: _scalar(config, name, config.kwargs[name]) for name in first.kwargs},
            **{name: _scalar(config, name, _option(config, name) or 0) for name in options},
        }
        for config in configs
    ]


def _option(config: Config, name: str) -> Any:
    """What Triton takes: None says as little as nothing does."""
    said = getattr(config, name)
    return OPTIONS[name] if said is None else said


def _scalar(config: Config, name: str, value: Any) -> Value:
    if isinstance(value, (bool, int, float, str)) and can_be_written(value):
        return value
    message = f"{name} is {shorten(reprlib.repr(value))}"
    raise InputError(Problem(message, config.where, "a finite number, a flag or a text"))


def _ordered(values: Sequence[Value]) -> list[Value]:
    """Each once; numbers in their order."""
    unique = list({value_key(value): value for value in values}.values())
    if all(map(is_number, unique)):
        return sorted(unique)  # type: ignore[type-var]  # they are numbers
    return unique


def _beside(file: Path, output: Path | None) -> str:
    """``file`` as a space file at ``output`` names it."""
    return os.path.relpath(file.absolute(), (output or file).absolute().parent)
