"""Which configuration a call takes: the recipe of its case, else of the nearest, else the default. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from autotune.errors import InputError, Problem
from autotune.hook.recipes.case import Case, Plain
from autotune.hook.recipes.recipe import Recipe

if TYPE_CHECKING:
    from autotune.space.configuration import Configuration
    from autotune.space.space import Space

MOST_WINNERS = 3
"""How many winners of other cases a search tries first; each costs a trial."""

_SAMPLES = 256
"""How many configurations are drawn if the constraints forbid the default; the nearest to it is used."""


@dataclass(frozen=True)
class Choice:
    """A configuration and how it was chosen."""

    configuration: Mapping[str, Plain]
    how: Literal["exact", "nearest", "default"]
    recipe: Recipe | None = None
    distance: float = 0.0
    """To the recipe's case; 1 is a factor of two in one number of the key."""
    stale: bool = False
    """Whether the kernel's source has changed since the recipe was made, or a package that compiles it."""


def choose(
    case: Case,
    recipes: Iterable[Recipe],
    space: Space,
    source: str = "",
    versions: Mapping[str, str] | None = None,
) -> Choice:
    """The choice for ``case`` among recipes of its kernel and device; of equally near ones, the first.

    A recipe whose configuration the space does not allow for this case is passed over. ``source`` is the hash
    of the kernel's source now, and ``versions`` are those of the packages that compile it. Raises
    :class:`InputError` if the space allows nothing at all.
    """
    found = nearest_recipe(case, recipes, lambda recipe: recipe.configuration in space)
    if found is None:
        return Choice(_plain(default(space)), "default")
    distance, recipe = found
    edited = bool(source and recipe.source and recipe.source != source)
    stale = edited or has_other_versions(recipe, versions or {})
    configuration = _plain(space.configuration(recipe.configuration))
    return Choice(configuration, "nearest" if distance else "exact", recipe, distance, stale)


def has_other_versions(recipe: Recipe, versions: Mapping[str, str]) -> bool:
    """Whether one of these packages had another version when the recipe was made, as far as it says."""
    return any(recipe.versions.get(name, now) != now for name, now in versions.items())


def nearest_recipe(
    case: Case, recipes: Iterable[Recipe], allowed: Callable[[Recipe], bool]
) -> tuple[float, Recipe] | None:
    """The allowed recipe nearest to ``case``, with its distance; of equally near ones, the first."""
    return next(((distance, recipe) for distance, recipe in _near(case, recipes) if allowed(recipe)), None)


def nearest_winners(case: Case, recipes: Iterable[Recipe], device: str) -> list[Mapping[str, Plain]]:
    """The configurations that won in the nearest cases, those of ``device`` first; a few, each once."""
    near = sorted(_near(case, recipes), key=lambda found: found[1].device != device)
    winners: list[Mapping[str, Plain]] = []
    for _, recipe in near:
        if recipe.configuration not in winners:
            winners.append(recipe.configuration)
    return winners[:MOST_WINNERS]


def _near(case: Case, recipes: Iterable[Recipe]) -> list[tuple[float, Recipe]]:
    """The recipes that can be compared with ``case``, with their distances, the nearest first."""
    apart = [(case.distance(recipe.case), recipe) for recipe in recipes]
    return sorted(((d, recipe) for d, recipe in apart if d is not None), key=lambda found: found[0])


def default(space: Space) -> Configuration:
    """The space's default; if the constraints forbid it, the nearest to it of a random sample."""
    import numpy as np  # seldom needed: most answers are a recipe

    chosen = space.configuration({})
    if space.violated(chosen):
        if not space.feasible:
            raise InputError(_nothing_feasible(space))
        samples = space.sample(np.random.default_rng(0), _SAMPLES)
        chosen = min(samples, key=lambda one: space.distance(one, chosen))
    return chosen


def _nothing_feasible(space: Space) -> Problem:
    rules = ", ".join(repr(rule.text) for rule in space.constraints)
    facts = {name: value for rule in space.constraints for name, value in rule.facts.items()}
    said = [f"{name.removeprefix('workload.')} is {value!r}" for name, value in facts.items()]
    where = f" where {' and '.join(said)}" if said else ""
    return Problem(f"no configuration satisfies {rules}{where}", hint="loosen the constraints")


def _plain(configuration: Mapping[str, object]) -> dict[str, Plain]:
    found: dict[str, Plain] = {}
    for name, value in configuration.items():
        if not isinstance(value, (bool, int, float, str)):
            raise InputError(f"the knob {name!r} of a kernel is a number, a flag or a text, not {value!r}")
        found[name] = value
    return found
