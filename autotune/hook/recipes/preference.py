"""Which of several recipes of one case is taken."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.hook.recipes.recipe import Recipe
from autotune.hook.recipes.staleness import source_changed


def preference(recipe: Recipe) -> tuple[bool, bool, float, str]:
    """How good a recipe is beside others of its case, as a sort key: higher is better.

    A recipe that was measured again beside the default is above one that was not. Then one whose objective
    was not edited since is above one whose was: an edit may change the default or the knobs, so speed-ups of
    before and after cannot be compared. Then the higher lower end of the speed-up's interval counts, and then
    the later day.
    """
    low = recipe.speedup.low if recipe.speedup is not None else 0.0
    return recipe.defended, not source_changed(recipe), low, recipe.tuned


def preferred(recipes: Sequence[Recipe]) -> list[Recipe]:
    """One recipe for each name, device and case: the one that is preferred, and of equal ones the first."""
    kept: list[Recipe] = []
    for recipe in recipes:
        place = next((place for place, other in enumerate(kept) if recipe.replaces(other)), None)
        if place is None:
            kept.append(recipe)
        elif preference(recipe) > preference(kept[place]):
            kept[place] = recipe
    return kept
