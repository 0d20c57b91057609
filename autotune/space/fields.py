"""Typed fields of a mapping in a space file: the one place where unknown keys and wrong types are reported.

A *converter* takes a node and the field's title (``measure.timeout``) and gives the value, or raises
:class:`InputError`. :class:`Fields` catches that, so that one wrong field does not hide the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from autotune.errors import InputError, Location, Problem, nearest, shorten
from autotune.space import units
from autotune.space.configuration import FrozenMap, Value
from autotune.space.yaml_nodes import YamlEntry, YamlList, YamlMap, YamlNode, YamlScalar, describe

MOST_PROBLEMS = 100
"""A file with more is not one that somebody mends by reading on."""

T = TypeVar("T")
Converter: TypeAlias = Callable[[YamlNode, str], T]


class Problems:
    """Everything found wrong so far; raised together at the end, in file order."""

    def __init__(self, found: Iterable[Problem] = ()) -> None:
        self.found = list(found)

    def add(self, message: str, where: Location | None, expected: str = "", hint: str = "") -> None:
        self.found.append(Problem(message, where, expected, hint))

    def keep(self, error: InputError) -> None:
        self.found.extend(error.problems)

    def attempt(self, action: Callable[[], T]) -> T | None:
        """What ``action`` gives, or ``None`` where it raises an :class:`InputError`, which is kept."""
        try:
            return action()
        except InputError as error:
            self.keep(error)
            return None

    def raise_all(self) -> None:
        """Raise what was found, if anything was; beyond :data:`MOST_PROBLEMS` only how many."""
        if self.found:
            ordered = sorted(dict.fromkeys(self.found), key=_file_order)
            more = len(ordered) - MOST_PROBLEMS
            if more > 0:
                last = ordered[MOST_PROBLEMS - 1].where
                ordered[MOST_PROBLEMS:] = [Problem(f"{more:,} more problems follow", last)]
            raise InputError(ordered)


def _file_order(problem: Problem) -> tuple[int, int]:
    return (problem.where.line, problem.where.column) if problem.where else (0, 0)


class Fields:
    """The known keys of one mapping. An unknown key is reported at once, with the nearest known one."""

    def __init__(
        self,
        node: YamlMap,
        title: str,
        known: Sequence[str],
        problems: Problems,
        habits: Mapping[str, str] | None = None,
    ) -> None:
        """``habits``: what to write instead of keys that other tools have."""
        self.where = node.where
        self.title = title
        self.entries: dict[str, YamlEntry] = {entry.key: entry for entry in node}
        self.unknown = [entry.key for entry in node if entry.key not in known]
        self._problems = problems
        for entry in node:
            if entry.key not in known:
                self._unknown(entry, known, {**_HABITS, **(habits or {})})

    def _unknown(self, entry: YamlEntry, known: Sequence[str], habits: Mapping[str, str]) -> None:
        inside = f" in {self.title}" if self.title else ""
        hint = habits.get(entry.key) or _meant(entry.key, known)
        expected = "one of " + ", ".join(known)
        self._problems.add(f"unknown key {shorten(entry.key)!r}{inside}", entry.where, expected, hint)

    def __contains__(self, key: str) -> bool:
        return key in self.entries

    def lacks(self, *keys: str) -> bool:
        """Whether none of ``keys`` is given, and none misspelt either (which is reported already)."""
        misspelt = any(_meant(key, keys) for key in self.unknown)
        return not misspelt and not any(key in self.entries for key in keys)

    def name(self, key: str) -> str:
        """The field's title, for messages."""
        return f"{self.title}.{key}" if self.title else key

    def node(self, key: str) -> YamlNode | None:
        entry = self.entries.get(key)
        return entry.value if entry else None

    def get(self, key: str, convert: Converter[T], default: T) -> T:
        """The converted field, or ``default`` where it is absent or wrong (which is reported)."""
        node = self.node(key)
        if node is None:
            return default
        try:
            return convert(node, self.name(key))
        except InputError as error:
            self._problems.keep(error)
            return default

    def require(self, key: str, convert: Converter[T], default: T, expected: str) -> T:
        """As :meth:`get`, but an absent field is reported."""
        if self.lacks(key):
            inside = f" in {self.title}" if self.title else ""
            self._problems.add(f"the key {key!r} is missing{inside}", self.where, expected)
        return self.get(key, convert, default)


_HABITS = {"<<": "merge keys are not part of YAML 1.2; write the keys out"}


def wrong(node: YamlNode, title: str, expected: str, hint: str = "") -> InputError:
    """``measure.confidence is 95``, with what was expected instead."""
    return InputError(Problem(f"{title} is {describe(node)}", node.where, expected, hint))


def as_map(node: YamlNode, title: str, expected: str, hint: str = "") -> YamlMap:
    """A mapping; an empty value counts as one without entries."""
    if isinstance(node, YamlScalar) and node.value is None:
        return YamlMap((), node.where)
    if not isinstance(node, YamlMap):
        raise wrong(node, title, expected, hint)
    return node


def text(node: YamlNode, title: str) -> str:
    if not isinstance(node, YamlScalar) or not isinstance(node.value, str):
        quotable = isinstance(node, YamlScalar) and node.value is not None
        raise wrong(node, title, "a text", "quote it to make it a text" if quotable else "")
    if not node.value.strip():
        raise wrong(node, title, "a text that is not empty")
    return node.value


def written(node: YamlNode, title: str) -> str:
    """The letters of a scalar of any type: what becomes an argument or an environment variable."""
    if not isinstance(node, YamlScalar) or node.value is None:
        raise wrong(node, title, "a text or a number")
    return node.text


def boolean(node: YamlNode, title: str) -> bool:
    if not isinstance(node, YamlScalar) or not isinstance(node.value, bool):
        raise wrong(node, title, "true or false")
    return node.value


def number(
    low: float = -math.inf, high: float = math.inf, *, expected: str = "a number", hint: str = ""
) -> Converter[float]:
    """A finite number strictly between ``low`` and ``high``."""

    def convert(node: YamlNode, title: str) -> float:
        value = _numeric(node)
        if value is None or not math.isfinite(value) or not low < value < high:
            raise wrong(node, title, expected, hint if value is not None else "")
        return float(value)

    return convert


def integer(low: int, high: int = 2**63 - 1, *, expected: str = "") -> Converter[int]:
    """A whole number from ``low`` to ``high``; ``1e3`` counts as one."""

    def convert(node: YamlNode, title: str) -> int:
        value = _numeric(node)
        if value is None or not math.isfinite(value) or value != int(value) or not low <= value <= high:
            limit = f", at most {high}" if value is not None and value > high else ""
            raise wrong(node, title, (expected or f"a whole number, {low} or more") + limit)
        return int(value)

    return convert


def _numeric(node: YamlNode) -> int | float | None:
    if not isinstance(node, YamlScalar) or isinstance(node.value, bool):
        return None
    return node.value if isinstance(node.value, (int, float)) else None


def duration(node: YamlNode, title: str) -> float:
    """Seconds, more than 0."""
    return _measured(node, title, units.seconds, units.DURATION_FORM)


def memory(node: YamlNode, title: str) -> int:
    """Bytes, more than 0."""
    return int(_measured(node, title, units.memory, units.MEMORY_FORM, whole=True))


def _measured(
    node: YamlNode, title: str, read: Callable[[str], float], form: str, *, whole: bool = False
) -> float:
    value = _numeric(node)
    if value is None:
        if not isinstance(node, YamlScalar) or not isinstance(node.value, str):
            raise wrong(node, title, form)
        try:
            value = read(node.value)
        except ValueError as error:
            reason = str(error)
            raise wrong(node, title, form, "" if reason.endswith(form) else reason) from None
    if not 0 < value < 2**63 or (whole and value != int(value)):
        raise wrong(node, title, f"{form}, more than 0")
    return value


def optional(convert: Converter[T]) -> Converter[T | None]:
    """``null`` (or nothing) means that there is no limit."""

    def converted(node: YamlNode, title: str) -> T | None:
        if isinstance(node, YamlScalar) and node.value is None:
            return None
        return convert(node, title)

    return converted


def one_of(*names: str) -> Converter[Any]:
    """One of a few texts."""

    def convert(node: YamlNode, title: str) -> str:
        value = node.value if isinstance(node, YamlScalar) else None
        if not isinstance(value, str) or value not in names:
            raise wrong(node, title, " or ".join([", ".join(names[:-1]), names[-1]]), _meant(value, names))
        return value

    return convert


def _meant(value: object, names: Sequence[str]) -> str:
    """The name that a misspelt, shortened (``min``) or lengthened (``logarithmic``) one stands for."""
    if not isinstance(value, str) or len(value) < 3:
        return ""
    word = value.lower()
    longer = [name for name in names if name.startswith(word)]
    shorter = sorted((name for name in names if len(name) >= 3 and word.startswith(name)), key=len)
    likely = longer if len(longer) == 1 else shorter[-1:]
    return nearest(value, names) or (f"did you mean {likely[0]!r}?" if likely else "")


def scalar(node: YamlNode, title: str) -> bool | int | float | str:
    """A text, a finite number or a flag."""
    if not isinstance(node, YamlScalar) or node.value is None:
        raise wrong(node, title, "a number, a text, true or false")
    if isinstance(node.value, float) and not math.isfinite(node.value):
        raise wrong(node, title, "a finite number")
    return node.value


def fact(node: YamlNode, title: str) -> Value:
    """A scalar, or a list or mapping of facts; every one that is wrong is reported."""
    problems = Problems()
    result: Value
    match node:
        case YamlList():
            result = tuple(items(node, title, fact, problems))
        case YamlMap():
            result = FrozenMap(mapping(node, title, fact, problems))
        case _:
            return scalar(node, title)
    problems.raise_all()
    return result


def choice(node: YamlNode, title: str) -> Value:
    """A fact; nothing at all is none, since a knob without a value is one that does not exist."""
    if isinstance(node, YamlScalar) and node.value is None:
        expected = "a number, a text, true or false, a list or a mapping"
        raise wrong(node, title, expected, "for nothing write a text that the program reads so")
    return fact(node, title)


def items(node: YamlList, title: str, convert: Converter[T], problems: Problems) -> list[T]:
    """Each item converted; those that are wrong are reported and left out."""
    converted: list[T] = []
    for place, item in enumerate(node.items):
        try:
            converted.append(convert(item, f"{title}[{place}]"))
        except InputError as error:
            problems.keep(error)
    return converted


def mapping(node: YamlMap, title: str, convert: Converter[T], problems: Problems) -> dict[str, T]:
    """Each entry converted; those that are wrong are reported and left out."""
    converted: dict[str, T] = {}
    for entry in node:
        try:
            converted[entry.key] = convert(entry.value, f"{title}.{shorten(entry.key)}")
        except InputError as error:
            problems.keep(error)
    return converted
