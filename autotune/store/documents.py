"""Documents as JSON text, and file contents compressed where that helps.

A result must never be refused because it carries an odd value, so writing is lenient: numpy numbers and
arrays become plain ones, paths and anything else unknown become text. Numbers keep every bit. The
numbers that JSON has no word for are written ``NaN`` and ``Infinity``, as Python's own reader takes them.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from typing import Any, TypeVar

from autotune.errors import StoreError
from autotune.measure.outcome import Estimate
from autotune.space.configuration import FrozenMap, plain

_Number = TypeVar("_Number", int, float)

COMPRESS_FROM = 256
"""Bytes; below this zlib saves nothing worth its header."""


class GarbledError(StoreError):
    """A value in the store cannot have been written there: the file is damaged inside a row."""

    def __init__(self, error: object, place: str = "") -> None:
        super().__init__(f"what the store holds is damaged: {error}")
        self.detail = place or str(error)
        self.place = place
        """Table, row and column with what is wrong there; empty where they are not known."""


def encode(document: object) -> str:
    """JSON text in pure ASCII, so that no database has trouble with an encoding or a NUL."""
    if type(document) is dict and not document:
        return "{}"
    try:
        return _ENCODER.encode(document)
    except (TypeError, ValueError, RecursionError):  # a key that is no text, a circle, or too deep or long
        return json.dumps(_sanitised(document), separators=(",", ":"))


def decode(text: str, form: type | None = None) -> Any:
    """The inverse of :func:`encode`, for documents of one ``form`` (``dict`` or ``list``) or any.

    Raises :class:`GarbledError` for what :func:`encode` cannot have written.
    """
    try:
        found = {} if text == "{}" else _DECODER.raw_decode(text)[0]
    except (TypeError, ValueError, RecursionError) as error:
        raise GarbledError(error) from error
    if form is not None and type(found) is not form:
        raise GarbledError(f"{text:.40} is no {'object' if form is dict else 'list'}")
    return found


def checked(value: _Number, kind: type) -> _Number:
    """``value`` if it is of this ``kind``, ``int`` or ``float``; else raises :class:`GarbledError`."""
    if type(value) is kind or (type(value) is int and kind is float):
        return value
    raise GarbledError(f"{value!r:.40} is no {'whole number' if kind is int else 'number'}")


def _plain(value: object) -> object:
    if isinstance(value, FrozenMap):
        return plain(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if hasattr(value, "tolist"):  # numpy scalars and arrays
        return value.tolist()
    return str(value)


def _sanitised(value: object, depth: int = 20) -> object:
    """A copy of what :mod:`json` itself refuses: with text keys, and cut off at ``depth`` levels."""
    if depth == 0:
        return "..."
    if isinstance(value, Mapping):
        return {str(key): _sanitised(item, depth - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_sanitised(item, depth - 1) for item in value]
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return hex(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return _sanitised(_plain(value), depth - 1)


_MOST_BITS = 2000
"""Longer integers are written in hexadecimal: Python may refuse decimal (``sys.set_int_max_str_digits``)."""

_ENCODER = json.JSONEncoder(separators=(",", ":"), default=_plain)
_DECODER = json.JSONDecoder()


def encode_metrics(metrics: Mapping[str, Estimate]) -> str:
    return encode(
        {
            name: {
                "value": float(e.value),
                "low": float(e.low),
                "high": float(e.high),
                "n": int(e.n),
                "error": float(e.error),
            }
            for name, e in metrics.items()
        }
    )


def decode_metrics(text: str) -> dict[str, Estimate]:
    try:
        found = {name: Estimate(**fields) for name, fields in decode(text).items()}
    except (TypeError, AttributeError) as error:
        raise GarbledError(error) from error
    for e in found.values():
        for number in (e.value, e.low, e.high, e.n, e.error):
            checked(number, float)
    return found


def clean(text: str) -> str:
    """``text`` without what a database refuses: NUL, and halves of surrogate pairs (undecodable bytes)."""
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    return text.replace("\0", "\N{SYMBOL FOR NULL}")


def content_hash(content: bytes) -> str:
    """SHA-256, 64 hexadecimal digits: the name of an artefact."""
    return hashlib.sha256(content).hexdigest()


def pack(content: bytes) -> tuple[str, bytes]:
    """``(encoding, stored bytes)``, with the encoding ``"zlib"`` where that is smaller, otherwise ``""``."""
    if len(content) >= COMPRESS_FROM:
        packed = zlib.compress(content, 6)
        if len(packed) < len(content):
            return "zlib", packed
    return "", content


def unpack(encoding: str, stored: bytes) -> bytes:
    """The inverse of :func:`pack`. Raises :class:`GarbledError` for bytes that it cannot have given."""
    try:
        return zlib.decompress(stored) if encoding == "zlib" else stored
    except zlib.error as error:
        raise GarbledError(error) from error
