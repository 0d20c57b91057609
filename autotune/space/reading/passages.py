"""Where the letters of a text stand in the YAML file that it was read from."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, replace

from autotune.errors import Location

_BLOCKS = ("|", ">")
_HEAD = re.compile(r"([&!]\S*\s+)*")
"""An anchor and a tag."""


@dataclass(frozen=True)
class Passage(Location):
    """A text over several lines of a file, each of which has its own place."""

    lines: tuple[tuple[int, Location], ...] = ()
    """For each line of the file: the offset in the text, and the place, of its first letter."""

    def at(self, offset: int) -> Location:
        """In front of the first line's first letter there are only blanks: that is the place of these too."""
        first, place = self.lines[max(bisect_right(self.lines, offset, key=lambda line: line[0]) - 1, 0)]
        return place.at(max(offset - first, 0))


def origin_of(text: str, raw: str, style: str, where: Location) -> Location:
    """Where ``text`` begins, for :meth:`Location.at`: a :class:`Passage` if it is on several lines.

    ``raw`` is how it is written in the file, from ``where`` on, and ``style`` the sign that it begins with:
    ``|``, ``>``, a quote or none. However YAML folds lines, the letters of the text stand in the file one
    after another. Where they do not, because of escapes, only the line is known.
    """
    if text == raw:  # nearly always
        return where
    unknown = Location(where.file, where.line + (style in _BLOCKS))
    letters = [place for place, letter in enumerate(text) if not letter.isspace()]
    lines: list[tuple[int, Location]] = []
    known = 0
    for number, line in enumerate(_without_signs(raw, style).split("\n")):
        here = [place for place, letter in enumerate(line) if not letter.isspace()]
        if not here or known == len(letters):  # comments may stand below a block
            continue
        if [line[x] for x in here] != [text[x] for x in letters[known : known + len(here)]]:
            return unknown
        column = here[0] + (1 if number else where.column)
        lines.append((letters[known], Location(where.file, where.line + number, column)))
        known += len(here)
    if not lines or known < len(letters):
        return unknown
    offset, place = lines[0]
    if len(lines) == 1 and place.column > offset:
        return replace(place, column=place.column - offset)
    return Passage(place.file, place.line, place.column, tuple(lines))


def _without_signs(raw: str, style: str) -> str:
    """``raw`` with blanks in the place of all but the text: quotes, an anchor, what a block begins with."""
    head = _HEAD.match(raw)
    begin, end = head.end() if head else 0, len(raw)
    if style in _BLOCKS:
        begin = raw.find("\n", begin)
    elif style:
        begin, end = begin + 1, end - 1
    return re.sub(r"\S", " ", raw[:begin]) + raw[begin:end]
