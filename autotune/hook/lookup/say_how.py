"""How a configuration was chosen, in words. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from autotune.hook.lookup.requested_workload import Asked
from autotune.hook.recipes.recipe import Recipe, Speedup

if TYPE_CHECKING:
    from autotune.hook.lookup.best import How
    from autotune.hook.recipes.this_device import Here


_READABLE = 1e6
"""Ratios from here on are written in scientific notation."""


def say_recipe(
    kind: How, recipe: Recipe, distance: float, asked: Asked, here: Here, passed_over: Sequence[str] = ()
) -> str:
    """The sentence for a recipe: how sure it is, and for which workload, where and by which study it won.

    ``passed_over`` has a text for each nearer recipe that failed for the workload that was asked for.
    """
    device = f"this device ({recipe.device})"
    if kind == "device":
        device = f"another device, {recipe.device} (this is {here})"
    elif recipe.machine and recipe.machine != here.machine:
        device = f"this device ({recipe.device}) in another machine"
    workload = "this workload" if not distance else f"the nearest workload, {_say_difference(recipe, asked)}"
    said = [f"{say_won(recipe)}, for {workload}, on {device}"]
    if distance:
        said.append(f"distance {distance:.3g}, where 1 is a factor of two in one number")
    said.append(_say_assumed(asked))
    said.append(", ".join(part for part in (_study(recipe), recipe.tuned) if part))
    said.append(_say_passed_over(passed_over))
    return "; ".join(part for part in said if part)


def say_won(recipe: Recipe) -> str:
    """How sure it is that the recipe's configuration is the best."""
    trials = "1 trial" if recipe.trials == 1 else f"{recipe.trials} trials" if recipe.trials else "the trials"
    if recipe.is_default and recipe.defended:
        return f"the default: none of {trials} was shown to be better"
    if recipe.is_default:
        return f"the default, the best of {trials}, not defended"
    if not recipe.defended:
        return f"the best of {trials}, not defended (not measured again beside the default)"
    if recipe.speedup is None:
        return f"the winner of {trials}, with no ratio to a default"
    return f"{say_speedup(recipe.speedup)} over the default"


def _study(recipe: Recipe) -> str:
    return f"study {recipe.study}" if recipe.study else ""


def say_speedup(speedup: Speedup) -> str:
    """``1.42x [1.4, 1.44]``, ``1,460x [1,400, 1,520]``."""
    high = _say_ratio(speedup.high) if math.isfinite(speedup.high) else "..."
    return f"{_say_ratio(speedup.estimate)}x [{_say_ratio(speedup.low)}, {high}]"


def _say_ratio(ratio: float) -> str:
    """Three digits; without an exponent below :data:`_READABLE`."""
    short = f"{ratio:.3g}"
    return f"{float(short):,.0f}" if "e+" in short and ratio < _READABLE else short


def _say_difference(recipe: Recipe, asked: Asked) -> str:
    """How the recipe's workload differs from the one that was asked for: ``m 1024 for 960``."""
    own, wanted = recipe.case.values, asked.case.values
    different = (fact for fact in own if own[fact] != wanted.get(fact))
    return ", ".join(f"{fact} {_say(own[fact])} for {_say(wanted.get(fact))}" for fact in different)


def _say_assumed(asked: Asked) -> str:
    values = ", ".join(f"{fact} {json.dumps(asked.case.values[fact])}" for fact in asked.assumed)
    return f"assumed: {values}" if values else ""


def _say_passed_over(recipes: Sequence[str]) -> str:
    return f"passed over: {', '.join(recipes)}" if recipes else ""


def say_default(name: str, known: int, moved: bool, asked: Asked, passed_over: Sequence[str]) -> str:
    """The sentence for the default. ``known`` is the number of recipes; ``moved`` means that the constraints
    forbid the default itself, and the nearest configuration is used."""
    what = (
        "the nearest to the default that the constraints allow here" if moved else "the default of the space"
    )
    if not known:
        why = f"nothing is known of {name} yet (autotune search finds out)"
    elif len(passed_over) == known:
        why = "each recipe has failed here"
    elif known == 1:
        why = "the only recipe is for no such workload, or not allowed here"
    else:
        why = f"none of {known} recipes is for such a workload, or allowed here"
    parts = (f"{what}: {why}", _say_assumed(asked), _say_passed_over(passed_over))
    return "; ".join(part for part in parts if part)


def _say(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
