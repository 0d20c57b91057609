"""Options without a value that a command is given where a knob does not exist.

An argument of its own is left out then, and so is a variable. Within a longer text, a script for a shell say,
nobody but its author knows what belongs to a placeholder: of ``--algo={algo}`` the ``--algo=`` remains.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from autotune.space.placeholders import fill_arguments, names
from autotune.space.spec import CommandObjective


@dataclass(frozen=True)
class LeftEmpty:
    """What remains of ``--algo={algo}`` where the knob does not exist."""

    knob: str
    option: str
    """``--algo=``."""


def left_empty(spec: CommandObjective, conditional: Collection[str]) -> list[LeftEmpty]:
    """Of the knobs that some configurations lack: the options that they leave without a value, each once."""
    commands = (spec.prepare, spec.check, spec.arguments)
    return list(dict.fromkeys(found for texts in commands for found in _in(texts, conditional)))


def _in(texts: tuple[str, ...], conditional: Collection[str]) -> Iterator[LeftEmpty]:
    for text in texts[1:]:
        asked = [name for name, _ in names(text)]
        for knob in conditional:
            others = dict.fromkeys(asked, "x")
            if others.pop(knob, None) is None or len(fill_arguments(["program", text], others)) == 1:
                continue
            option = re.search(rf"""([^\s"']+=)(["']?)\{{{re.escape(knob)}\}}\2(?=[\s"';)]|$)""", text)
            if option:
                yield LeftEmpty(knob, option[1])
