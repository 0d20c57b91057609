"""What is tuned: exactly one of ``objective``, ``command`` and ``replay`` of a space file."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from autotune.space.reading.command import Known, read_command
from autotune.space.reading.converters import text
from autotune.space.reading.fields import Fields, Problems, wrong
from autotune.space.reading.yaml_nodes import YamlNode, YamlScalar
from autotune.space.spec import ObjectiveSpec, PythonObjective, ReplayObjective

KINDS = ("objective", "command", "replay")

_TARGET = re.compile(r"[^:]+:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def read_objective(fields: Fields, base: Path, known: Known, problems: Problems) -> ObjectiveSpec | None:
    """The objective that the top level of a file names; ``None`` where it is wrong, which is reported."""
    given = [kind for kind in KINDS if kind in fields]
    if fields.lacks(*KINDS):
        problems.add(
            "nothing says what is tuned",
            fields.where,
            "one of objective: path.py:Name, command: [program, arguments], replay: FILE",
        )
    for extra in given[1:]:
        problems.add(
            f"both {given[0]!r} and {extra!r} are given",
            fields.entries[extra].where,
            "exactly one of objective, command and replay",
        )
    objective: ObjectiveSpec | None = None
    for kind in reversed(given):  # the first one is the one that is returned
        where = fields.entries[kind].value.where
        match kind:
            case "objective":
                target = fields.get(kind, _target, "")
                objective = PythonObjective(target, base, where) if target else None
            case "replay":
                file = fields.get(kind, text, "")
                objective = ReplayObjective(base / file, where) if file else None
            case _:
                command = read_command(fields.entries[kind].value, base, known, problems)
                objective = replace(command, where=where) if command else None
    return objective


def _target(node: YamlNode, title: str) -> str:
    expected = "path.py:Name or package.module:Name"
    if not isinstance(node, YamlScalar) or not isinstance(node.value, str):
        raise wrong(node, title, expected, "a program is named by command, in the place of objective")
    target = node.value.strip()
    if not _TARGET.fullmatch(target):
        hint = "add :Name, the class or function in that file" if ":" not in target else ""
        raise wrong(node, title, expected, hint)
    place = target.rpartition(":")[0]
    if not place.endswith(".py") and not _MODULE.fullmatch(place):
        raise wrong(node, title, expected, "a file's name ends in .py; a module's has no / in it")
    return target
