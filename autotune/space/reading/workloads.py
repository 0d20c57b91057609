"""The section ``workloads`` of a space file: the problems that one search finds configurations for.

As a list, each item is one workload: ``[{m: 960, n: 960}, {m: 64, n: 4096, held_out: true}]``. As a mapping
of lists it is their product: ``{m: [64, 960], n: [64, 960]}``. What all share stands in ``workload``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from autotune.errors import InputError, Location, Problem, nearest, shorten
from autotune.space.configuration import FrozenMap, Value
from autotune.space.reading.converters import boolean, fact, items, mapping
from autotune.space.reading.fields import Problems, as_map, wrong
from autotune.space.reading.yaml_nodes import YamlEntry, YamlList, YamlMap, YamlNode, value_at
from autotune.space.spec import say_workload

HELD_OUT = "held_out"
"""In a workload of a list: it is not searched, only measured, to check what is chosen for it."""

MOST = 200
"""Workloads of one file: each is a search of its own."""

FORM = "a list of workloads, or a mapping of names to lists of values"


@dataclass(frozen=True)
class Member:
    """One of several workloads: what it does not share with the others."""

    values: FrozenMap
    held_out: bool = False
    where: Location | None = None


def read_workloads(
    node: YamlNode | None, shared: Mapping[str, Value], problems: Problems
) -> tuple[Member, ...]:
    """The workloads that a file lists; none where it does not list any, or where all are wrong.

    ``shared`` is what ``workload`` says: no name may stand in both.
    """
    match node:
        case None:
            return ()
        case YamlList(items=listed) if listed:
            members = _listed(node, problems)
        case YamlMap(entries=entries) if entries:
            members = _product(node, problems)
        case _:
            problems.keep(wrong(node, "workloads", FORM))
            return ()
    if len(members) > MOST:
        problems.add(f"{len(members):,} workloads", node.where, f"at most {MOST}")
        return ()
    _refuse_shared(members, shared, problems)
    _refuse_twice(members, problems)
    if members and all(member.held_out for member in members):
        hint = f"leave {HELD_OUT} out of those that are to be searched"
        problems.add("every workload is held out", node.where, "at least one that is searched", hint)
    return members


def _listed(node: YamlList, problems: Problems) -> tuple[Member, ...]:
    """Those that are right. All have the names that the first has."""
    members: list[Member] = []
    names: Sequence[str] | None = None
    for place, item in enumerate(node.items):
        title = f"workloads[{place}]"
        own = Problems()
        entries = own.attempt(lambda: as_map(item, title, "a mapping of names to values"))  # noqa: B023
        if entries is not None and not entries.entries:
            own.add(f"{title} is empty", item.where, "a mapping of names to values")
        elif entries is not None:
            held_out, facts = _without_mark(entries, title, own)
            if names is None:
                names = [entry.key for entry in facts]
            _compare_names(facts, names, title, own)
            values = mapping(facts, title, fact, own)
            if not own.found:  # else what depends on it would be complained about as well
                members.append(Member(FrozenMap(values), held_out, item.where))
        problems.found.extend(own.found)
    return tuple(members)


def _without_mark(entries: YamlMap, title: str, problems: Problems) -> tuple[bool, YamlMap]:
    mark = value_at(entries, HELD_OUT)
    if mark is None:
        return False, entries
    held_out = problems.attempt(lambda: boolean(mark, f"{title}.{HELD_OUT}"))
    return bool(held_out), YamlMap(tuple(e for e in entries if e.key != HELD_OUT), entries.where)


def _compare_names(entries: YamlMap, names: Sequence[str], title: str, problems: Problems) -> None:
    own = [entry.key for entry in entries]
    expected = f"the names of the first workload: {', '.join(names)}"
    strange = [entry for entry in entries if entry.key not in names]
    missing = [name for name in names if name not in own]
    for entry in strange:
        hint = nearest(entry.key, missing)
        problems.add(
            f"{title} has {shorten(entry.key)!r}, which the first has not", entry.where, expected, hint
        )
    lacking = [name for name in missing if not any(nearest(entry.key, [name]) for entry in strange)]
    if lacking:
        problems.add(f"{title} lacks {', '.join(map(repr, lacking))}", entries.where, expected)


def _product(node: YamlMap, problems: Problems) -> tuple[Member, ...]:
    columns: dict[str, list[Value]] = {}
    for entry in node:
        found = problems.attempt(lambda: _values(entry, problems))  # noqa: B023
        if found:
            columns[entry.key] = found
    if len(columns) < len(node.entries):
        return ()  # which is reported
    count = math.prod(map(len, columns.values()))
    if count > MOST:
        sizes = " x ".join(str(len(values)) for values in columns.values())
        problems.add(f"{sizes} are {count:,} workloads", node.where, f"at most {MOST}")
        return ()
    rows = product(*columns.values())
    return tuple(Member(FrozenMap(dict(zip(columns, row, strict=True))), where=node.where) for row in rows)


def _values(entry: YamlEntry, problems: Problems) -> list[Value]:
    title = f"workloads.{shorten(entry.key)}"
    if entry.key == HELD_OUT:
        hint = "write the workloads as a list: [{m: 64, held_out: true}, ...]"
        raise InputError(Problem(f"{HELD_OUT} belongs to one workload", entry.where, FORM, hint))
    if not isinstance(entry.value, YamlList) or not entry.value.items:
        raise wrong(entry.value, title, "a list of values", "what all share stands in workload")
    return items(entry.value, title, fact, problems)


def _refuse_shared(members: Sequence[Member], shared: Mapping[str, Value], problems: Problems) -> None:
    twice = [name for name in (members[0].values if members else ()) if name in shared]
    if twice:
        names = ", ".join(map(repr, twice))
        hint = "what all share stands in workload, what differs in workloads"
        problems.add(f"{names} stands in workload too", members[0].where, hint=hint)


def _refuse_twice(members: Sequence[Member], problems: Problems) -> None:
    seen: dict[FrozenMap, int] = {}
    for place, member in enumerate(members):
        first = seen.setdefault(member.values, place)
        if first != place:
            message = f"workloads[{place}] is the same as workloads[{first}]: {say_workload(member.values)}"
            problems.add(message, member.where, hint="keep one of them")
