"""Spaces by hand, random small ones of every kind of knob and rule, and what brute force finds in them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from hypothesis import strategies as st

from autotune.errors import InputError
from autotune.space.configuration import Configuration, FrozenMap, Value
from autotune.space.feasible_set.feasible import FeasibleSet
from autotune.space.knobs import (
    Assignment,
    Choice,
    Flag,
    FloatRange,
    IntegerRange,
    OrderedValues,
    Permutation,
)
from autotune.space.knobs.knob import Knob
from autotune.space.language.binding import bind_rule
from autotune.space.language.rule import Rule
from autotune.space.space import Space

MIXED = Space(
    [
        FloatRange("momentum", 0, 0.99, when="optimizer == 'sgd' and decay"),
        OrderedValues("tile", (1, 2, 4, 8), default=2),
        IntegerRange("depth", 1, 8, scale="log2", when="tile > 1"),
        Choice("optimizer", ("sgd", "adam", "lion")),
        Flag("decay", when="depth >= 2"),
        Permutation("order", ("i", "j", "k")),
        Assignment("place", ("embed", "head"), ("cpu", "gpu")),
        FloatRange("lr", 1e-5, 1, scale="log", default=1e-3),
    ],
    constraints=["tile * depth <= 16", "lr * tile < 2", "place['embed'] != 'gpu' or order[0] != 'k'"],
)
DISCRETE = Space(
    [
        OrderedValues("a", (1, 2, 3, 4, 6)),
        IntegerRange("b", 1, 6),
        Choice("c", ("x", "y", "z")),
        Flag("d"),
    ],
    constraints=["a * b % 2 == 0", "c != 'y' or a > 2", "not d or b <= 4"],
)
CONDITIONAL = Space(
    [
        Choice("kind", ("plain", "tiled")),
        OrderedValues("tile", (1, 2, 4), when="kind == 'tiled'"),
        Flag("unroll", when="tile > 1"),
    ],
    constraints=["not unroll or tile == 4"],
)
SEEDS = st.integers(0, 2**32)


def listed(space: Space) -> list[Configuration]:
    """Every feasible configuration, by brute force."""
    names = [knob.name for knob in space.knobs]
    indices = [product(*(range(len(cell.values)) for cell in knob.cells)) for knob in space.knobs]
    values = [[knob.join(i) for i in every] for knob, every in zip(space.knobs, indices, strict=True)]
    found: dict[Configuration, None] = {}
    for chosen in product(*values):
        complete = dict(zip(names, chosen, strict=True))
        kept = {name: complete[name] for name in space.active(complete)}
        if not space.violated(kept):
            found[Configuration(kept)] = None
    return list(found)


@dataclass(frozen=True)
class SmallSpace:
    knobs: tuple[Knob, ...]
    constraints: tuple[Rule, ...]

    def __repr__(self) -> str:
        texts = [f"{k!r} when {k.when}" for k in self.knobs] + [str(rule) for rule in self.constraints]
        return "SmallSpace(\n  " + "\n  ".join(texts) + ")"


def key(values: Mapping[str, Value]) -> str:
    """One text for a configuration, whatever the order of its names."""
    return FrozenMap(values).hash


def printed_under_hash_seeds(program: str) -> set[str]:
    """What processes print that have other hashes of texts, and so other orders of sets."""
    return {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }


def feasible(knobs: list[Knob], *constraints: str, **options: object) -> FeasibleSet:
    rules = [bind_rule(text, knobs=knobs) for text in constraints]
    return FeasibleSet(knobs, rules, **options)  # type: ignore[arg-type]


def when(knob: Knob, text: str, *known: Knob) -> Knob:
    knob.__dict__["when"] = bind_rule(text, knobs=known).as_condition()
    return knob


def brute_force(space: SmallSpace) -> list[dict[str, Value]]:
    """Every feasible configuration, by trying all."""
    return [
        values
        for values in _assigned(space.knobs, {})
        if all(rule.holds(values) for rule in space.constraints)
    ]


def _assigned(knobs: Sequence[Knob], values: dict[str, Value]) -> Iterator[dict[str, Value]]:
    if not knobs:
        yield values
        return
    knob, rest = knobs[0], knobs[1:]
    if knob.when is not None and not knob.when.holds(values):
        yield from _assigned(rest, values)
        return
    for indices in product(*(range(len(cell.values)) for cell in knob.cells)):
        if not knob.distinct or len(set(indices)) == len(indices):
            yield from _assigned(rest, {**values, knob.name: knob.join(indices)})


# --- random rules ------------------------------------------------------------------------------

NUMBERS = st.one_of(
    st.integers(-4, 9),
    st.sampled_from([0.5, 1.5, -2.25, 3.0, 1e18, 2**53 + 1, 2**62, 0.1]),
)


Texts = tuple[tuple[str, tuple[str, ...]], ...]
"""Names of what is a text, each with its values."""


def _number_texts(names: tuple[str, ...], counts: tuple[str, ...]) -> st.SearchStrategy[str]:
    leaves = st.one_of(*[st.just(name) for name in names + counts], NUMBERS.map(repr))
    if names:
        leaves = st.one_of(st.sampled_from(names), leaves)

    def more(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.tuples(inner, st.sampled_from(["+", "-", "*", "+", "*", "/", "//", "%"]), inner).map(
                lambda t: f"({t[0]} {t[1]} {t[2]})"
            ),
            st.tuples(inner, st.integers(-1, 3)).map(lambda t: f"({t[0]}) ** {t[1]}"),
            st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
            st.tuples(inner, inner).map(lambda t: f"ceildiv({t[0]}, {t[1]})"),
            st.tuples(st.sampled_from(["log2", "abs", "-"]), inner).map(lambda t: f"{t[0]}({t[1]})"),
            st.tuples(inner, st.sampled_from([2, 3, 4, 5])).map(lambda t: f"({t[0]}) % {t[1]}"),
        )

    return st.recursive(leaves, more, max_leaves=5)


@cache
def rule_texts(names: tuple[str, ...], counts: tuple[str, ...], texts: Texts) -> st.SearchStrategy[str]:
    """Conditions over knobs that are numbers, over counts, and over knobs that are texts.

    Kept, since making it takes longer than drawing from it.
    """
    number = _number_texts(names, counts)
    sign = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    tests: list[st.SearchStrategy[str]] = [
        st.tuples(number, sign, number).map(lambda t: f"{t[0]} {t[1]} {t[2]}"),
        st.tuples(number, sign, number, sign, number).map(lambda t: " ".join(t)),
        st.tuples(number, st.sampled_from(["in", "not in"]), st.lists(number, min_size=1, max_size=3)).map(
            lambda t: f"{t[0]} {t[1]} [{', '.join(t[2])}]"
        ),
        st.tuples(number, st.integers(2, 5), st.integers(0, 1)).map(lambda t: f"{t[0]} % {t[1]} == {t[2]}"),
    ]
    for name, values in texts:
        equal = st.tuples(st.sampled_from(["==", "!="]), st.sampled_from(values))
        tests.append(equal.map(lambda t, name=name: f"{name} {t[0]} {t[1]!r}"))
        for other, _ in texts:
            if other != name:
                tests.append(st.sampled_from(["==", "!="]).map(lambda s, a=name, b=other: f"{a} {s} {b}"))
    return st.recursive(
        st.one_of(*tests),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
            inner.map(lambda t: f"not ({t})"),
        ),
        max_leaves=3,
    )


# --- random knobs ------------------------------------------------------------------------------

ITEMS = ["i", "j", "k", "l"]


@st.composite
def knobs(draw: st.DrawFn, name: str) -> Knob:
    kind = draw(st.sampled_from(["values", "range", "float", "choice", "flag", "order", "place", "mixed"]))
    match kind:
        case "values":
            numbers = st.integers(-3, 40)
            return OrderedValues(name, tuple(draw(st.lists(numbers, min_size=1, max_size=5, unique=True))))
        case "range":
            low = draw(st.integers(-3, 4))
            return IntegerRange(name, low, low + draw(st.integers(0, 5)), step=draw(st.integers(1, 2)))
        case "float":
            return FloatRange(name, 0.0, draw(st.sampled_from([0.3, 0.5])), step=0.1)
        case "choice":
            return Choice(name, tuple(ITEMS[: draw(st.integers(2, 3))]))
        case "flag":
            return Flag(name)
        case "order":
            return Permutation(name, tuple(ITEMS[: draw(st.integers(2, 3))]))
        case "place":
            return Assignment(name, ("a", "b", "c")[: draw(st.integers(1, 3))], ("i", "j"))
        case _:
            values = st.sampled_from([0, 1, 2, 0.5, 2.5, 7, 2**60])
            return OrderedValues(name, tuple(draw(st.lists(values, min_size=1, max_size=4, unique=True))))


def _vocabulary(known: Sequence[Knob]) -> tuple[tuple[str, ...], tuple[str, ...], Texts]:
    names: list[str] = []
    counts: list[str] = []
    texts: list[tuple[str, tuple[str, ...]]] = []
    for knob in known:
        match knob:
            case Permutation():
                texts += [(f"{knob.name}[{p}]", knob.items) for p in range(len(knob.items))]
            case Assignment():
                texts += [(f"{knob.name}[{item!r}]", knob.options) for item in knob.items]
                counts.append(f"count({knob.name}, 'i')")
            case Choice():
                texts.append((knob.name, knob.choices))
            case _:
                names.append(knob.name)
    return tuple(names), tuple(counts), tuple(texts)


@st.composite
def small_spaces(draw: st.DrawFn, most_knobs: int = 5, conditions: bool = True) -> SmallSpace:
    """Up to a few hundred configurations, with nested conditions, some of which never hold here, and up to
    three constraints."""
    made: list[Knob] = []
    for name in [f"k{n}" for n in range(draw(st.integers(1, most_knobs)))]:
        knob = draw(knobs(name))
        if conditions and made and draw(st.integers(0, 2)) == 0:
            text = draw(rule_texts(*_vocabulary(made)))
            if draw(st.integers(0, 4)) == 0:
                text = f"({text}) and elsewhere"
            when = _bound(text, made, condition=True)
            if when is not None:
                knob.__dict__["when"] = when
        made.append(knob)
    rules = []
    for _ in range(draw(st.integers(0, 3))):
        rule = _bound(draw(rule_texts(*_vocabulary(made))), made)
        if rule is not None:
            rules.append(rule)
    return SmallSpace(tuple(made), tuple(rules))


def _bound(text: str, known: Sequence[Knob], condition: bool = False) -> Rule | None:
    """The rule, or ``None`` where the language refuses it (always false, say)."""
    try:
        rule = Rule.parse(text).as_condition() if condition else Rule.parse(text)
        return bind_rule(rule, knobs=known, workload={"elsewhere": False})
    except InputError:
        return None
