"""The fields of a mapping in a space file: the one place where unknown keys and wrong values are reported.

A *converter* (:mod:`autotune.space.reading.converters`) takes a node and the field's title
(``measure.timeout``) and gives the value, or raises :class:`InputError`. :class:`Fields` catches that, so
that one wrong field does not hide the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from autotune.errors import InputError, Location, Problem, nearest, shorten
from autotune.space.reading.yaml_nodes import YamlEntry, YamlMap, YamlNode, YamlScalar, describe

MOST_PROBLEMS = 100
"""How many problems of a file are listed; nobody mends more in one go."""

T = TypeVar("T")
Converter: TypeAlias = Callable[[YamlNode, str], T]


class Problems:
    """Everything found wrong so far; raised together at the end, in file order."""

    def __init__(self, found: Iterable[Problem] = ()) -> None:
        """``found``: the problems of composing the tree, which has something else in the place of each.
        Whatever is said of the same place is about that, and is not raised."""
        self.found = list(found)
        self._composed = {problem: problem.where for problem in self.found}

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
            replaced = set(self._composed.values()) - {None}
            own = [one for one in self.found if one in self._composed or one.where not in replaced]
            ordered = sorted(dict.fromkeys(own), key=_file_order)
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
        synonyms: Mapping[str, str] | None = None,
    ) -> None:
        """``habits``: hints for unknown keys that belong to other tools or other sections.

        ``synonyms``: other words for known keys, which count as misspelt.
        """
        self.where = node.where
        self.title = title
        self.entries: dict[str, YamlEntry] = {entry.key: entry for entry in node}
        self.unknown = [entry.key for entry in node if entry.key not in known]
        self._problems = problems
        self._synonyms = synonyms or {}
        for entry in node:
            if entry.key not in known:
                self._unknown(entry, known, {**_HABITS, **(habits or {})})

    def _unknown(self, entry: YamlEntry, known: Sequence[str], habits: Mapping[str, str]) -> None:
        inside = f" in {self.title}" if self.title else ""
        hint = habits.get(entry.key) or self._meant(entry.key, known)
        expected = "one of " + ", ".join(known)
        self._problems.add(f"unknown key {shorten(entry.key)!r}{inside}", entry.where, expected, hint)

    def __contains__(self, key: str) -> bool:
        return key in self.entries

    def lacks(self, *keys: str) -> bool:
        """Whether none of ``keys`` is given, and none misspelt either (which is reported already)."""
        misspelt = any(self._meant(key, keys) for key in self.unknown)
        return not misspelt and not any(key in self.entries for key in keys)

    def _meant(self, key: str, known: Sequence[str]) -> str:
        other = self._synonyms.get(key.lower())
        return f"did you mean {other!r}?" if other in known else meant(key, known)

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


def meant(value: object, names: Sequence[str]) -> str:
    """``did you mean ...?`` for a name that is misspelt, shortened (``min``) or lengthened (``logarithmic``).

    Empty where none of ``names`` is near.
    """
    if not isinstance(value, str) or len(value) < 3:
        return ""
    word = value.lower()
    longer = [name for name in names if name.startswith(word)]
    shorter = sorted((name for name in names if len(name) >= 3 and word.startswith(name)), key=len)
    likely = longer if len(longer) == 1 else shorter[-1:]
    return nearest(value, names) or (f"did you mean {likely[0]!r}?" if likely else "")
