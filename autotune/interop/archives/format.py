"""The format of an archive: what is in it, how it is written as text, and how it is hashed. Pure.

::

    manifest.json          name, bytes and SHA-256 of every other member; its own hash is the archive's digest
    ro-crate-metadata.json what this is, in the terms of RO-Crate and W3C PROV
    README.md              the same for people
    lines.json             a short hash of each line of the members below: what was altered has a name
    environments.jsonl     machines and software, by hash
    files.jsonl            which stored files there are, and what each is
    files/SHA256           sources, diffs, what compilers made: by the hash of their content
    studies/N/PART.jsonl   the studies, a row a line, the oldest first; the last one is what was exported, and
                           the others taught it
    studies/N/space.yaml   the space file as it was read last, for people

JSON is strict (RFC 8259): the numbers that it has no word for are ``{"$number": "NaN"}``. The same study
gives the same bytes.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from autotune.errors import InputError
from autotune.store.documents import content_hash

FORMAT = 1
MARK = "autotune_archive"

MANIFEST = "manifest.json"
CRATE = "ro-crate-metadata.json"
README = "README.md"
LINES = "lines.json"
ENVIRONMENTS = "environments.jsonl"
FILES = "files.jsonl"
FOLDER = "files/"
STUDIES = "studies/"

NUMBER = "$number"
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

DEEPEST = 100
"""Levels of a document; a search writes fewer than ten."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")


def is_member_name(name: str) -> bool:
    """Whether a member may be called so: relative, of plain characters, and with no part that leads away."""
    return len(name) <= 200 and _NAME.fullmatch(name) is not None


def part_name(place: int, part: str) -> str:
    """``studies/0/trials.jsonl``."""
    return f"{STUDIES}{place}/{part}.jsonl"


def encode(document: object) -> str:
    """Strict JSON on one line, in pure ASCII; the order of keys is kept, for it means something."""
    return json.dumps(_out(document), separators=(",", ":"), allow_nan=False)


def _out(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return {NUMBER: "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}
    if isinstance(value, dict):
        return {str(name): _out(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_out(item) for item in value]
    return value


def decode(text: str | bytes, where: str) -> Any:
    """What :func:`encode` wrote. Raises :class:`InputError` for what is no such text, however it is made."""
    try:
        document = json.loads(text, parse_constant=_refuse)
        return _in(document, DEEPEST)
    except RecursionError:
        raise InputError(f"{where}: it is nested too deeply") from None
    except ValueError as error:  # no JSON, no UTF-8, an endless number
        raise InputError(f"{where}: it cannot be read as JSON: {error}") from None


def _refuse(word: str) -> object:
    raise ValueError(f"{word} is no number of JSON")


def _in(value: object, depth: int) -> object:
    if depth == 0:
        raise RecursionError
    if isinstance(value, dict):
        if len(value) == 1 and isinstance(word := value.get(NUMBER), str) and word in _WORDS:
            return _WORDS[word]
        return {name: _in(item, depth - 1) for name, item in value.items()}
    if isinstance(value, list):
        return [_in(item, depth - 1) for item in value]
    return value


def line_hash(line: bytes) -> str:
    """A short hash of a line: enough to say which was altered, where the whole hash says that one was."""
    return content_hash(line)[:12]
