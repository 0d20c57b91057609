"""Texts with ``{placeholders}``: the arguments, environment and config file of a command objective.

``{tile_m}`` is a knob, ``{workload.m}`` a fact of the workload, ``{folder}`` the path of a folder that only
this configuration uses, ``{config}`` the path of the config file; ``{{`` and ``}}`` stand for the braces
themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest

FOLDER = "folder"
CONFIG = "config"

_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_ALL = re.compile(r"(\{[^{}]+\})+")


class PlaceholderError(ValueError):
    """A brace without its partner."""

    def __init__(self, brace: str) -> None:
        super().__init__(f"a lone {brace!r}; write {brace * 2!r} for the brace itself")


def lone(text: str) -> list[tuple[str, int]]:
    """The braces of ``text`` without a partner: each with its offset."""
    return [(piece[0], piece.start()) for piece in _PIECE.finditer(text) if piece[0] in ("{", "}")]


def names(text: str) -> list[tuple[str, int]]:
    """The placeholders of ``text``: each name with its offset. Raises :class:`PlaceholderError`."""
    found: list[tuple[str, int]] = []
    for piece in _PIECE.finditer(text):
        if piece[0] in ("{", "}"):
            raise PlaceholderError(piece[0])
        if piece[1] is not None:
            found.append((piece[1], piece.start()))
    return found


def fill_arguments(texts: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """``texts`` with their placeholders replaced, without the arguments that would have no value:

    * an argument of placeholders alone that becomes empty, which most programs take for the name of a file;
    * an option such as ``--depth={depth}`` without a value for any placeholder: ``--depth=`` is mostly an
      error;
    * both arguments of ``--depth {depth}`` where ``depth`` has no value. The option must have the name of the
      placeholder: before one of another name it may be a switch, which means something by itself.

    The program, which is the first text, always stays.
    """
    program, *arguments = [fill(text, values) for text in texts]
    following = zip_longest(texts[1:], texts[2:], fillvalue="")
    kept = [
        filled
        for filled, (text, after) in zip(arguments, following, strict=True)
        if not (_is_left_out(text, filled, values) or _is_option_without_value(text, after, values))
    ]
    return [program, *kept]


def _is_option_without_value(text: str, after: str, values: Mapping[str, str]) -> bool:
    """Whether ``text`` and the argument ``after`` it are ``--depth {depth}``, and ``depth`` has no value."""
    name = text.lstrip("-").replace("-", "_")
    return text.startswith("-") and after == f"{{{name}}}" and not values.get(name)


def _is_left_out(text: str, filled: str, values: Mapping[str, str]) -> bool:
    if not filled and _ALL.fullmatch(text):
        return True
    # A text with blanks is a script for a shell, or a sentence.
    is_option = text.startswith("-") and not any(map(str.isspace, text))
    return is_option and lacks_all_values(text, values)


def lacks_all_values(text: str, values: Mapping[str, str]) -> bool:
    """Whether ``text`` has placeholders and ``values`` has none of them."""
    asked = [name for name, _ in names(text)]
    return bool(asked) and not any(name in values for name in asked)


def fill_lines(text: str, values: Mapping[str, str]) -> str:
    """``text`` with each placeholder replaced, without the lines that have a value for none of theirs.

    Most programs refuse a setting without a value in their config file.
    """
    return "".join(
        fill(line, values) for line in text.splitlines(keepends=True) if not lacks_all_values(line, values)
    )


def fill(text: str, values: Mapping[str, str]) -> str:
    """``text`` with each placeholder replaced; one that ``values`` lacks (an inactive knob) becomes empty."""

    def replacement(piece: re.Match[str]) -> str:
        if piece[1] is not None:
            return values.get(piece[1], "")
        if len(piece[0]) == 1:
            raise PlaceholderError(piece[0])
        return piece[0][0]

    return _PIECE.sub(replacement, text)
