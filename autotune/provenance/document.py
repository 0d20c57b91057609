"""Documents: what is known, as plain JSON; and what differs between two of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias, cast

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
Document: TypeAlias = dict[str, Json]


class Documented:
    """Mix-in of frozen dataclasses that have a JSON form."""

    def to_document(self) -> Document:
        """The JSON form: data classes and mappings become dictionaries, tuples become lists.

        Fields without a ``repr``, such as the contents of files, are no part of it.
        """
        shown = [field.name for field in fields(cast(Any, self)) if field.repr]
        return {name: plain(getattr(self, name)) for name in shown}


@dataclass(frozen=True)
class Difference:
    """One place where two documents differ; ``None`` on the side where it is absent or unknown."""

    path: str
    """Where: names joined by dots, such as ``packages.numpy``."""
    before: Json
    after: Json

    def __str__(self) -> str:
        return f"{self.path}: {_say(self.before)} -> {_say(self.after)}"


def part_of(document: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """What a document has under these names, each inside the one before; empty where any is missing."""
    for name in names:
        found = document.get(name)
        document = found if isinstance(found, Mapping) else {}
    return document


def plain(value: object) -> Json:
    """The JSON form of what is documented, mappings, sequences and scalars; anything else as its text."""
    if isinstance(value, str):  # bytes that were no UTF-8 are lone surrogates, which no store takes
        return value if value.isascii() else value.encode(errors="replace").decode()
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Documented):
        return value.to_document()
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value)


def digest(document: Json, length: int = 16) -> str:
    """SHA-256 over the sorted JSON form, as ``length`` hexadecimal digits."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def differences(before: Json, after: Json, path: str = "") -> Iterator[Difference]:
    """Every leaf that differs, in the order of its path; lists are compared place by place.

    But a list of plain values that has grown or shrunk is one leaf: which cores there are now says more than
    that there is no second one.
    """
    left, right = _children(before), _children(after)
    if left is None or right is None or _resized(before, after):
        if left is right is None and type(before) is type(after) and before == after:
            return
        yield Difference(path, before, after)
        return
    for name in sorted({*left, *right}, key=lambda key: (len(key) if key.isdigit() else 0, key)):
        inner = f"{path}.{name}" if path else name
        if name in left and name in right:
            yield from differences(left[name], right[name], inner)
        else:
            yield Difference(inner, left.get(name), right.get(name))


def _children(value: Json) -> Mapping[str, Json] | None:
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        return {str(index): item for index, item in enumerate(value)}
    return None


def _resized(before: Json, after: Json) -> bool:
    if not (isinstance(before, list) and isinstance(after, list)) or len(before) == len(after):
        return False
    return not any(isinstance(item, (dict, list)) for item in (*before, *after))


def _say(value: Json) -> str:
    """A text as it is, unless it is blank and could not be seen without quotes."""
    if value is None:
        return "nothing"
    return value if isinstance(value, str) and value.strip() else json.dumps(value)
