"""The workload that a caller asks for, with the facts that were left out, or what is wrong with it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autotune.errors import InputError, Problem, nearest
from autotune.hook.recipes.case import Case
from autotune.hook.recipes.recipe import Known, Recipe


@dataclass(frozen=True)
class Asked:
    """A case, and the names of those facts of it that the caller left out."""

    case: Case
    assumed: tuple[str, ...] = ()


def complete(name: str, workload: Mapping[str, Any], known: Known) -> Asked:
    """The case of ``workload``. A fact that is left out is filled in from the recipes, or from the space.

    Raises :class:`InputError` for an unknown fact, and for one that is left out although the recipes have
    several values of it, since none of them can be assumed.
    """
    own = dict(workload)
    types = _types(name, known)
    if any(recipe.case.values.keys() == own.keys() for recipe in known.recipes):
        return Asked(Case(own, types))
    defaults = known.spaces[name].document.get("workload", {}) if name in known.spaces else {}
    facts = dict.fromkeys(fact for recipe in known.recipes for fact in recipe.case.values)
    facts = facts or dict.fromkeys(defaults)
    problems = [
        Problem(
            f"the workload of {name} has no {fact!r}", None, ", ".join(facts) or "none", nearest(fact, facts)
        )
        for fact in own
        if fact not in facts
    ]
    assumed = [fact for fact in facts if fact not in own]
    for fact in assumed:
        values = _values(fact, known.recipes) or ([defaults[fact]] if fact in defaults else [])
        if len(values) == 1:
            own[fact] = values[0]
        else:
            said = " or ".join(map(json.dumps, values[:8])) + (" ..." if len(values) > 8 else "")
            problems.append(Problem(f"the workload of {name} does not say {fact!r}", None, said))
    if problems:
        raise InputError(problems)
    return Asked(Case({fact: own[fact] for fact in facts}, types), tuple(assumed))


def _values(fact: str, recipes: tuple[Recipe, ...]) -> list[Any]:
    """The different values of a fact."""
    found: list[Any] = []
    for recipe in recipes:
        value = recipe.case.values.get(fact)
        if value is not None and value not in found:
            found.append(value)
    return found


def _types(name: str, known: Known) -> Mapping[str, str]:
    """The types of a kernel's tensors. Raises :class:`InputError` if its recipes differ in them."""
    types = [recipe.case.types for recipe in known.recipes]
    if any(one != types[0] for one in types):
        hint = "ask the kernel itself: KERNEL.choice(...) with the arguments of a launch"
        raise InputError(Problem(f"the recipes of {name} are for tensors of several types", hint=hint))
    return types[0] if types else {}
