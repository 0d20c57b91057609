"""A rule that chooses a configuration for a workload: a small decision tree, kept as JSON.

::

    rule = read_rule("rule.json")
    rule.choose({"m": 700, "n": 64, "k": 4096})

:mod:`autotune.report.rules.rule` learns rules from what a family of studies measured. Reading one runs
nothing that stands in the file.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from autotune.errors import InputError, Location, Problem, nearest
from autotune.hook.lookup.workload_facts import read_facts
from autotune.likeness import distance
from autotune.space.configuration import FrozenMap, Value, freeze, plain
from autotune.space.from_document import space_from_document
from autotune.space.spec import say_workload

FORMAT = 1
"""The version of the JSON form: ``{"autotune_rule": 1, ...}``."""


@dataclass(frozen=True)
class Threshold:
    """``m * n <= 4096 * k``: a product of numbers of the workload against a multiple of another."""

    product: tuple[str, ...]
    at_most: float
    over: tuple[str, ...] = ()
    """Names whose product ``at_most`` is multiplied by; empty for a plain bound."""

    def holds(self, workload: Mapping[str, Any]) -> bool:
        left = math.prod(workload[name] for name in self.product)
        return bool(left <= self.at_most * math.prod(workload[name] for name in self.over))

    def to_document(self) -> dict[str, Any]:
        over = {"over": list(self.over)} if self.over else {}
        return {"product": list(self.product), **over, "at_most": self.at_most}


@dataclass(frozen=True)
class Equals:
    """``dtype == 'float16'``."""

    name: str
    value: Value

    def holds(self, workload: Mapping[str, Any]) -> bool:
        return freeze(workload[self.name]) == self.value

    def to_document(self) -> dict[str, Any]:
        return {"name": self.name, "equals": plain(self.value)}


Condition: TypeAlias = Threshold | Equals


@dataclass(frozen=True)
class Leaf:
    """Indices into :attr:`Rule.configurations`, best first: the first that the constraints allow is taken."""

    take: tuple[int, ...]


@dataclass(frozen=True)
class Branch:
    condition: Condition
    then: Tree
    otherwise: Tree


Tree: TypeAlias = Leaf | Branch


def leaves(tree: Tree) -> Iterator[Leaf]:
    """From left to right."""
    if isinstance(tree, Leaf):
        yield tree
    else:
        yield from leaves(tree.then)
        yield from leaves(tree.otherwise)


def leaf_for(tree: Tree, workload: Mapping[str, Any]) -> Leaf:
    """The leaf that the conditions of ``tree`` lead ``workload`` to."""
    while isinstance(tree, Branch):
        tree = tree.then if tree.condition.holds(workload) else tree.otherwise
    return tree


@dataclass(frozen=True)
class Choice:
    """What a rule chose."""

    configuration: Mapping[str, Any]
    place: int
    """Its index in :attr:`Rule.configurations`."""
    fallback: bool
    """Whether the constraints forbid the configuration that the rule prefers for this workload."""
    apart: float
    """The distance to the nearest workload that was measured: 1 is a factor of two in one number, 10 or more
    means that a text or flag differs."""


@dataclass(frozen=True)
class Rule:
    """Which configuration to take for which workload."""

    study: str
    """The name of the studies that it was learned from."""
    names: tuple[str, ...]
    """The facts of a workload in which the studies differed; a rule depends on these only."""
    fixed: FrozenMap
    """The facts that all studies had in common; the rule does not apply to other values of them."""
    configurations: tuple[Mapping[str, Any], ...]
    tree: Tree
    space: Mapping[str, Any]
    """The space as :meth:`autotune.space.space.Space.to_document` describes it, with its constraints."""
    workloads: tuple[Mapping[str, Any], ...] = ()
    """The workloads that it was learned from, without the facts in ``fixed``."""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """How it is known: studies, device, day, metric, regrets."""

    def choose(self, workload: Mapping[str, Any]) -> Choice:
        """The configuration for ``workload``: the first of its leaf that the constraints allow.

        Raises :class:`InputError` where a name is missing or unknown, a value is of the wrong type, or all
        that was measured is forbidden.
        """
        workload = self._checked(read_facts(workload))
        leaf = leaf_for(self.tree, workload)
        for place in leaf.take:
            if self.allows(place, workload):
                apart = min(
                    (distance(FrozenMap(workload), FrozenMap(w)) for w in self.workloads), default=math.inf
                )
                return Choice(self.configurations[place], place, place != leaf.take[0], apart)
        raise InputError(
            Problem(
                f"no configuration of this rule is allowed for {say_workload(FrozenMap(workload))}",
                hint="search this workload: add it to the workloads of the space file",
            )
        )

    def allows(self, place: int, workload: Mapping[str, Any]) -> bool:
        """Whether the space has this configuration for ``workload``."""
        document = {**self.space, "workload": {**self.fixed, **FrozenMap(workload)}}
        try:
            return self.configurations[place] in space_from_document(document)
        except InputError:  # the workload alone makes a constraint false: nothing is allowed
            return False

    def _checked(self, workload: Mapping[str, Any]) -> dict[str, Any]:
        expected = ", ".join(self.names)
        problems = [
            Problem(f"the workload has no {name!r}", expected=expected)
            for name in self.names
            if name not in workload
        ]
        for name, value in workload.items():
            if name in self.fixed:
                if freeze(value) != self.fixed[name]:
                    message = f"this rule was learned with {name} {plain(self.fixed[name])}, not {value!r}"
                    problems.append(Problem(message))
            elif name not in self.names:
                problems.append(
                    Problem(f"this rule knows no {name!r}", None, expected, nearest(name, self.names))
                )
        bounded = _bounded(self.tree)
        for name in self.names:
            learned = [w[name] for w in self.workloads if name in w]
            is_number = name in bounded or (bool(learned) and _are_numbers(learned))
            if name in workload and is_number and not _are_numbers([workload[name]]):
                problems.append(Problem(f"{name} is {workload[name]!r}", expected="a number"))
        if problems:
            raise InputError(problems)
        return {name: workload[name] for name in self.names}

    def to_document(self) -> dict[str, Any]:
        """The JSON form, which :func:`read_rule` reads."""
        return {
            "autotune_rule": FORMAT,
            "study": self.study,
            "names": list(self.names),
            "fixed": plain(self.fixed),
            "tree": _tree_document(self.tree),
            "configurations": [dict(one) for one in self.configurations],
            "workloads": [dict(one) for one in self.workloads],
            "evidence": dict(self.evidence),
            "space": dict(self.space),
        }


def _bounded(tree: Tree) -> set[str]:
    """The names of which the thresholds of ``tree`` compare products."""
    if isinstance(tree, Leaf):
        return set()
    own = tree.condition
    names = {*own.product, *own.over} if isinstance(own, Threshold) else set()
    return names | _bounded(tree.then) | _bounded(tree.otherwise)


def _are_numbers(values: list[Any]) -> bool:
    return all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)


def _tree_document(tree: Tree) -> dict[str, Any]:
    if isinstance(tree, Leaf):
        return {"take": list(tree.take)}
    return {
        "if": tree.condition.to_document(),
        "then": _tree_document(tree.then),
        "else": _tree_document(tree.otherwise),
    }


def read_rule(file: str | Path) -> Rule:
    """The rule in a JSON file. Raises :class:`InputError` if the file cannot be read or holds no rule."""
    file = Path(file)
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(Problem(f"the rule cannot be read: {error}", Location(str(file)))) from None
    except (ValueError, RecursionError) as error:  # not only JSONDecodeError: a number of 4,301 digits
        line, column = getattr(error, "lineno", 0), getattr(error, "colno", 0)
        hint = "autotune rule -o rule.json writes the form that is read"
        message = f"this is not JSON: {getattr(error, 'msg', error)}"
        raise InputError(Problem(message, Location(str(file), line, column), hint=hint)) from None
    return rule_from_document(document, str(file))


def rule_from_document(document: Any, where: str = "rule.json") -> Rule:
    """As :func:`read_rule`, for what :meth:`Rule.to_document` gave. ``where`` names it in messages."""
    if not isinstance(document, dict) or document.get("autotune_rule") != FORMAT:
        expected = f'{{"autotune_rule": {FORMAT}, ...}}'
        raise InputError(Problem("this is no rule", Location(where), expected))
    try:
        names = _texts(document["names"])
        configurations = tuple(map(_values, document["configurations"]))
        return Rule(
            study=_text(document["study"]),
            names=names,
            fixed=FrozenMap(document["fixed"]),
            configurations=configurations,
            tree=_tree(document["tree"], frozenset(names), len(configurations)),
            space=dict(document["space"]),
            workloads=tuple(map(_values, document["workloads"])),
            evidence=dict(document["evidence"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        what = f"the key {error} is missing" if isinstance(error, KeyError) else str(error)
        raise InputError(Problem(f"this rule cannot be read: {what}", Location(where))) from None


def _tree(document: Any, names: frozenset[str], configurations: int) -> Tree:
    if "take" in document:
        _require_known(document, "take")
        take = tuple(document["take"])
        if not take or any(type(place) is not int or not 0 <= place < configurations for place in take):
            raise ValueError(f"a leaf takes {list(take)} of {configurations} configurations")
        return Leaf(take)
    _require_known(document, "if", "then", "else")
    condition = _condition(document["if"])
    used = [condition.name] if isinstance(condition, Equals) else [*condition.product, *condition.over]
    strange = [name for name in used if name not in names]
    if strange:
        raise ValueError(f"a condition asks for {', '.join(strange)}, which is no name of a workload")
    then = _tree(document["then"], names, configurations)
    return Branch(condition, then, _tree(document["else"], names, configurations))


def _condition(document: Mapping[str, Any]) -> Condition:
    if "equals" in document:
        _require_known(document, "name", "equals")
        return Equals(_text(document["name"]), freeze(document["equals"]))
    _require_known(document, "product", "over", "at_most")
    bound = document["at_most"]
    number = isinstance(bound, (int, float)) and not isinstance(bound, bool)
    if not number or not abs(bound) <= sys.float_info.max:
        raise ValueError(f"at_most is {bound!r}, not a finite number")
    return Threshold(_texts(document["product"]), bound, _texts(document.get("over", [])))


def _require_known(document: Mapping[str, Any], *names: str) -> None:
    """Raise for a key that no tree has: with ``ovr`` left out, a condition would be another one."""
    if strange := [name for name in document if name not in names]:
        raise ValueError(f"the tree has the key {strange[0]!r}, where it can have {', '.join(names)}")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} stands where a text is expected")
    return value


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise TypeError(f"{values!r} stands where a list of texts is expected")
    return tuple(map(_text, values))


def _values(document: Any) -> dict[str, Any]:
    """Values of knobs or facts by their names."""
    FrozenMap(document)  # raises for null, which is neither
    return dict(document)
