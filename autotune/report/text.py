"""Text from other sources, made safe to show: it cannot control a terminal or hide or reorder other text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

MOST_OF_A_NAME = 120
"""The most characters of a name or a value that are shown."""
MOST_OF_A_TEXT = 4000
"""The most characters of a message, or of a program's output."""

_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
"""Control characters except tab and new line, and characters that reorder or hide others."""
_UNPAIRED = re.compile("[\ud800-\udfff]")


def visible(text: object, most: int = MOST_OF_A_TEXT) -> str:
    """``text`` with control characters escaped (``\\\\x1b``), cut at ``most`` characters with a note."""
    words = text if isinstance(text, str) else str(text)
    cut = len(words) - most
    if cut > 0:
        words = words[:most]
    words = _ACTING.sub(_written_out, _UNPAIRED.sub(_written_out, words.replace("\r\n", "\n")))
    return f"{words} ... (cut, {cut:,} more characters)" if cut > 0 else words


def one_line(text: object, most: int = MOST_OF_A_NAME) -> str:
    """``text`` as :func:`visible` on one line, for a name, a value or the beginning of a message."""
    words = str(text)
    beginning = " ".join(words[: 8 * most].split())
    return visible(beginning, most) if len(beginning) <= most else visible(beginning[: most - 4]) + " ..."


def shown(value: object) -> str:
    """A value on one line: items of a list, pairs of a mapping; nested ones in brackets. A text that is
    empty, or has blanks that would not be seen, is quoted."""
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
    """A value inside another one, in brackets if it has parts."""
    if isinstance(value, Mapping):
        return f"{{{shown(value)}}}"
    return f"[{shown(value)}]" if isinstance(value, list | tuple) else shown(value)


def side_by_side(one: object, other: object, most: int = MOST_OF_A_NAME) -> tuple[str, str]:
    """Two values that differ, each on a line. Long ones are shown from shortly before their first difference.

    Of two mappings, only the entries that differ are shown. The number 1 and the text ``"1"`` are told apart.
    """
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        apart = [name for name in {**one, **other} if _exact(one.get(name)) != _exact(other.get(name))]
        one, other = ({name: side.get(name) for name in apart} for side in (one, other))
    words, others = shown(one), shown(other)
    if words == others and _exact(one) != _exact(other):
        words, others = _exact(one), _exact(other)
    cut, cut_other = one_line(words, most), one_line(others, most)
    if cut != cut_other or words == others:
        return cut, cut_other
    pairs = enumerate(zip(words, others, strict=False))
    parted = next((at for at, (here, there) in pairs if here != there), min(len(words), len(others)))
    begin = max(parted - most // 4, 0)
    return f"... {one_line(words[begin:], most - 4)}", f"... {one_line(others[begin:], most - 4)}"


def _exact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def last_lines(text: str, most: int = MOST_OF_A_TEXT) -> str:
    """The end of a program's output, where it usually says what went wrong; at most ``most`` characters."""
    cut = len(text) - most
    if cut <= 0:
        return visible(text, most)
    return f"({cut:,} characters before this are left out)\n{visible(text[cut:], most)}"


def _written_out(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
