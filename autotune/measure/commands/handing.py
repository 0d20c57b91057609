"""Which knobs reach a command.

A knob reaches it where a text of the command names it as ``{knob}`` (an argument, also of ``prepare`` or
``check``, a variable, the template of its config file), where the config file holds the whole configuration,
or where a program that it starts has read the file of knobs of :func:`autotune.run`. Whether a program uses a
knob that it was given cannot be known. But a knob that never reached it was not tuned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from autotune.measure.commands.placeholders import named_in
from autotune.measure.commands.python_program import script_of
from autotune.measure.commands.run_listener import RunListener
from autotune.measure.facts import UNREACHED
from autotune.measure.loading.sources import source_files
from autotune.provenance.code.files import is_file
from autotune.space.configuration import Configuration
from autotune.space.placeholders import CONFIG, FOLDER
from autotune.space.spec import CommandObjective

_NONE_WRITTEN = (
    "no knob reaches the command: none stands as {name} in its arguments, variables or config file"
)
_NONE_ARRIVED = f"{_NONE_WRITTEN}, and no program that it started asked for one by autotune.run"
"""The same words for each configuration, so that all trials show the same mistake."""


@dataclass(frozen=True)
class Missed:
    """The knobs that did not reach a command that has run."""

    knobs: tuple[str, ...] = ()
    """Their names."""
    mistake: str = ""
    """Why its trial is worthless; empty where it may be of use."""
    none_arrived: bool = False
    """Whether that holds for every configuration, since the program takes none of the knobs."""

    @property
    def facts(self) -> dict[str, object]:
        """Facts of a trial that may be of use."""
        return {UNREACHED: list(self.knobs)} if self.knobs else {}


def missed_knobs(
    spec: CommandObjective, configuration: Configuration, listener: RunListener, read_before: Path
) -> Missed:
    """The knobs that did not reach the command, which was run with ``listener``.

    The file ``read_before`` exists where its ``prepare`` or ``check`` has read the knobs.
    """
    left = unwritten(spec, configuration)
    if not left or read_before.exists():
        return Missed()
    none_written = not any(_is_knob(spec, name) for name in _written(spec))
    if silent := listener.heard.never_asked(left):
        asked_none = not set(left) & set(listener.heard.asked)
        return Missed(tuple(left), silent, none_written and asked_none)
    if listener.was_read:
        return Missed()
    return Missed(tuple(left), _NONE_ARRIVED if none_written else "", none_written)


def hands_nothing(spec: CommandObjective) -> str:
    """Why it is certain, before anything has run, that no knob will reach the command; else empty.

    That is so where no text of the command has a knob, and the command is a Python script which, with all
    that it imports nearby, neither mentions autotune nor starts another program.
    """
    written = any(_is_knob(spec, name) for name in _written(spec))
    whole = spec.config_file and not spec.config_text
    commands = [command for command in (spec.arguments, spec.prepare, spec.check) if command]
    scripts = map(script_of, commands)
    if written or whole or not all(script and is_file(spec.base / script) for script in scripts):
        return ""
    if any(_MAY_ASK.search(file.read_bytes()) for file in source_files(spec)):
        return ""
    return _NONE_WRITTEN + f", and {spec.arguments[1]} asks for none by autotune.run"


_MAY_ASK = re.compile(
    rb"autotune|subprocess|os\.(system|exec|spawn|posix_spawn|popen)|from\s+os\s+import"
    rb"|runpy|importlib|__import__|\bexec\(",
    re.IGNORECASE,
)
"""Words in a script by which knobs may reach it, or a program that it starts."""


def unwritten(spec: CommandObjective, knobs: Iterable[str]) -> list[str]:
    """Those of ``knobs`` that neither a text of the command nor its config file has."""
    if spec.config_file and not spec.config_text:
        return []
    written = _written(spec)
    return [name for name in knobs if name not in written]


def _written(spec: CommandObjective) -> set[str]:
    """The names of all placeholders."""
    commands = (*spec.arguments, *spec.prepare, *spec.check)
    return named_in(*commands, *spec.environment.values(), spec.config_text)


def _is_knob(spec: CommandObjective, name: str) -> bool:
    """Whether a placeholder stands for a knob, be it one that does not exist in this configuration."""
    paths = (FOLDER, CONFIG if spec.config_file else FOLDER)
    return not name.startswith("workload.") and name not in paths
