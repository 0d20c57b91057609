"""YAML as a tree of nodes that know where they stand in their file.

ruamel.yaml scans and parses the text to events; the tree is built here, so that duplicate keys, aliases
and depth are judged with every position at hand and an input made to exhaust memory ends in a message.

Scalars are resolved by the core schema of YAML 1.2 (section 10.3.2): ``1e-3`` is a float, ``no`` and
``1_000`` are texts, ``010`` is ten. Anchors and aliases are allowed; tags and merge keys are not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from autotune.errors import InputError, Location, Problem, shorten
from autotune.space.reading.passages import origin_of
from autotune.space.reading.yaml_errors import refuse_control_characters, syntax_problem

MAX_DEPTH = 32
"""Lists and mappings inside one another, those that aliases stand for included."""
MAX_NODES = 100_000
"""Nodes after every alias is replaced by what it stands for: a bound on the work of any reader."""
MAX_DIGITS = 300
"""Characters of a number."""

Scalar: TypeAlias = bool | int | float | str | None


@dataclass(frozen=True)
class YamlScalar:
    """A single value. ``text`` is how it was written, without quotes."""

    value: Scalar
    where: Location
    text: str
    origin: Location
    """Where the text's first character stands, for :meth:`Location.at`; without a column where the letters
    of the text do not stand in the file (rare escapes)."""

    def place(self, offset: int) -> Location:
        """Where the letter at ``offset`` of the text stands, or as near as can be said."""
        return self.origin.at(offset) if self.origin.column else self.where


@dataclass(frozen=True)
class YamlList:
    items: tuple[YamlNode, ...]
    where: Location


@dataclass(frozen=True)
class YamlEntry:
    """One ``key: value`` of a mapping, with the place of its key."""

    key: str
    where: Location
    value: YamlNode


@dataclass(frozen=True)
class YamlMap:
    """A mapping in file order; keys are texts and all different."""

    entries: tuple[YamlEntry, ...]
    where: Location
    whole: bool = True
    """Whether every entry is there: one with a wrong key is reported and left out."""

    def __iter__(self) -> Iterator[YamlEntry]:
        return iter(self.entries)


YamlNode: TypeAlias = YamlScalar | YamlList | YamlMap


def describe(node: YamlNode) -> str:
    """What a node is, in words: ``the text 'high'``, ``3``, ``a list``, ``empty``."""
    match node:
        case YamlList():
            return "a list" if node.items else "an empty list"
        case YamlMap():
            return "a mapping" if node.entries else "an empty mapping"
        case YamlScalar(value=None):
            return "empty"
        case YamlScalar(value=str() as text):
            return f"the text {shorten(text)!r}"
        case _:
            return shorten(node.text)


def value_at(node: YamlNode, key: str) -> YamlNode | None:
    """What a mapping has under ``key``; ``None`` where it has nothing there, or is none."""
    entries = node.entries if isinstance(node, YamlMap) else ()
    return next((entry.value for entry in entries if entry.key == key), None)


def compose(text: str, file: str) -> tuple[YamlNode, list[Problem]]:
    """Build the tree of the one document in ``text``.

    Returns the tree and the problems that did not keep it from being built (duplicate keys, say, of
    which the first is kept). Raises :class:`InputError` where the text is not YAML at all.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    refuse_control_characters(text, file)
    text = text.removeprefix("\ufeff")
    builder = _Builder(text, file, YAML(typ="safe", pure=True).parse(text))
    try:
        return builder.document(), builder.problems
    except MarkedYAMLError as error:
        raise InputError(syntax_problem(error, file)) from None
    except (YAMLError, ValueError) as error:  # a directive or a character the scanner cannot take
        raise InputError(Problem(f"not valid YAML: {error}", Location(file))) from None


@dataclass(frozen=True)
class _Anchored:
    """What an alias stands for: ``size`` nodes, the deepest of them ``height`` levels below the first."""

    node: YamlNode
    size: int
    height: int


@dataclass
class _Builder:
    """Turns parser events into nodes; keeps what was wrong on the way."""

    text: str
    file: str
    events: Iterator[Any]
    problems: list[Problem] = field(default_factory=list)
    anchors: dict[str, _Anchored] = field(default_factory=dict)
    count: int = 0
    deepest: int = 0
    """The level of the deepest node so far inside the one that is being built."""

    def document(self) -> YamlNode:
        from ruamel.yaml.events import DocumentStartEvent, StreamEndEvent

        next(self.events)  # the stream's start
        first = next(self.events)
        if isinstance(first, StreamEndEvent):
            raise InputError(Problem("the file is empty", Location(self.file), "a space, which is a mapping"))
        node = self.node(next(self.events), 0)
        next(self.events)  # the document's end
        after = next(self.events)
        if isinstance(after, DocumentStartEvent):
            raise InputError(
                Problem("a second document begins here", self.place(after.start_mark), "one space a file")
            )
        return node

    def place(self, mark: Any) -> Location:
        return Location(self.file, mark.line + 1, mark.column + 1)

    def node(self, event: Any, depth: int) -> YamlNode:
        from ruamel.yaml.events import AliasEvent, MappingStartEvent, ScalarEvent, SequenceStartEvent

        where = self.place(event.start_mark)
        if isinstance(event, AliasEvent):
            return self.alias(event.anchor, depth, where)
        self.grow(1, where)
        outside, self.deepest = self.deepest, 0
        self.reach(depth, where)
        if event.tag is not None:
            tag = str(event.tag).replace("tag:yaml.org,2002:", "!!")
            hint = "leave it out; quote a value to make it a text"
            self.problems.append(Problem(f"the tag {shorten(tag)!r} is not supported", where, hint=hint))
        before = self.count
        node: YamlNode
        if isinstance(event, ScalarEvent):
            node = self.scalar(event, where)
        elif isinstance(event, SequenceStartEvent):
            node = YamlList(tuple(self.items(depth)), where)
        else:
            assert isinstance(event, MappingStartEvent)
            known = len(self.problems)
            entries = tuple(self.entries(depth))
            node = YamlMap(entries, where, whole=len(self.problems) == known)
        if event.anchor is not None:
            height = self.deepest - depth
            self.anchors[str(event.anchor)] = _Anchored(node, self.count - before + 1, height)
        self.deepest = max(outside, self.deepest)
        return node

    def grow(self, nodes: int, where: Location) -> None:
        self.count += nodes
        if self.count > MAX_NODES:
            raise InputError(
                Problem(f"more than {MAX_NODES:,} values, those that aliases stand for included", where)
            )

    def reach(self, depth: int, where: Location) -> None:
        self.deepest = max(self.deepest, depth)
        if depth > MAX_DEPTH:
            raise InputError(Problem(f"nested more than {MAX_DEPTH} levels deep", where))

    def alias(self, anchor: Any, depth: int, where: Location) -> YamlNode:
        name = str(anchor)
        if name not in self.anchors:
            raise InputError(
                Problem(
                    f"the alias *{shorten(name)} stands for nothing",
                    where,
                    f"an anchor &{shorten(name)} that is complete before it",
                    "quote a text that begins with '*'",
                )
            )
        anchored = self.anchors[name]
        self.grow(anchored.size, where)
        self.reach(depth + anchored.height, where)
        return anchored.node

    def items(self, depth: int) -> Iterator[YamlNode]:
        from ruamel.yaml.events import SequenceEndEvent

        while not isinstance(event := next(self.events), SequenceEndEvent):
            yield self.node(event, depth + 1)

    def entries(self, depth: int) -> Iterator[YamlEntry]:
        from ruamel.yaml.events import MappingEndEvent

        seen: dict[str, Location] = {}
        while not isinstance(event := next(self.events), MappingEndEvent):
            key = self.node(event, depth + 1)
            where = self.place(event.start_mark)
            value = self.node(next(self.events), depth + 1)
            if not isinstance(key, YamlScalar) or not isinstance(key.value, str):
                hint = "quote it to make it a text" if isinstance(key, YamlScalar) else ""
                if isinstance(key, YamlMap):  # what {name} unquoted becomes
                    hint = "quote a text that begins with '{'"
                self.problems.append(Problem(f"a key is {describe(key)}", where, "a text", hint))
            elif key.value in seen:
                first = seen[key.value]
                self.problems.append(
                    Problem(
                        f"the key {shorten(key.value)!r} is given twice",
                        where,
                        hint=f"the first is at line {first.line}, column {first.column}; keep one of them",
                    )
                )
            else:
                seen[key.value] = where
                if isinstance(value, YamlScalar) and value.value is None and not value.text:
                    value = replace(value, where=where)  # an empty value has no place: take that of its key
                yield YamlEntry(key.value, where, value)

    def scalar(self, event: Any, where: Location) -> YamlScalar:
        written: str = event.value
        if any("\ud800" <= character <= "\udfff" for character in written):
            self.problems.append(Problem("half a character (a lone surrogate) in a text", where))
            written = "?"
        value: Scalar = written
        if not event.style:  # anything quoted, literal or folded is a text
            try:
                value = resolve(written)
            except ValueError as error:
                self.problems.append(Problem(str(error), where))
                value = math.inf
        raw = self.text[event.start_mark.index : event.end_mark.index]
        return YamlScalar(value, where, written, origin_of(written, raw, event.style or "", where))


_NULL = re.compile(r"~|null|Null|NULL|")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_INTEGER = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"([-+]?)\.(inf|Inf|INF)")
_NAN = re.compile(r"\.(nan|NaN|NAN)")


def resolve(text: str) -> Scalar:
    """The value of an unquoted scalar (YAML 1.2, core schema); ``ValueError`` for a number past all use."""
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text):
        return True
    if _FALSE.fullmatch(text):
        return False
    if not text.isascii() or not (text[0].isdigit() or text[0] in "+-."):
        return text
    if infinite := _INFINITE.fullmatch(text):
        return float(infinite[1] + "inf")
    if _NAN.fullmatch(text):
        return float("nan")
    for pattern, convert in (
        (_INTEGER, int),
        (_OCTAL, lambda t: int(t[2:], 8)),
        (_HEXADECIMAL, lambda t: int(t[2:], 16)),
        (_FLOAT, float),
    ):
        if pattern.fullmatch(text):
            return _finite(text, convert)
    return text


def _finite(text: str, convert: Any) -> int | float:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a number of {len(text):,} characters; at most {MAX_DIGITS} are read")
    number: int | float = convert(text)
    try:
        infinite = math.isinf(number)
    except OverflowError:  # of an integer, whose digits in another base are many times fewer
        infinite = True
    if infinite:
        raise ValueError(f"{shorten(text)} is too large for a float")
    return number
