"""Which configurations a space has: those that its knobs, constraints and recorded rows allow."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from autotune.errors import InputError, Problem, nearest
from autotune.space.configuration import Configuration, FrozenMap, Value, plain
from autotune.space.facts import facts_of
from autotune.space.knobs.knob import Knob
from autotune.space.knobs.values import key
from autotune.space.language.rule import NOTHING, Rule
from autotune.space.wiring import bound_knobs, bound_rules, in_order


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Configurations:
    """What a :class:`~autotune.space.space.Space` consists of, and what it allows."""

    knobs: tuple[Knob, ...]
    """In the order given, save that a knob comes after those that its condition mentions."""
    constraints: tuple[Rule, ...]
    workload: FrozenMap
    device: FrozenMap
    rows: tuple[Configuration, ...] | None

    def __init__(
        self,
        knobs: Iterable[Knob],
        constraints: Iterable[Rule | str] = (),
        workload: Mapping[str, Value] = NOTHING,
        device: Mapping[str, Value] = NOTHING,
        rows: Iterable[Mapping[str, Value]] | None = None,
    ) -> None:
        facts = facts_of("workload", workload), facts_of("device", device)
        wired = bound_knobs(knobs, *facts)
        fields = {
            "knobs": in_order(wired),
            "constraints": bound_rules(constraints, wired, *facts),
            "workload": facts[0],
            "device": facts[1],
            "rows": None,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        if rows is not None:
            object.__setattr__(self, "rows", self._recorded(rows))

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    # -- knobs

    @cached_property
    def _by_name(self) -> dict[str, Knob]:
        return {knob.name: knob for knob in self.knobs}

    @cached_property
    def _unconditional(self) -> bool:
        return all(knob.when is None for knob in self.knobs)

    def knob(self, name: str) -> Knob:
        """The knob called ``name``; :class:`InputError` with the nearest name where there is none."""
        if name not in self._by_name:
            raise InputError(self._unknown(name))
        return self._by_name[name]

    def _unknown(self, name: str) -> Problem:
        expected = f"one of {', '.join(self._by_name)}"
        return Problem(
            f"there is no knob {name!r}", expected=expected, hint=nearest(str(name), self._by_name)
        )

    def canonical(self, name: str, value: object) -> Value:
        """The canonical form of a value of the knob ``name``.

        Raises :class:`InputError` for an unknown knob and for a value that it cannot have.
        """
        knob = self.knob(name)
        try:
            return knob.canonical(value)
        except ValueError:
            raise InputError(_impossible(knob, value)) from None

    @cached_property
    def continuous(self) -> tuple[str, ...]:
        """The names of the continuous knobs."""
        return tuple(knob.name for knob in self.knobs if knob.cardinality is None)

    @property
    def hanging(self) -> tuple[str, ...]:
        """The names of the other knobs whose existence depends on a continuous one."""
        return tuple(knob.name for knob in self._riding if knob.cardinality is not None)

    @cached_property
    def _riding(self) -> tuple[Knob, ...]:
        """The knobs that the feasible set leaves out: continuous ones, and those that exist by one."""
        names: set[str] = set()
        for knob in self.knobs:
            if knob.cardinality is None or (knob.when is not None and knob.when.knobs & names):
                names.add(knob.name)
        return tuple(knob for knob in self.knobs if knob.name in names)

    # -- configurations

    def active(self, values: Mapping[str, Value]) -> tuple[str, ...]:
        """The knobs that exist given ``values``; those of knobs that do not exist are not looked at."""
        if self._unconditional:
            return tuple(self._by_name)
        seen: dict[str, Value] = {}
        names = []
        for knob in self.knobs:
            if knob.when is None or knob.when.holds(seen):
                names.append(knob.name)
                if knob.name in values:
                    seen[knob.name] = values[knob.name]
        return tuple(names)

    def configuration(self, values: Mapping[str, object]) -> Configuration:
        """The configuration with these values, each in its canonical form; the rest are defaults.

        Raises :class:`InputError` for an unknown knob, one that does not exist given the others, and
        an impossible value. Constraints are not looked at: ask :meth:`violated`.
        """
        problems = [self._unknown(name) for name in values if name not in self._by_name]
        chosen: dict[str, Value] = {}
        for knob in self.knobs:
            if knob.when is not None and not knob.when.holds(chosen):
                if knob.name in values and not problems:
                    problems.append(_does_not_exist(knob))
            elif knob.name in values:
                try:
                    chosen[knob.name] = knob.canonical(values[knob.name])
                except ValueError:
                    problems.append(_impossible(knob, values[knob.name]))
                    chosen[knob.name] = knob.default
            else:
                chosen[knob.name] = knob.default
        if problems:
            raise InputError(problems)
        return Configuration(chosen)

    def feasible_default(self) -> Configuration | None:
        """The configuration that a user has today; ``None`` if constraints forbid it."""
        try:
            return self.default()
        except InputError:
            return None

    def default(self) -> Configuration:
        """The configuration that a user has today.

        Raises :class:`InputError`, with each constraint that it violates, if there are any.
        """
        if problems := self.refusals(self._default, "the default configuration"):
            raise InputError(problems)
        return self._default

    def refusals(self, configuration: Mapping[str, Value], title: str) -> list[Problem]:
        """Why a configuration, which messages call ``title``, is not feasible; empty where it is."""
        problems = [
            Problem(
                f"{title} violates the constraint {rule.text!r}", rule.where, hint=_with(rule, configuration)
            )
            for rule in self.violated(configuration)
        ]
        if not problems and not self._exists(configuration):
            problems = [Problem(f"{title} is none of those that were recorded")]
        return problems

    @cached_property
    def _default(self) -> Configuration:
        return self.configuration({})

    def violated(self, configuration: Mapping[str, Value]) -> tuple[Rule, ...]:
        """The constraints that ``configuration`` does not satisfy."""
        return tuple(rule for rule in self.constraints if not rule.holds(configuration))

    def __contains__(self, values: object) -> bool:
        """Whether ``values`` is a feasible configuration, complete and with nothing besides."""
        if not isinstance(values, Mapping):
            return False
        try:
            configuration = self.configuration(values)
        except InputError:
            return False
        return len(configuration) == len(values) and self.allows(configuration)

    def allows(self, values: Mapping[str, Value]) -> bool:
        """Whether a configuration satisfies the constraints and, in a recorded space, is among its rows."""
        return all(rule.holds(values) for rule in self.constraints) and self._exists(values)

    def _exists(self, values: Mapping[str, Value]) -> bool:
        return self.rows is None or FrozenMap(values).hash in self._row_hashes

    @cached_property
    def _row_hashes(self) -> frozenset[str]:
        return frozenset(row.hash for row in self.rows or ())

    def _ordered(self, values: Mapping[str, Value]) -> Configuration:
        """``values``, known to be valid, in the order of the knobs."""
        return Configuration({knob.name: values[knob.name] for knob in self.knobs if knob.name in values})

    # -- recorded rows

    def _recorded(self, rows: Iterable[Mapping[str, Value]]) -> tuple[Configuration, ...]:
        if self._riding:
            names = ", ".join(knob.name for knob in self._riding)
            raise InputError(f"a recorded space has no continuous knobs, but this one has {names}")
        known: dict[tuple[str, Hashable], Value] = {}
        found: dict[object, Configuration] = {}  # not by hash, which is slow for so many
        problems: list[Problem] = []
        for number, row in enumerate(rows, 1):
            try:
                one = self._row(row, known)
                found.setdefault((tuple(one), tuple(map(key, one.values()))), one)
            except InputError as error:
                problems += [replace(p, message=f"row {number}: {p.message}") for p in error.problems]
                if len(problems) >= 10:
                    break
        if problems or not found:
            raise InputError(problems or [Problem("a recorded space needs at least one row")])
        return tuple(found.values())

    def _row(self, row: Mapping[str, Value], known: dict[tuple[str, Hashable], Value]) -> Configuration:
        """A row as a configuration. ``known`` keeps canonical values: a recording repeats few of them."""
        chosen: dict[str, Value] = {}
        for knob in self.knobs:
            if knob.name not in row:
                continue
            try:
                chosen[knob.name] = _canonical(knob, row[knob.name], known)
            except ValueError:
                raise InputError(_impossible(knob, row[knob.name])) from None
        if len(chosen) != len(row) or self.active(chosen) != tuple(chosen):
            whole = self.configuration(row)  # raises if a value has no place in it
            missing = [name for name in whole if name not in row]
            raise InputError(f"there is no value for {', '.join(missing)}")
        return Configuration(chosen)


def _canonical(knob: Knob, value: Value, known: dict[tuple[str, Hashable], Value]) -> Value:
    """The canonical form of ``value``, kept in ``known``."""
    if isinstance(value, (list, dict)):  # no key
        return knob.canonical(value)
    name = knob.name, key(value)
    if name not in known:
        known[name] = knob.canonical(value)
    return known[name]


def _with(rule: Rule, values: Mapping[str, Value]) -> str:
    """``with a = 4, b = True``: the knobs of ``rule`` that exist, in the order of the space."""
    names = [name for name in values if name in rule.knobs]
    return "with " + ", ".join(f"{name} = {plain(values[name])!r}" for name in names)


def _does_not_exist(knob: Knob) -> Problem:
    assert knob.when is not None
    return Problem(
        f"{knob.name!r} has a value, but does not exist in this configuration",
        expected=f"it exists only when {knob.when.text}",
        hint="leave it out",
    )


def _impossible(knob: Knob, value: object) -> Problem:
    texts = [v for v in knob.cells[0].values[:1000] if isinstance(v, str)] if knob.cells else []
    near = nearest(value, texts) if isinstance(value, str) else ""
    return Problem(f"{knob.name} cannot be {value!r}", expected=knob.expected, hint=near)
