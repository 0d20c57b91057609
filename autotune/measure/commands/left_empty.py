"""Options without a value that a command is given where a knob does not exist.

An argument of its own is left out then, and so are a variable and a line of the config file. Within a longer
text, a script for a shell say, nobody but its author knows what belongs to a placeholder: of
``--algo={algo}`` the ``--algo=`` remains, of ``{schedule},{chunk}`` the comma.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from autotune.space.placeholders import fill_arguments, lacks_all_values, names
from autotune.space.spec import CommandObjective


@dataclass(frozen=True)
class LeftEmpty:
    """What remains of ``--algo={algo}`` where the knob does not exist."""

    knob: str
    option: str
    """``--algo=``."""


def left_empty(spec: CommandObjective, conditional: Collection[str]) -> list[LeftEmpty]:
    """Of the knobs that some configurations lack: the options that they leave without a value, each once."""
    arguments = [text for command in (spec.prepare, spec.check, spec.arguments) for text in command[1:]]
    lines = [f"{name}={text}" for name, text in spec.environment.items()] + spec.config_text.splitlines()
    found = [
        one
        for texts, goes in ((arguments, _goes_as_argument), (lines, lacks_all_values))
        for text in texts
        for one in _in(text, conditional, goes)
    ]
    return list(dict.fromkeys(found))


def _goes_as_argument(text: str, values: Mapping[str, str]) -> bool:
    return not fill_arguments(["program", text], values)[1:]


def _in(
    text: str, conditional: Collection[str], goes: Callable[[str, Mapping[str, str]], bool]
) -> Iterator[LeftEmpty]:
    """``goes`` says whether all of the text is left out for these values."""
    asked = [name for name, _ in names(text)]
    for knob in conditional:
        others = dict.fromkeys(asked, "x")
        if others.pop(knob, None) is None or goes(text, others):
            continue
        option = re.search(rf"""([^\s"']*[=,:])(["']?)\{{{re.escape(knob)}\}}\2(?=[\s"';),:]|$)""", text)
        if option:
            yield LeftEmpty(knob, option[1])
