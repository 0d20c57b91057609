"""The section ``knobs`` of a space file: one function a kind, each error at the value that causes it.

The classes of :mod:`autotune.space.knobs` validate themselves. Some of that is checked here before, so that
the message can name the line and column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from autotune.errors import InputError, Problem, nearest, shorten
from autotune.space.configuration import FrozenMap, Value
from autotune.space.knobs import (
    Assignment,
    Choice,
    Flag,
    IntegerRange,
    OrderedValues,
    Permutation,
)
from autotune.space.knobs.knob import Knob
from autotune.space.knobs.values import key
from autotune.space.language.syntax import check_name
from autotune.space.reading.converters import boolean, choice, fact, items, scalar
from autotune.space.reading.fields import Converter, Fields, Problems, as_map, wrong
from autotune.space.reading.ranges import read_range
from autotune.space.reading.yaml_nodes import YamlEntry, YamlList, YamlMap, YamlNode, YamlScalar, describe

KINDS: dict[str, tuple[str, ...]] = {
    "values": (),
    "range": ("scale", "step"),
    "choices": (),
    "flag": (),
    "permutation": (),
    "assign": ("to",),
}
"""The key that makes a knob of each kind, and the keys that go with it alone."""
COMMON = ("default", "when")
MOST_KNOBS = 1_000
"""Each rule is checked against every knob: this bounds the time that reading takes."""
HABITS = {
    **dict.fromkeys(("min", "max", "low", "high", "bounds"), "write range: [low, high]"),
    **dict.fromkeys(
        ("int", "integer", "float", "uniform"), "write range: [low, high]; floats where a bound is one"
    ),
    **dict.fromkeys(("options", "categorical", "enum"), "write choices: [...]"),
    **dict.fromkeys(("list", "ordered", "ordinal"), "write values: [...]"),
    **dict.fromkeys(("bool", "boolean"), "write flag: true or flag: false"),
    **dict.fromkeys(("on", "off"), "a flag is true or false; for two texts write choices: [...]"),
    "log": "write scale: log",
    "q": "write step",
    "type": "leave it out: one of the other keys says the kind",
    "condition": "write when: 'a condition'",
    "if": "write when: 'a condition'",
}
"""What to write instead of the words of other tools."""
ALL_KEYS = (*KINDS, "scale", "step", "to", *COMMON)


@dataclass
class KnobSection:
    """What was read. ``broken`` names the knobs that are wrong, so that nothing else reports them."""

    knobs: list[Knob] = field(default_factory=list)
    conditions: dict[str, YamlScalar] = field(default_factory=dict)
    """The ``when`` of each knob that has one, not parsed yet."""
    entries: dict[str, YamlEntry] = field(default_factory=dict)
    """By the name that the file gives each knob, broken ones included."""
    broken: set[str] = field(default_factory=set)


def read_knobs(node: YamlNode, device: Mapping[str, Value], problems: Problems) -> KnobSection:
    """The knobs in file order, without their conditions; what is wrong goes to ``problems``."""
    section = KnobSection()
    form = "a mapping: a knob's name, then its values, such as tile: {values: [1, 2, 4]}"
    entries = problems.attempt(lambda: as_map(node, "knobs", form))
    if entries is None:
        return section
    if not entries.entries and entries.whole:
        problems.add("there are no knobs", node.where, form, "indent each knob below knobs:")
    if len(entries.entries) > MOST_KNOBS:
        count = len(entries.entries)
        problems.add(f"there are {count:,} knobs", node.where, f"at most {MOST_KNOBS:,}")
        return section
    for entry in entries:
        section.entries[entry.key] = entry
        found = Problems()
        knob = _KnobReader(entry, device, found).read(section.conditions)
        if knob is not None and not found.found:
            section.knobs.append(knob)
        else:
            section.broken.add(entry.key)
        problems.found.extend(found.found)
    return section


@dataclass
class _KnobReader:
    """Reads one knob. The method of each kind gives the knob with that kind's default, or raises."""

    entry: YamlEntry
    device: Mapping[str, Value]
    problems: Problems

    def __post_init__(self) -> None:
        self.name = self.entry.key

    @property
    def title(self) -> str:
        return f"knobs.{shorten(self.entry.key)}"

    def read(self, conditions: dict[str, YamlScalar]) -> Knob | None:
        self.check_name()
        fields = self.fields()
        if fields is None:
            return None
        kind = self.kind(fields)
        self.condition(fields, conditions)
        if kind is None:
            return None
        knob = self.problems.attempt(lambda: self.build(kind, fields))
        return knob and self.with_default(knob, kind, fields)

    def check_name(self) -> None:
        try:
            check_name(self.entry.key)
        except ValueError as error:
            name = shorten(self.entry.key)
            reason, _, expected = (
                str(error).replace(repr(self.entry.key), repr(name)).partition(": expected ")
            )
            mended = re.sub(r"[-. ]", "_", name) if expected else f"{name}_"
            self.problems.add(
                reason,
                self.entry.where,
                expected,
                f"write {mended}" if mended.isidentifier() else "",
            )
            self.name = "knob"  # so that the rest can be checked as well

    def fields(self) -> Fields | None:
        node = self.entry.value
        if isinstance(node, YamlMap) and node.entries:
            return Fields(node, self.title, ALL_KEYS, self.problems, HABITS)
        hint = ""
        if isinstance(node, YamlList):
            hint = (
                f"write {shorten(self.entry.key)}: {{values: [...]}}; choices where the order means nothing"
            )
        elif isinstance(node, YamlScalar) and isinstance(node.value, bool):
            hint = f"write {shorten(self.entry.key)}: {{flag: {node.text}}}"
        expected = "a mapping with one of " + ", ".join(KINDS)
        self.problems.keep(wrong(node, self.title, expected, hint))
        return None

    def kind(self, fields: Fields) -> str | None:
        """The one key that says what kind of knob it is."""
        given = [key for key in fields.entries if key in KINDS]
        if not given:
            if not fields.unknown:  # else the message about that key is enough
                self.problems.add(
                    f"{self.title} does not say which values it takes",
                    self.entry.where,
                    "one of " + ", ".join(KINDS),
                )
            return None
        for extra in given[1:]:
            self.problems.add(
                f"{self.title} has both {given[0]!r} and {extra!r}",
                fields.entries[extra].where,
                "exactly one of " + ", ".join(KINDS),
            )
        if len(given) > 1:
            return None
        kind = given[0]
        for name, entry in fields.entries.items():
            owners = [owner for owner, keys in KINDS.items() if name in keys]
            if owners and kind not in owners:
                self.problems.add(
                    f"{self.title} has the key {name!r}, which does not go with {kind!r}",
                    entry.where,
                    f"{name!r} only beside {owners[0]!r}",
                )
        return kind

    def condition(self, fields: Fields, conditions: dict[str, YamlScalar]) -> None:
        node = fields.node("when")
        if node is None:
            return
        if not isinstance(node, YamlScalar) or not isinstance(node.value, str) or not node.value.strip():
            expected = "a condition in a text, such as \"layout == 'row'\""
            self.problems.keep(wrong(node, fields.name("when"), expected))
        else:
            conditions[self.entry.key] = node

    def build(self, kind: str, fields: Fields) -> Knob:
        makers: dict[str, Callable[[Fields], Knob]] = {
            "values": self.values,
            "range": self.range,
            "choices": self.choices,
            "flag": self.flag,
            "permutation": self.permutation,
            "assign": self.assign,
        }
        try:
            return makers[kind](fields)
        except ValueError as error:  # raised by the knob itself, for what is not checked here before
            raise InputError(Problem(str(error), fields.entries[kind].value.where)) from None

    def values(self, fields: Fields) -> Knob:
        listed, values = self.listed(fields, "values", scalar)
        sorts = [_sort(value) for value in values]
        for item, sort in zip(listed, sorts, strict=True):
            if sort != sorts[0]:
                quote = "quoted, a number is a text; " if {sort, sorts[0]} == {"numbers", "texts"} else ""
                raise InputError(
                    Problem(
                        f"{fields.name('values')} mixes {sorts[0]} with {sort}",
                        item.where,
                        f"{sorts[0]} only, since the order of values says which are near",
                        f"{quote}choices may be of any sort",
                    )
                )
        return OrderedValues(self.name, tuple(values))

    def choices(self, fields: Fields) -> Knob:
        return Choice(self.name, tuple(self.listed(fields, "choices", choice)[1]))

    def flag(self, fields: Fields) -> Knob:
        return Flag(self.name, default=boolean(fields.entries["flag"].value, fields.name("flag")))

    def permutation(self, fields: Fields) -> Knob:
        return Permutation(self.name, tuple(self.listed(fields, "permutation", scalar)[1]))

    def assign(self, fields: Fields) -> Knob:
        problems = Problems()
        listed = problems.attempt(lambda: self.listed(fields, "assign", _item))
        options = problems.attempt(lambda: self.options(fields))
        problems.raise_all()
        assert listed is not None and options is not None
        return Assignment(self.name, tuple(str(item) for item in listed[1]), options)

    def options(self, fields: Fields) -> tuple[Value, ...]:
        """``to``: a list, or ``devices`` for the names among the device's facts."""
        node = fields.node("to")
        form = "a list of what the items are assigned to, or devices"
        if node is None:
            raise InputError(Problem(f"the key 'to' is missing in {self.title}", self.entry.where, form))
        if isinstance(node, YamlList):
            return tuple(self.listed(fields, "to", scalar)[1])
        if not isinstance(node, YamlScalar) or node.value != "devices":
            hint = nearest(str(node.value), ["devices"]) if isinstance(node, YamlScalar) else ""
            raise wrong(node, fields.name("to"), form, hint)
        names = self.device.get("names")
        if not isinstance(names, tuple) or not names:
            raise InputError(
                Problem(
                    "the names of the devices are not known here",
                    node.where,
                    "the device fact 'names'",
                    "write a list such as to: [cpu, 'cuda:0'], or use a device profile that has 'names'",
                )
            )
        return names

    def listed(
        self, fields: Fields, key: str, convert: Converter[Value]
    ) -> tuple[Sequence[YamlNode], list[Value]]:
        """A list of different values that is not empty: its nodes and its values."""
        node, title = fields.entries[key].value, fields.name(key)
        if not isinstance(node, YamlList):
            hint = ""
            if isinstance(node, YamlScalar) and isinstance(node.value, str) and "," in node.value:
                hint = f"write [{shorten(node.value)}]"
            raise wrong(node, title, "a list such as [1, 2, 4]", hint)
        if not node.items:
            raise wrong(node, title, "a list with at least one value")
        problems = Problems()
        values = items(node, title, convert, problems)
        if not problems.found:
            _refuse_repeats(node, values, title, problems)
        problems.raise_all()
        return node.items, values

    def range(self, fields: Fields) -> Knob:
        return read_range(self.name, self.title, fields)

    def with_default(self, knob: Knob, kind: str, fields: Fields) -> Knob | None:
        node = fields.node("default")
        if node is None:
            return knob
        title = fields.name("default")
        given = self.problems.attempt(lambda: fact(node, title))
        if given is None:
            return None
        try:
            default = knob.canonical(given)
        except ValueError:
            self.problems.keep(wrong(node, title, knob.expected, _near_value(given, knob)))
            return None
        if kind == "flag" and default != knob.default:
            self.problems.add(
                f"{title} contradicts flag: {str(knob.default).lower()}",
                node.where,
                "one of the two: flag: true or flag: false is the default",
            )
        return replace(knob, default=default)


def _item(node: YamlNode, title: str) -> str:
    if not isinstance(node, YamlScalar) or not isinstance(node.value, str):
        raise wrong(
            node, title, "a text", "quote it to make it a text" if isinstance(node, YamlScalar) else ""
        )
    return node.value


def _sort(value: Value) -> str:
    if isinstance(value, bool):
        return "flags"
    return "texts" if isinstance(value, str) else "numbers"


def _refuse_repeats(node: YamlList, values: Sequence[Value], title: str, problems: Problems) -> None:
    """``1`` and ``1.0`` are the same value; ``1`` and ``true`` are not."""
    seen: dict[Hashable, YamlNode] = {}
    for item, value in zip(node.items, values, strict=True):
        if key(value) in seen:
            first = seen[key(value)].where
            problems.add(
                f"{title} has {describe(item)} twice",
                item.where,
                "values that all differ",
                f"the first is at line {first.line}, column {first.column}",
            )
        seen.setdefault(key(value), item)


def _near_value(value: Value, knob: Knob) -> str:
    """The nearest known text for a misspelt default, or what a number of another type needs."""
    if isinstance(value, str):
        options = getattr(knob, "values", None) or getattr(knob, "choices", None) or ()
        texts = [option for option in options if isinstance(option, str)]
        others = [str(option) for option in options if not isinstance(option, str)]
        return "leave the quotes out" if value in others else nearest(value, texts)
    if isinstance(value, float) and isinstance(knob, IntegerRange):
        return "write a bound as a float (1.0) for a range of floats"
    if isinstance(value, FrozenMap) and isinstance(knob, Assignment):
        missing = [item for item in knob.items if item not in value]
        return f"missing: {', '.join(missing)}" if missing else ""
    return ""
