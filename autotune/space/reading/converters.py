"""What a value in a space file must be: one converter a type, each of which says what it expected."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from autotune.errors import InputError, shorten
from autotune.space import units
from autotune.space.configuration import FrozenMap, Value
from autotune.space.reading.fields import Converter, Problems, meant, wrong
from autotune.space.reading.yaml_nodes import YamlList, YamlMap, YamlNode, YamlScalar

T = TypeVar("T")

_MOST = 2**63 - 1
"""The largest whole number that SQLite can hold."""


def text(node: YamlNode, title: str) -> str:
    if not isinstance(node, YamlScalar) or not isinstance(node.value, str):
        quotable = isinstance(node, YamlScalar) and node.value is not None
        raise wrong(node, title, "a text", "quote it to make it a text" if quotable else "")
    if not node.value.strip():
        raise wrong(node, title, "a text that is not empty")
    return node.value


def written(node: YamlNode, title: str) -> str:
    """A scalar of any type as it is written in the file: an argument or an environment variable."""
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


def integer(low: int) -> Converter[int]:
    """A whole number, ``low`` or more, that SQLite can hold; ``1e3`` counts as one."""

    def convert(node: YamlNode, title: str) -> int:
        value = _numeric(node)
        if value is None or not math.isfinite(value) or value != int(value) or not low <= value <= _MOST:
            limit = f", at most {_MOST}" if value is not None and value > _MOST else ""
            raise wrong(node, title, f"a whole number, {low} or more{limit}")
        return int(value)

    return convert


def _numeric(node: YamlNode) -> int | float | None:
    if not isinstance(node, YamlScalar) or isinstance(node.value, bool):
        return None
    return node.value if isinstance(node.value, (int, float)) else None


def duration(node: YamlNode, title: str) -> float:
    """Seconds, more than 0."""
    return _measured(node, title, units.seconds, units.DURATION_FORM)


def grace(node: YamlNode, title: str) -> float:
    """Seconds, or 0."""
    return 0.0 if _numeric(node) == 0 else duration(node, title)


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
    """As ``convert``, but ``null`` or nothing is allowed and gives ``None``."""

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
            raise wrong(node, title, " or ".join([", ".join(names[:-1]), names[-1]]), meant(value, names))
        return value

    return convert


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
    """As :func:`fact`, but nothing is refused here: a knob without a value is a knob that does not exist."""
    if isinstance(node, YamlScalar) and node.value is None:
        expected = "a number, a text, true or false, a list or a mapping"
        raise wrong(node, title, expected, "for 'no value' write a text that the program understands")
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
