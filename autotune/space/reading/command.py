"""The section ``command`` of a space file: a program, its placeholders, its config file and environment."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.errors import InputError, Location, Problem, nearest, shorten
from autotune.space import placeholders
from autotune.space.reading.command_metrics import MetricsSource
from autotune.space.reading.converters import grace, mapping, text, written
from autotune.space.reading.fields import Fields, Problems, as_map, wrong
from autotune.space.reading.yaml_nodes import YamlList, YamlMap, YamlNode, YamlScalar, value_at
from autotune.space.spec import CommandObjective, MetricSpec

COMMAND_KEYS = ("run", "prepare", "check", "environment", "config", "metrics", "grace")
CONFIG_ENDINGS = (".json", ".yaml", ".yml", ".toml", ".env")
"""Config files that are written from the configuration alone; any other needs its ``text``."""

_BUILDING = ("build", "compile", "make")
_HABITS = dict.fromkeys(_BUILDING, "did you mean 'prepare', run once before the readings?")
"""What to do about keys that other tools have."""

BELOW_COMMAND = {
    **dict.fromkeys(COMMAND_KEYS, "it belongs below 'command', beside 'run'"),
    **dict.fromkeys(_BUILDING, "it is called 'prepare', and belongs below 'command', beside 'run'"),
    "run": "it belongs below 'command'",
}
"""Hints for keys of a command that stand at the top of a space file."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Known:
    """What a command may refer to."""

    knobs: Sequence[str]
    workload: Sequence[str]
    metrics: tuple[MetricSpec, ...]


def read_command(node: YamlNode, base: Path, known: Known, problems: Problems) -> CommandObjective | None:
    """``command:`` as a list, a text, or a mapping with ``run`` and more."""
    config = value_at(node, "config")
    paths = (placeholders.FOLDER,) if config is None else (placeholders.FOLDER, placeholders.CONFIG)
    for name in (path for path in paths if path in known.knobs):
        problems.add(
            f"the knob {name!r} hides the path that {{{name}}} stands for",
            node.where,
            hint="rename the knob",
        )
    check = _PlaceholderCheck(known, paths, problems)
    if not isinstance(node, YamlMap):
        run = problems.attempt(lambda: _arguments(node, "command", check))
        return CommandObjective(run, base) if run else None
    fields = Fields(node, "command", COMMAND_KEYS, problems, _HABITS)

    def arguments(part: YamlNode, title: str) -> tuple[str, ...]:
        return _arguments(part, title, check)

    nothing: tuple[str, ...] = ()
    run = fields.require("run", arguments, nothing, "the program and its arguments")
    config_file, config_text = _config(config, check, problems)
    source = MetricsSource(fields.node("metrics"), known.metrics, problems, check)
    return CommandObjective(
        arguments=run,
        base=base,
        prepare=fields.get("prepare", arguments, nothing),
        check=fields.get("check", arguments, nothing),
        environment=_environment(fields.node("environment"), check, problems),
        config_file=config_file,
        config_text=config_text,
        grace=fields.get("grace", grace, CommandObjective.grace),
        **source.read(),
    )


@dataclass(frozen=True)
class _PlaceholderCheck:
    """Reports placeholders that stand for nothing."""

    known: Known
    paths: tuple[str, ...]
    problems: Problems

    def __call__(self, value: str, node: YamlNode) -> str:
        scalar = node if isinstance(node, YamlScalar) and node.text == value else None
        if lone := placeholders.lone(value):
            for brace, offset in lone:
                self.problems.add(str(placeholders.PlaceholderError(brace)), _at(node, scalar, offset))
            return value
        found = placeholders.names(value)
        facts = (f"workload.{name}" for name in self.known.workload)
        names = [*self.known.knobs, *facts, *self.paths]
        *most, last = "a knob", "workload.NAME", *self.paths
        unread = not self.known.knobs  # that the section of the knobs is wrong is reported already
        for name, offset in found:
            if name not in names and (not unread or name.startswith("workload.")):
                self.problems.add(
                    f"unknown placeholder {{{shorten(name)}}}",
                    _at(node, scalar, offset),
                    f"{', '.join(most)} or {last}",
                    self.advice(name, names),
                )
            elif value[:offset].endswith("$"):  # as a shell writes its variables
                said = f"${{{name}}} becomes a dollar sign and the value of {name}"
                self.problems.add(said, _at(node, scalar, offset - 1), f"{{{name}}}")
        return value

    def advice(self, name: str, names: Sequence[str]) -> str:
        if name == placeholders.CONFIG:
            return "{config} is the path of the file that command.config writes; add that key"
        if f"workload.{name}" in names:
            return f"did you mean 'workload.{name}'?"
        return nearest(name, names) or "write {{ and }} for the braces themselves"


def _at(node: YamlNode, scalar: YamlScalar | None, offset: int) -> Location:
    return scalar.place(offset) if scalar else node.where


def _arguments(node: YamlNode, title: str, check: _PlaceholderCheck) -> tuple[str, ...]:
    """A list of arguments, or one text that is split as a shell would split it."""
    expected = "a list of the program and its arguments, or one text"
    if isinstance(node, YamlScalar) and isinstance(node.value, str):
        check(node.value, node)
        try:
            words = tuple(shlex.split(node.value))
        except ValueError as error:
            raise wrong(node, title, "a text that a shell can split", str(error).lower()) from None
        if left := _for_a_shell(node.value):
            message = f"{title} has {left!r}, which only a shell understands, and no shell runs it"
            hint = f"quote it to pass it to the program as it is: '{left}'"
            raise InputError(Problem(message, node.where, '[sh, -c, "..."] to run it in a shell', hint))
    elif isinstance(node, YamlList):
        problems = Problems()
        words = tuple(_argument(item, f"{title}[{i}]", check, problems) for i, item in enumerate(node.items))
        problems.raise_all()
    else:
        raise wrong(node, title, expected)
    if not words or not words[0]:
        raise wrong(node, title, "a program to run")
    _refuse_variable(words[0], node, title)
    return words


_SHELL = re.compile(
    r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|(?P<special>[|&;<>`]|\$(?:[A-Za-z_(]|\{\{))", re.DOTALL
)
"""Quoted parts of a text, and outside of them what only a shell understands (the group ``special``)."""


def _for_a_shell(text: str) -> str:
    """The first word of ``text`` that only a shell understands, such as ``2>/dev/null``; or nothing."""
    found = next((part for part in _SHELL.finditer(text) if part["special"]), None)
    if found is None:
        return ""
    begin = max(text.rfind(blank, 0, found.start()) for blank in " \t\n") + 1
    return text[begin:].split(None, 1)[0]


def _refuse_variable(word: str, node: YamlNode, title: str) -> None:
    """Raise where ``NAME=value`` stands in the place of the program."""
    name, said, value = word.partition("=")
    if said and _VARIABLE.fullmatch(name):
        expected = f"a program, and command: {{run: ..., environment: {{{name}: {value}}}}}"
        raise InputError(
            Problem(f"{title} begins with {shorten(word)!r}, which is no program", node.where, expected)
        )


def _argument(node: YamlNode, title: str, check: _PlaceholderCheck, problems: Problems) -> str:
    if isinstance(node, YamlMap) and len(node.entries) == 1:  # an unquoted {knob}
        problems.add(
            f"{title} is a mapping", node.where, "a text", f'quote it: "{{{shorten(node.entries[0].key)}}}"'
        )
        return ""
    return check(problems.attempt(lambda: written(node, title)) or "", node)


def _environment(node: YamlNode | None, check: _PlaceholderCheck, problems: Problems) -> dict[str, str]:
    if node is None:
        return {}
    title = "command.environment"
    entries = problems.attempt(lambda: as_map(node, title, "a mapping of variables to texts"))
    if entries is None:
        return {}
    for entry in entries:
        if not _VARIABLE.fullmatch(entry.key):
            problems.add(
                f"{shorten(entry.key)!r} cannot name an environment variable",
                entry.where,
                "letters, digits and _",
            )
    return mapping(entries, title, lambda part, name: _argument(part, name, check, problems), problems)


def _config(node: YamlNode | None, check: _PlaceholderCheck, problems: Problems) -> tuple[str, str]:
    """``config: {file: NAME, text: TEMPLATE}`` as (name, template)."""
    if node is None:
        return "", ""
    title = "command.config"
    entries = problems.attempt(lambda: as_map(node, title, "a mapping such as {file: settings.json}"))
    if entries is None:
        return "", ""
    fields = Fields(entries, title, ("file", "text"), problems)
    name = fields.require("file", text, "", "the name of the file to write")
    if Path(name).name != name:
        message = f"{title}.file is {shorten(name)!r}, but autotune chooses the folder that it is written to"
        hint = "{config} stands for its path, in an argument or a variable"
        problems.add(message, fields.entries["file"].value.where, "a name without a folder", hint)
    template = fields.get("text", lambda part, full: check(text(part, full), part), "")
    if name and "text" not in fields and not name.endswith(CONFIG_ENDINGS):
        problems.add(
            f"{title}.file is {shorten(name)!r}, whose format is not known by its ending",
            fields.entries["file"].value.where,
            f"a name that ends in {', '.join(CONFIG_ENDINGS)}, or a text with placeholders",
        )
    return name, template
