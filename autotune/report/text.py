"""Text that others have written, made safe to show: nothing in it acts on a terminal or on other words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

MOST_OF_A_NAME = 120
"""Characters of a name or a value that are shown."""
MOST_OF_A_TEXT = 4000
"""Of a message, or of what a program printed."""

_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
"""Control characters (but for the tab and the new line), and those that turn or hide other characters."""
_UNPAIRED = re.compile("[\ud800-\udfff]")


def visible(text: object, most: int = MOST_OF_A_TEXT) -> str:
    """``text`` with what acts written out (``\\\\x1b``), and cut at ``most`` characters, which is said."""
    words = text if isinstance(text, str) else str(text)
    cut = len(words) - most
    if cut > 0:
        words = words[:most]
    words = _ACTING.sub(_written_out, _UNPAIRED.sub(_written_out, words.replace("\r\n", "\n")))
    return f"{words} ... (cut, {cut:,} more characters)" if cut > 0 else words


def one_line(text: object, most: int = MOST_OF_A_NAME) -> str:
    """The same on one line, for a name, a value or the beginning of a message."""
    words = str(text)
    beginning = " ".join(words[: 8 * most].split())
    return visible(beginning, most) if len(beginning) <= most else visible(beginning[: most - 4]) + " ..."


def shown(value: object) -> str:
    """A value on a line: items of a list, pairs of a mapping; those within others are bracketed. A text whose
    blanks nobody sees is quoted."""
    if value is None:
        return "(none)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ", ".join(f"{shown(name)}: {_within(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_within, value))
    words = str(value)
    plain = words and " ".join(words.split()) == words
    return visible(words if plain else json.dumps(words, ensure_ascii=False))


def _within(value: object) -> str:
    """A value that stands in another one: where it has parts, these are told from its neighbours."""
    if isinstance(value, Mapping):
        return f"{{{shown(value)}}}"
    return f"[{shown(value)}]" if isinstance(value, list | tuple) else shown(value)


def side_by_side(one: object, other: object, most: int = MOST_OF_A_NAME) -> tuple[str, str]:
    """Two values that differ, each on a line; long ones that begin alike from shortly before they part.

    Of two mappings only what differs is shown.
    """
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        apart = [name for name in {**one, **other} if one.get(name) != other.get(name)]
        one, other = ({name: side.get(name) for name in apart} for side in (one, other))
    words, others = shown(one), shown(other)
    cut, cut_other = one_line(words, most), one_line(others, most)
    if cut != cut_other or words == others:
        return cut, cut_other
    pairs = enumerate(zip(words, others, strict=False))
    parted = next((at for at, (here, there) in pairs if here != there), min(len(words), len(others)))
    begin = max(parted - most // 4, 0)
    return f"... {one_line(words[begin:], most - 4)}", f"... {one_line(others[begin:], most - 4)}"


def last_lines(text: str, most: int = MOST_OF_A_TEXT) -> str:
    """The end of what a program printed, which is where it says what went wrong."""
    cut = len(text) - most
    return (
        visible(text) if cut <= 0 else f"({cut:,} characters before this are left out)\n{visible(text[cut:])}"
    )


def _written_out(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
