"""Knobs and rules put together into a space: rules bound, names unique, conditions without a cycle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from autotune.errors import InputError, Problem
from autotune.space.configuration import Value
from autotune.space.knobs.knob import Knob
from autotune.space.language.binding import bind_rule
from autotune.space.language.rule import Rule
from autotune.space.language.syntax import Literal

Facts = Mapping[str, Value]


def bound_knobs(knobs: Iterable[Knob], workload: Facts, device: Facts) -> tuple[Knob, ...]:
    """The knobs with their conditions bound to each other and to the facts."""
    if isinstance(knobs, Knob):
        raise InputError(Problem("the knobs must be a list", expected=f"[{type(knobs).__name__}(...)]"))
    listed = tuple(knobs)
    _check_names(listed)
    problems: list[Problem] = []
    bound: list[Knob] = []
    for knob in listed:
        try:
            if knob.when is not None:
                rule = bind_rule(knob.when, knobs=listed, workload=workload, device=device)
                # A knob whose condition is always true has none.
                always = isinstance(rule.tree, Literal) and not rule.never
                knob = replace(knob, when=None) if always else replace(knob, when=rule)
        except InputError as error:
            problems += [replace(p, message=f"when of {knob.name!r}: {p.message}") for p in error.problems]
        bound.append(knob)
    if problems:
        raise InputError(problems)
    return tuple(bound)


def bound_rules(
    rules: Iterable[Rule | str], knobs: Sequence[Knob], workload: Facts, device: Facts
) -> tuple[Rule, ...]:
    """The constraints, bound."""
    if isinstance(rules, str):
        raise InputError(Problem("constraints must be a list of rules", expected=f"[{rules!r}]"))
    problems: list[Problem] = []
    bound: list[Rule] = []
    for rule in rules:
        if not isinstance(rule, (Rule, str)):
            problems.append(Problem(f"{rule!r} is not a constraint", expected='a text such as "tile <= 64"'))
            continue
        try:
            bound.append(bind_rule(rule, knobs=knobs, workload=workload, device=device))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return tuple(bound)


def _check_names(knobs: Sequence[Knob]) -> None:
    if not knobs:
        raise InputError("a space needs at least one knob")
    seen: set[str] = set()
    for knob in knobs:
        if not isinstance(knob, Knob):
            raise InputError(f"{knob!r} is not a knob")
        if knob.name in seen:
            raise InputError(f"two knobs are called {knob.name!r}")
        seen.add(knob.name)


def in_order(knobs: Sequence[Knob]) -> tuple[Knob, ...]:
    """The knobs in the order given, save that each comes after those its condition mentions."""
    waiting = list(knobs)
    placed: dict[str, Knob] = {}
    while waiting:
        for knob in waiting:
            if knob.when is None or knob.when.knobs <= placed.keys():
                placed[knob.name] = knob
                waiting.remove(knob)
                break
        else:
            raise InputError(_cycle({knob.name: knob for knob in waiting}))
    return tuple(placed.values())


def _cycle(knobs: Mapping[str, Knob]) -> Problem:
    """Some knobs whose conditions wait for each other in a circle."""
    path: list[str] = [next(iter(knobs))]
    while path[-1] not in path[:-1]:
        condition = knobs[path[-1]].when
        assert condition is not None  # else it would not be waiting
        path.append(min(condition.knobs & knobs.keys()))
    circle = path[path.index(path[-1]) :]
    condition = knobs[circle[0]].when
    assert condition is not None
    said = (
        f"whether {circle[0]!r} exists depends on itself"
        if len(circle) == 2
        else f"the conditions of these knobs depend on each other: {' -> '.join(circle)}"
    )
    return Problem(said, condition.where, hint="take one of them out of its 'when'")
