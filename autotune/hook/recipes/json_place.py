"""The line and column of a value in a JSON text, for error messages. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")


def place_of(text: str, path: Sequence[str | int]) -> tuple[int, int]:
    """Line and column, from 1, of the value at ``path``, or of the innermost value on the way that exists.

    ``text`` must be valid JSON. If an object has a key twice, the last one counts, as for :func:`json.loads`.
    """
    at = _skip(text, 0)
    for step in path:
        found = _member(text, at, step)
        if found is None:
            break
        at = found
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def _member(text: str, at: int, step: str | int) -> int | None:
    """Where the member ``step`` of the object or list at ``at`` begins."""
    keyed = text[at] == "{"
    if text[at] not in "{[" or keyed != isinstance(step, str):
        return None
    found, number, at = None, 0, _skip(text, at + 1)
    while text[at] not in "}]":
        name: str | int = number
        if keyed:
            name, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)  # past the colon
        if name == step:
            found = at
        _, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
        number += 1
    return found


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
