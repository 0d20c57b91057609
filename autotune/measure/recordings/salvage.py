"""Reads as much as possible of a JSON file that a crash cut short, gzipped or not.

A tuner that appends one entry after another and dies leaves a file without its closing braces, with a
trailing comma, or with half an entry at the end. All complete entries before that are good.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

GZIP_MAGIC = b"\x1f\x8b"
_GZIP = 16 + zlib.MAX_WBITS
_CHUNK = 1 << 14
"""How many bytes are inflated at once: less than this is lost before a damaged place in a stream."""

_GAP = re.compile(r"[\s,]*")
_COLON = re.compile(r"\s*:\s*")


class Members(dict[str, object]):
    """An object with a repeated key. As a dictionary it has the last value of each key, as is usual."""

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs
        """All keys and values in the order of the file."""


def members(found: Mapping[str, object]) -> Iterable[tuple[str, object]]:
    """The keys and values of an object in a file, repeated keys included."""
    return found.pairs if isinstance(found, Members) else found.items()


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object from the keys and values that the parser found."""
    found = dict(pairs)
    return found if len(found) == len(pairs) else Members(pairs)


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


@dataclass(frozen=True)
class Salvaged:
    """The top-level object of a file as far as it could be read; ``damage`` says what is wrong with it."""

    document: dict[str, object] = field(default_factory=dict)
    damage: str = ""


def salvage(data: bytes, series: frozenset[str] = frozenset()) -> Salvaged:
    """Read a JSON object, whole or cut short at any byte.

    ``series`` names the top-level keys whose value is an object or array of many entries: of these the
    complete ones count even if the last one is cut. Any other incomplete value is left out.
    """
    whole = True
    if data.startswith(GZIP_MAGIC):
        data, whole = inflate(data)
    text = data.decode("utf-8-sig", errors="replace")
    try:
        document = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return _salvage_text(text, series)
    damage = "" if whole else "its gzip stream is damaged"
    return Salvaged(document, damage) if isinstance(document, dict) else Salvaged({}, "no JSON object")


def inflate(data: bytes) -> tuple[bytes, bool]:
    """The content of a gzip stream, and whether it was whole; only the beginning of a damaged one."""
    parts: list[bytes] = []
    while data.startswith(GZIP_MAGIC):
        stream = zlib.decompressobj(_GZIP)
        for start in range(0, len(data), _CHUNK):
            try:
                parts.append(stream.decompress(data[start : start + _CHUNK]))
            except zlib.error:
                return b"".join(parts), False
            if stream.eof:
                data = stream.unused_data + data[start + _CHUNK :]
                break
        else:
            parts.append(stream.flush())
            return b"".join(parts), False
    return b"".join(parts), True


def _salvage_text(text: str, series: frozenset[str]) -> Salvaged:
    pairs: list[tuple[str, object]] = []
    reader = _Reader(text)
    try:
        reader.members_into(pairs, series)
        rest = text[reader.place :].strip()
        damage = f"there is more after its end in line {reader.line}" if rest else "it has too many commas"
    except (ValueError, RecursionError):
        damage = f"it breaks off or cannot be read in line {reader.line}"
        damage = damage if "{" in text[: reader.place] else "no JSON object"
    return Salvaged(_object(pairs), damage)


class _Reader:
    """Reads objects and arrays item by item, so that the items before a break are kept."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.place) + 1

    def members_into(self, found: list[tuple[str, object]], series: frozenset[str]) -> None:
        """Read an object into ``found``; raises ``ValueError`` where the text breaks off or is not JSON."""
        self._expect("{")
        while not self._ends("}"):
            key = self._value()
            if not isinstance(key, str):
                raise ValueError("a key must be a text")
            colon = _COLON.match(self.text, self.place)
            if colon is None:
                raise ValueError("a key must be followed by a colon")
            self.place = colon.end()
            opening = self.text[self.place : self.place + 1]
            if key in series and opening == "{":
                entries: list[tuple[str, object]] = []
                try:
                    self.members_into(entries, frozenset())
                finally:
                    found.append((key, _object(entries)))
            elif key in series and opening == "[":
                items: list[object] = []
                found.append((key, items))
                self.array_into(items)
            else:
                found.append((key, self._value()))

    def array_into(self, found: list[object]) -> None:
        """Read an array into ``found``; raises ``ValueError`` where the text breaks off or is not JSON."""
        self._expect("[")
        while not self._ends("]"):
            found.append(self._value())

    def _value(self) -> object:
        value, self.place = _DECODER.raw_decode(self.text, self.place)
        return value

    def _expect(self, opening: str) -> None:
        self._skip()
        if not self.text.startswith(opening, self.place):
            raise ValueError(f"expected {opening}")
        self.place += 1

    def _ends(self, closing: str) -> bool:
        self._skip()
        if self.text.startswith(closing, self.place):
            self.place += 1
            return True
        return False

    def _skip(self) -> None:
        gap = _GAP.match(self.text, self.place)
        assert gap is not None  # it matches the empty text
        self.place = gap.end()
