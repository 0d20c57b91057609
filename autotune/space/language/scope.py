"""What a rule may speak of: knobs, their items, and the facts of workload and device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from autotune.errors import Location, Problem, listed, nearest, shorten
from autotune.space.configuration import FrozenMap, Value, plain
from autotune.space.knobs import Assignment, Permutation
from autotune.space.knobs.knob import Knob
from autotune.space.language import compute
from autotune.space.language.parser import problem
from autotune.space.language.rule_types import Type, possible_values, type_of, type_of_knob, type_of_values
from autotune.space.language.syntax import ROOTS, Item, Literal, Name, Node, render


class ReportedError(Exception):
    """The problem is noted; the operand that has it is skipped."""


@dataclass
class Scope:
    """Looks names up, and collects the problems of one rule and the facts that it uses."""

    text: str
    where: Location | None
    knobs: Mapping[str, Knob]
    roots: Mapping[str, Mapping[str, Value]]
    facts: dict[str, Value] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def fail(self, node: Node, message: str, expected: str = "", hint: str = "") -> ReportedError:
        """Note a problem with ``node``, and return the exception for the caller to raise."""
        self.problems += problem(self.text, self.where, node.column, message, expected, hint).problems
        return ReportedError()

    # Each of these returns the bound node and its type.

    def name(self, node: Name) -> tuple[Node, Type]:
        knob = self.knobs.get(node.name)
        if knob is not None:
            return node, type_of_knob(knob)
        value = self.fact(node, node.name)
        return Literal(value), type_of(value)

    def item(self, node: Item) -> tuple[Node, Type]:
        knob = self.knobs.get(node.knob)
        if isinstance(knob, Permutation):
            size = len(knob.items)
            if not isinstance(node.key, int) or not -size <= node.key < size:
                message = f"{node.knob!r} has no position {node.key!r}"
                raise self.fail(node, message, f"an integer from 0 to {size - 1}")
            return replace(node, key=node.key % size), type_of_values(knob.items)
        if isinstance(knob, Assignment):
            if node.key not in knob.items:
                message = f"{node.key!r} is no item of {node.knob!r}"
                near = nearest(str(node.key), knob.items)
                raise self.fail(node, message, f"one of {listed(knob.items)}", near)
            return node, type_of_values(knob.options)
        if knob is not None:
            raise self.fail(node, f"{node.knob!r} has no items", "a permutation or an assignment")
        return self.item_of_fact(node)

    def item_of_fact(self, node: Item) -> tuple[Node, Type]:
        value = self.fact(node, node.knob)
        keys: dict[int | str, Value] = {}
        if isinstance(value, tuple):
            keys.update(enumerate(value))
            keys.update((place - len(value), item) for place, item in enumerate(value))
        elif isinstance(value, FrozenMap):
            keys.update(value)
        else:
            raise self.fail(node, f"{node.knob!r} is {plain(value)!r}, which has no items")
        if node.key not in keys:
            message = f"{node.knob!r} has no item {node.key!r}"
            raise self.fail(node, message, f"one of {listed(map(repr, list(keys)[: len(value)]))}")
        return Literal(keys[node.key]), type_of(keys[node.key])

    # Facts.

    def fact(self, node: Node, name: str) -> Value:
        """The fact called ``workload.m``, ``device.x`` or plain ``m``."""
        root, _, path = name.partition(".")
        if root not in ROOTS:
            root, path = "workload", name
        elif not path:
            raise self.fail(node, f"{root!r} is no value by itself", f"one of its facts, as {root}.NAME")
        value = compute.lookup(self.roots[root], path)
        if value is None:
            raise self.unknown(node, name)
        self.facts[f"{root}.{path}"] = value
        return value

    def unknown(self, node: Node, name: str) -> ReportedError:
        """The error that nothing has this name, with what may have been meant."""
        root, _, path = name.partition(".")
        if (path if root in ROOTS else name) in self.roots[root if root in ROOTS else "workload"]:
            return self.fail(node, f"the fact {name!r} has a dot in its own name", hint="rename it there")
        if root in ROOTS:
            known = self.roots[root]
            expected = f"one of {listed(known)}" if known else ""
            hint = nearest(path, known) if known else _no_facts(root)
            if root == "device" and known.get("kind") == "cpu" and "gpu_name" not in known:
                hint = "no GPU was found here; autotune check --device h100 takes one that is elsewhere"
            return self.fail(node, f"the {root} has no fact {path!r}", expected, hint)
        if name in self.texts():
            hint = f"to mean the text, write '{name}' in quotes"
            return self.fail(node, f"there is no knob {name!r}", hint=hint)
        if root in self.knobs:
            hint = "only workload.NAME and device.NAME have a dot"
            return self.fail(node, f"the knob {root!r} has no parts", hint=hint)
        known_names = [*self.knobs, *self.roots["workload"]]
        near = nearest(name, known_names)
        if not near and name in self.roots["device"]:
            near = f"did you mean 'device.{name}'?"
        message = f"there is no knob or workload fact {name!r}"
        return self.fail(node, message, f"one of {listed(known_names)}", near)

    def texts(self) -> set[Value]:
        return {v for knob in self.knobs.values() for v in possible_values(knob) or () if isinstance(v, str)}

    def knob_of(self, node: Node) -> Knob | None:
        if isinstance(node, Name):
            return self.knobs.get(node.name)
        return self.knobs.get(node.knob) if isinstance(node, Item) else None

    def has_items(self, node: Node) -> bool:
        """Whether ``node`` is a whole permutation or assignment."""
        return isinstance(node, Name) and isinstance(self.knobs.get(node.name), (Permutation, Assignment))


def show(node: Node) -> str:
    """A node as the user may have written it, short."""
    if isinstance(node, Literal):
        return repr(plain(node.value))
    text = render(node)
    text = text[1:-1] if text[0] == "(" else text
    return f"'{shorten(text, 40)}'"


def _no_facts(root: str) -> str:
    return f"there are no facts of a {root}; in Python they are given as {root}={{...}}"
