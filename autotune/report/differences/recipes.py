"""The differences between the recipes of two places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autotune.hook.recipes.recipe import Recipe
from autotune.report.differences.difference import (
    Contrast,
    Differences,
    by_runs,
    in_unit_of,
    incomparable,
    pairs_of,
    say_other_units,
    scaled,
)
from autotune.report.lineage.links import recipe_label
from autotune.report.words.story import differing
from autotune.space.configuration import Configuration
from autotune.space.spec import ratio_title


def diff_recipes(one: Sequence[Recipe], other: Sequence[Recipe], names: tuple[str, str]) -> list[Differences]:
    """An entry for each recipe that differs, or that only one side has.

    Recipes of the same name, device and workload are compared. If each side has exactly one, these two are
    compared, whatever they are for. ``names`` say what to call the sides.
    """
    if len(one) == len(other) == 1:
        return [_pair(one[0], other[0])]
    return list(_matched(one, other, names))


def _matched(one: Sequence[Recipe], other: Sequence[Recipe], names: tuple[str, str]) -> Iterator[Differences]:
    for recipe in one:
        twin = next((its for its in other if recipe.replaces(its)), None)
        if twin is None:
            yield Differences("recipes", _label(recipe), "", remarks=[f"only {names[0]} has it"])
            continue
        found = _pair(recipe, twin)
        if not found.alike or any(c.answer in ("better", "worse") for c in found.contrasts):
            yield found
    for recipe in other:
        if not any(recipe.replaces(its) for its in one):
            yield Differences("recipes", "", _label(recipe), remarks=[f"only {names[1]} has it"])


def _label(recipe: Recipe) -> str:
    return f"{recipe_label(recipe)} on {recipe.device}"


def _pair(one: Recipe, other: Recipe) -> Differences:
    configurations = (Configuration(dict(recipe.configuration)) for recipe in (one, other))
    return Differences(
        kind="recipes",
        one=_label(one),
        other=_label(other),
        parts={
            "recipe": pairs_of(_of(one), _of(other)),
            "configuration": differing(*configurations),
            "made": pairs_of(_made(one), _made(other)),
            "versions": pairs_of(one.versions, other.versions),
        },
        contrasts=tuple(_contrasts(one, other)),
    )


def _of(recipe: Recipe) -> dict[str, object]:
    return {
        "name": recipe.name,
        "device": recipe.device,
        "workload": dict(recipe.case.values),
        "types": dict(recipe.case.types),
    }


def _made(recipe: Recipe) -> dict[str, object]:
    return {
        "defended": recipe.defended,
        "trials": recipe.trials,
        "source": recipe.source,
        "study": recipe.study,
        "tuned": recipe.tuned,
    }


def _contrasts(one: Recipe, other: Recipe) -> Iterator[Contrast]:
    if one.speedup is not None and other.speedup is not None:
        metric = one.metric or other.metric
        title = "gain" if metric is None else ratio_title(metric.goal, metric.unit)
        name = f"{title} over the default"
        yield by_runs(name, "", "maximize", one.speedup.interval, other.speedup.interval)
    if one.metric is None or other.metric is None:
        return
    name, unit = one.metric.name, one.metric.unit
    if name != other.metric.name:
        yield incomparable(name, unit, f"the other is of {other.metric.name}")
        return
    if one.metric.goal != other.metric.goal:
        goals = f"one is to {one.metric.goal} it, the other to {other.metric.goal} it"
        yield incomparable(name, unit, goals)
        return
    factor = in_unit_of(unit, other.metric.unit)
    if factor is None:
        yield incomparable(name, unit, say_other_units(unit, other.metric.unit))
        return
    first, second = one.metric.interval, scaled(other.metric.interval, factor)
    if one.case != other.case or one.device != other.device:
        yield incomparable(name, unit, "they are of different workloads or devices", first, second)
    else:
        yield by_runs(name, unit, one.metric.goal, first, second)
