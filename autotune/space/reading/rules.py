"""The rules of a space file, and the space they make with the knobs.

Where a rule mentions a knob or fact that could not be read, only its unknown names are reported. Its other
problems can be found once that knob or fact is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from autotune.errors import nearest
from autotune.space.configuration import Value
from autotune.space.knobs.knob import Knob
from autotune.space.language.binding import bind_rule
from autotune.space.language.parser import problem
from autotune.space.language.rule import Rule
from autotune.space.language.syntax import ROOTS, name_of, walk
from autotune.space.reading.converters import items, text
from autotune.space.reading.fields import Problems, wrong
from autotune.space.reading.knobs import KnobSection
from autotune.space.reading.yaml_nodes import YamlList, YamlNode, YamlScalar
from autotune.space.space import Space

MOST_RULES = 1_000
"""Each rule is checked against every knob: this bounds the time that reading takes."""


@dataclass(frozen=True)
class Facts:
    """The workload as far as it could be read."""

    values: Mapping[str, Value]
    broken: frozenset[str] = frozenset()
    """Facts that are there but wrong."""
    complete: bool = True
    """Whether all of its names are known."""


def read_space(
    section: KnobSection,
    constraints: YamlNode | None,
    workload: Facts,
    device: Mapping[str, Value],
    problems: Problems,
) -> Space | None:
    """The space, or ``None`` where something is wrong with it, which is reported."""
    before = len(problems.found)
    reader = _RuleReader(section, workload, device, problems)
    conditions = {name: reader.rule(node, condition=True) for name, node in section.conditions.items()}
    rules = [reader.rule(node) for node in _listed(constraints, problems)]
    knobs = _sound(section, conditions)
    whole = not section.broken and len(knobs) == len(section.knobs) and len(problems.found) == before
    kept = [rule for rule in rules if rule is not None] if whole else []
    space = problems.attempt(lambda: Space(knobs, kept, workload.values, device)) if knobs else None
    return space if whole else None


def _listed(node: YamlNode | None, problems: Problems) -> Sequence[YamlScalar]:
    """The scalars of ``constraints``."""
    if node is None or (isinstance(node, YamlScalar) and node.value is None):
        return []
    if not isinstance(node, YamlList):
        hint = "begin each rule with '- ' on a line of its own"
        problems.keep(wrong(node, "constraints", "a list of rules", hint))
        return []
    if len(node.items) > MOST_RULES:
        problems.add(f"there are {len(node.items):,} constraints", node.where, f"at most {MOST_RULES:,}")
        return []
    return items(node, "constraints", _rule_text, problems)


def _rule_text(node: YamlNode, title: str) -> YamlScalar:
    if not isinstance(node, YamlScalar) or not isinstance(node.value, str):
        hint = "quote it to make it a text" if not isinstance(node, YamlList) else ""
        raise wrong(node, title, 'a rule in a text, such as "tile <= 64"', hint)
    text(node, title)
    return node


@dataclass(frozen=True)
class _RuleReader:
    """Parses and binds rules against what could be read."""

    section: KnobSection
    workload: Facts
    device: Mapping[str, Value]
    problems: Problems

    def rule(self, node: YamlScalar, *, condition: bool = False) -> Rule | None:
        return self.problems.attempt(lambda: self.bound(node, condition))

    def bound(self, node: YamlScalar, condition: bool) -> Rule | None:
        """The bound rule; ``None`` where it mentions what is broken."""
        rule = Rule.parse(str(node.value).rstrip("\n"), node.origin)
        if condition:
            rule = rule.as_condition()
        if any(self.broken(name) for name in rule.knobs):  # not bound yet: facts are among them
            self.report_unknown(rule)
            return None
        return bind_rule(rule, knobs=self.section.knobs, workload=self.workload.values, device=self.device)

    def broken(self, name: str) -> bool:
        """Whether a name stands for something that could not be read."""
        if name in self.section.broken:
            return True
        if name in self.section.entries:
            return False
        root, _, path = name.partition(".")
        if root == "device":
            return False
        fact = (path if root == "workload" else name).partition(".")[0]
        if fact in self.workload.values:
            return False
        could_be_a_knob = root != "workload" and not self.section.entries  # none was read: reported already
        return fact in self.workload.broken or not self.workload.complete or could_be_a_knob

    def report_unknown(self, rule: Rule) -> None:
        known = [*self.section.entries, *self.workload.values, *self.workload.broken]
        for node in walk(rule.tree):
            name = name_of(node)
            plain_name = name and name.partition(".")[0] not in ROOTS
            if plain_name and name not in known and not self.broken(name):
                message = f"there is no knob or workload fact {name!r}"
                found = problem(rule.text, rule.where, node.column, message, hint=nearest(name, known))
                self.problems.keep(found)


def _sound(section: KnobSection, conditions: Mapping[str, Rule | None]) -> list[Knob]:
    """The knobs whose conditions, and those of the knobs mentioned there, could all be read."""
    knobs: dict[str, Knob] = {}
    for knob in section.knobs:
        rule = conditions.get(knob.name)
        if knob.name not in conditions:
            knobs[knob.name] = knob
        elif rule is not None:
            knobs[knob.name] = replace(knob, when=rule)
    while True:
        lost = [k.name for k in knobs.values() if k.when is not None and not k.when.knobs <= knobs.keys()]
        if not lost:
            return [*knobs.values()]
        for name in lost:
            del knobs[name]
