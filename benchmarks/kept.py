"""What a long benchmark has come to so far, line by line in a file, so that it goes on where it stood."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from autotune.errors import InputError, Problem


def read_lines(*paths: Path) -> list[dict[str, Any]]:
    """The JSON objects in files of a line each. A line that a kill cut short is said, and left out.

    :class:`InputError` for a file that cannot be read.
    """
    lines = []
    for path in paths:
        try:
            texts = path.read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            expected = "a file with a JSON object a line, as a benchmark writes"
            raise InputError(Problem(f"cannot read {path}: {error}", expected=expected)) from None
        for number, text in enumerate(texts, 1):
            if not text.strip():
                continue
            try:
                lines.append(dict(json.loads(text)))
            except (TypeError, ValueError):
                print(f"{path}, line {number}: no JSON object, left out", file=sys.stderr)
    return lines


def read_searches(paths: Iterable[Path], of: Sequence[str]) -> list[dict[str, Any]]:
    """Lines that are searches, which differ ``of`` these keys.

    :class:`InputError` where there is none, where a line is of something else, and for a search that is
    there twice, which would count as two.
    """
    lines = read_lines(*paths)
    if not lines:
        raise InputError("there is no search in these files")
    for line in lines:
        if lacks := [key for key in of if key not in line]:
            has = ", ".join(line)
            raise InputError(f"a line with {has} is no search of this benchmark: it lacks {', '.join(lacks)}")
    counts = Counter(tuple((key, line[key]) for key in of) for line in lines)
    for search, count in counts.items():
        if count > 1:
            said = ", ".join(f"{key} {value}" for key, value in search)
            raise InputError(f"the search of {said} is there {count} times")
    return lines


def kept_lines(path: Path) -> list[dict[str, Any]]:
    """Those of an earlier run; none where there was none."""
    return read_lines(path) if path.exists() else []


def add_line(path: Path, line: object) -> None:
    """Add one object, in one write, behind whatever a kill has left of the last one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(end - 1, 0))
        begin = b"" if file.read(1) in (b"", b"\n") else b"\n"
        file.write(begin + json.dumps(line).encode() + b"\n")


class Kept:
    """Values by what they are of; both as JSON."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._values = {self._key(line["of"]): line["value"] for line in kept_lines(path)}

    def get_or_make(self, make: Callable[[], Any], **of: Any) -> Any:
        """The value of ``of``: that of an earlier run, or what ``make`` makes now."""
        key = self._key(of)
        if key not in self._values:
            value = make()
            add_line(self._path, {"of": of, "value": value})
            self._values[key] = json.loads(json.dumps(value))
        return self._values[key]

    @staticmethod
    def _key(of: dict[str, Any]) -> str:
        return json.dumps(of, sort_keys=True)
