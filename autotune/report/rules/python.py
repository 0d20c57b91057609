"""A rule as a Python function that people read, review and copy: no imports, only ``if`` and ``return``.

A configuration that the constraints forbid for some workloads is returned under the condition under which
they allow it (:mod:`autotune.report.rules.guards`), followed by the next best configuration.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from autotune.errors import InputError, Problem
from autotune.hook.rule import Branch, Condition, Equals, Leaf, Rule, Tree
from autotune.report.rules.guards import TRUE, Surroundings, guard
from autotune.report.rules.implied import Known, question
from autotune.space.configuration import plain
from autotune.space.language.rule import python_of
from autotune.space.language.syntax import Call, Node, walk
from autotune.space.spec import say_workload

WIDTH = 100
_STEP = "    "
_USED = frozenset({"dict", "ValueError", "min", "max", "abs", "len"})
"""Names of Python's own that the text uses, so that no argument may hide them."""
_TOGETHER = "\N{NO-BREAK SPACE}"
"""Takes the place of a blank at which lines must not be broken."""


def python_text(rule: Rule) -> str:
    """The text of the module. Raises :class:`InputError` if a name or constraint has no form in Python."""
    for name in rule.names:
        if not name.isidentifier() or keyword.iskeyword(name) or name in _USED:
            hint = "write the rule as JSON: autotune rule -o rule.json"
            raise InputError(Problem(f"{name!r} cannot name an argument of a Python function", hint=hint))
    around = Surroundings(rule.space, rule.fixed, frozenset(rule.names))
    writer = _Writer(rule, [guard(around, one) for one in rule.configurations])
    return "\n".join(writer.lines()) + "\n"


class _Writer:
    def __init__(self, rule: Rule, guards: Sequence[Node]) -> None:
        self.rule = rule
        self.guards = guards
        reached = {place for chain in self._chains(rule.tree, Known()) for place, _ in chain}
        labels = (label for label in _labels() if label not in rule.names)  # a batch may be called B
        self.names = {place: next(labels) for place in range(len(guards)) if place in reached}

    def lines(self) -> Iterator[str]:
        rule = self.rule
        yield f'"""{_plainly(f"Which configuration of {rule.study} to take for a workload.")}'
        yield ""
        yield from _evidence(rule)
        yield '"""'
        for place, name in self.names.items():
            yield ""
            yield from _constant(name, rule.configurations[place])
        yield ""
        yield ""
        yield f"def choose({', '.join(rule.names)}):"
        yield f'{_STEP}"""The configuration for a workload, as a dictionary of its own."""'
        yield from self._tree(rule.tree, _STEP, Known())

    def _chains(self, tree: Tree, known: Known) -> Iterator[list[tuple[int, Node]]]:
        """The chains of all leaves."""
        if isinstance(tree, Leaf):
            yield self._chain(tree, known)
            return
        asked = question(tree.condition)
        yield from self._chains(tree.then, known.after(asked, holds=True))
        yield from self._chains(tree.otherwise, known.after(asked, holds=False))

    def _chain(self, leaf: Leaf, known: Known) -> list[tuple[int, Node]]:
        """The configurations that a leaf may return, each with its condition, up to one always allowed.

        Configurations that cannot be allowed there, by what is known from earlier conditions, are left out.
        """
        chain: list[tuple[int, Node]] = []
        for place in leaf.take:
            asked = self.guards[place]
            allowed = known.decides(asked)
            if allowed is not False:
                chain.append((place, TRUE if allowed else asked))
            if allowed:
                break
            known = known.after(asked, holds=False)
        return chain

    def _tree(self, tree: Tree, margin: str, known: Known) -> Iterator[str]:
        if isinstance(tree, Branch):
            asked = question(tree.condition)
            yield f"{margin}if {_condition(tree.condition)}:"
            yield from self._tree(tree.then, margin + _STEP, known.after(asked, holds=True))
            yield from self._tree(tree.otherwise, margin, known.after(asked, holds=False))
            return
        for place, asked in self._chain(tree, known):
            if asked == TRUE:
                yield f"{margin}return dict({self.names[place]})"
                return
            yield f"{margin}if {_python(asked)}:  # the constraints"
            yield f"{margin}{_STEP}return dict({self.names[place]})"
        named = ", ".join(f"{name} {{{name}!r}}" for name in self.rule.names)
        yield f'{margin}raise ValueError(f"no configuration that was measured is allowed for {named}")'


def _labels() -> Iterator[str]:
    """``A``, ``B`` ... ``Z``, ``A1`` ..."""
    for number in range(1000):
        for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ":
            yield f"{letter}{number or ''}"


def _constant(name: str, configuration: Mapping[str, Any]) -> Iterator[str]:
    line = f"{name} = {configuration!r}"
    if len(line) <= WIDTH:
        yield line
        return
    yield f"{name} = {{"
    yield from (f"{_STEP}{key!r}: {value!r}," for key, value in configuration.items())
    yield "}"


def _condition(condition: Condition) -> str:
    if isinstance(condition, Equals):
        return f"{condition.name} == {plain(condition.value)!r}"
    factor = [] if condition.over and condition.at_most == 1 else [repr(condition.at_most)]
    return f"{' * '.join(condition.product)} <= {' * '.join([*factor, *condition.over])}"


def _python(node: Node) -> str:
    """A guard as Python text, over the names of the workload."""
    if any(isinstance(inner, Call) and inner.function == "log2" for inner in walk(node)):
        hint = "write the rule as JSON: autotune rule -o rule.json"
        raise InputError(Problem("log2 in a constraint needs an import in Python", hint=hint))
    return ast.unparse(ast.fix_missing_locations(_Plainer().visit(python_of(node))))


class _Plainer(ast.NodeTransformer):
    """Rewrites look-ups and calls of a compiled rule as names and operators."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        assert isinstance(node.slice, ast.Constant)
        return ast.Name(str(node.slice.value), ast.Load())

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name("power"), args=[base, exponent]):
                return ast.BinOp(base, ast.Pow(), exponent)
            case ast.Call(func=ast.Name("ceildiv"), args=[one, other]):
                floor = ast.BinOp(ast.UnaryOp(ast.USub(), one), ast.FloorDiv(), other)
                return ast.UnaryOp(ast.USub(), floor)
        return node


def _evidence(rule: Rule) -> Iterator[str]:
    """How the rule is known: studies, device, day, regret, and the workloads that it is for."""
    known = rule.evidence
    studies = known.get("studies", ())
    device = known.get("device") or "an unknown device"
    word = "study" if len(studies) == 1 else "studies"
    where = f"the {word} {', '.join(studies)}, measured on {device}"
    yield from _wrapped(f"Learned on {known.get('day')} from {where}.")
    if rule.fixed:
        yield from _wrapped(f"It holds for {say_workload(rule.fixed)}.")
    yield ""
    yield f"Regret: {say_regret(known)}, geometric mean (worst)."
    yield from _regrets(known.get("regret", {}))
    if rule.names:
        yield ""
        yield "Workloads that it was learned from; it says little about others that are far from these:"
        texts = [
            ", ".join(f"{name}{_TOGETHER}{value}" for name, value in workload.items())
            for workload in rule.workloads
        ]
        yield from _wrapped("; ".join(texts), indent="  ")
    if remarks := known.get("remarks"):
        yield ""
        for remark in remarks:
            yield from _wrapped(f"Note: {remark}.")


def _wrapped(text: str, indent: str = "") -> Iterator[str]:
    """Lines for a docstring, not broken inside a name or between a fact and its value."""
    plainly = _plainly(text)
    lines = wrap(plainly, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
    return (line.replace(_TOGETHER, " ") for line in lines)


def say_regret(evidence: Mapping[str, Any]) -> str:
    """Which ratio a regret is: 1 means as good as the best that was measured, more is worse."""
    metric = evidence.get("metric", "the metric")
    if evidence.get("goal") == "maximize":
        return f"the best {metric} that was measured over that of the choice"
    return f"{metric} over the best that was measured"


def _regrets(regret: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Iterator[str]:
    for where, policies in regret.items():
        own = policies.get("rule", {})
        others = (f"{name} {_say(numbers)}" for name, numbers in policies.items() if name != "rule")
        yield f"  {where + ':':14} {_say(own)}; {', '.join(others)}"


def _say(numbers: Mapping[str, Any]) -> str:
    if numbers.get("mean") is None:
        return "nothing that works"
    failures = f", fails for {numbers['failures']}" if numbers.get("failures") else ""
    return f"{numbers['mean']:.3f} ({numbers['worst']:.3f}{failures})"


def _plainly(text: str) -> str:
    """``text`` without characters that would end or change a docstring."""
    return text.replace("\\", "/").replace('"', "'")
