"""Where the letters of a text stand in the YAML file that it was read from."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace

from autotune.errors import Location

_BLOCKS = ("|", ">")
_HEAD = re.compile(r"([&!]\S*\s+)*")
"""An anchor and a tag."""
_LETTER = re.compile(r"\S")
_LETTERS = {"'": re.compile(r"''|\S"), '"': re.compile(r"\\.|\S")}
"""How each style of quotes writes one letter."""
_WRITTEN = {"''": "'", r"\"": '"', r"\\": "\\", r"\/": "/", r"\n": "\n", r"\t": "\t"}
"""The letters that are written in two signs, as far as rules have them."""


@dataclass(frozen=True)
class Passage(Location):
    """A text whose letters do not stand side by side in its file: it is on several lines, or has escapes."""

    parts: tuple[tuple[int, Location], ...] = ()
    """For each part that stands together: the offset in the text, and the place, of its first letter."""

    def at(self, offset: int) -> Location:
        """In front of the first letter there are only blanks: its place is that of these too."""
        first, place = self.parts[max(bisect_right(self.parts, offset, key=lambda part: part[0]) - 1, 0)]
        return place.at(max(offset - first, 0))


def origin_of(text: str, raw: str, style: str, where: Location) -> Location:
    """Where ``text`` begins, for :meth:`Location.at`: a :class:`Passage` if it is in several parts.

    ``raw`` is how it is written in the file, from ``where`` on, and ``style`` the sign that it begins with:
    ``|``, ``>``, a quote or none. However YAML folds lines, the letters of the text stand in the file one
    after another. Where they do not, because of a rare escape, only the line is known.
    """
    if text == raw:  # nearly always
        return where
    unknown = Location(where.file, where.line + (style in _BLOCKS))
    offsets = (offset for offset, letter in enumerate(text) if not letter.isspace())
    parts: list[tuple[int, Location]] = []
    for number, line in enumerate(_without_signs(raw, style).split("\n")):
        shift: int | None = None  # from the offset of a letter in the text to its column in the file
        for place, letter in _letters(line, style):
            offset = next(offsets, None)
            if offset is None:  # comments may stand below a block
                break
            if text[offset] != letter:
                return unknown
            column = place + (1 if number else where.column)
            if column - offset != shift:
                shift = column - offset
                parts.append((offset, Location(where.file, where.line + number, column)))
    if not parts or next(offsets, None) is not None:
        return unknown
    first, begin = parts[0]
    if len(parts) == 1 and begin.column > first:
        return replace(begin, column=begin.column - first)
    return Passage(begin.file, begin.line, begin.column, tuple(parts))


def _letters(line: str, style: str) -> Iterator[tuple[int, str]]:
    """The letters on a line, without blanks: the place of each, and what it means."""
    for sign in _LETTERS.get(style, _LETTER).finditer(line):
        letter = _WRITTEN.get(sign[0], sign[0])
        if not letter.isspace():
            yield sign.start(), letter


def _without_signs(raw: str, style: str) -> str:
    """``raw`` with blanks in the place of all but the text: quotes, an anchor, what a block begins with."""
    head = _HEAD.match(raw)
    begin, end = head.end() if head else 0, len(raw)
    if style in _BLOCKS:
        begin = raw.find("\n", begin)
    elif style:
        begin, end = begin + 1, end - 1
    return re.sub(r"\S", " ", raw[:begin]) + raw[begin:end]
