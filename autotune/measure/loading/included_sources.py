"""The files beside the sources of a program that these include. Found in their text, without a compiler."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from autotune.provenance.code.files import is_file

C = frozenset((".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inc", ".cu", ".cuh", ".cl", ".S"))
_INCLUDED = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_SOURCED = re.compile(rb"^[ \t]*(?:\.|source)[ \t]+[\"']?([^\s\"';&|]+)", re.MULTILINE)
_MOST_BYTES = 1 << 20
"""How much of a file is looked at: a longer one was written by a program."""


def with_included(files: Iterable[Path]) -> list[Path]:
    """The files, what those in C include in quotes, what shell scripts source, what those include, and so on.

    A name is looked for beside the file that mentions it, as a compiler does first. Folders that are given by
    options such as ``-I`` are not searched.
    """
    found = list(dict.fromkeys(files))
    known = {path.resolve() for path in found}
    for path in found:  # which grows meanwhile
        for other in _beside(path):
            if other.resolve() not in known:
                known.add(other.resolve())
                found.append(other)
    return found


def _beside(path: Path) -> Iterator[Path]:
    pattern = _INCLUDED if path.suffix in C else _SOURCED if path.suffix in (".sh", ".bash") else None
    if pattern is None:
        return
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES)
    except OSError:
        return
    for name in pattern.findall(text):
        other = path.parent / name.decode(errors="surrogateescape")
        if is_file(other):
            yield other
