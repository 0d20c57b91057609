"""A recipe: the configuration that won for a case on a device, and how that is known. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from autotune.hook.recipes.case import Case


@dataclass(frozen=True)
class Metric:
    """What was measured of a recipe: a value with its interval, in a unit."""

    name: str
    value: float
    low: float | None = None
    """``None``: there is no interval."""
    high: float | None = None
    unit: str = ""
    goal: str = "minimize"


@dataclass(frozen=True)
class Speedup:
    """How many times better than the default, with its interval."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Recipe:
    """The configuration that won for a case on a device, and how that is known."""

    name: str
    """Of the study, or of the kernel."""
    device: str
    """As people call it: the GPUs, else the processor."""
    case: Case
    configuration: Mapping[str, Any]
    metric: Metric | None = None
    """Of the goal that the study was won by."""
    speedup: Speedup | None = None
    """Over the default."""
    defended: bool = False
    """Whether it was measured again, interleaved with the default, after the search."""
    is_default: bool = False
    """Whether it is the default itself: nothing was shown to be better."""
    trials: int = 0
    source: str = ""
    """Hash of the objective's own files, or of the kernel's source."""
    folder: str = ""
    """Where those files lie; in a file of recipes relative to it."""
    files: tuple[str, ...] = ()
    """The objective's own files, relative to the folder."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of the driver, the compilers and the packages that it may depend on."""
    machine: str = ""
    """Key of the machine, finer than the device: the same processor with more cores is another one."""
    study: str = ""
    """``name#id`` in the store that has its trials."""
    tuned: str = ""
    """The day, as ``2026-11-21``."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """What the machine did while it was measured, as :data:`autotune.session.reproduction.causes.SHARES` has
    it; empty where that is not known."""

    def replaces(self, other: Recipe) -> bool:
        """Whether it is for the same thing, device and case; a flag that is true is none that is 1."""
        alike = (self.name, self.device, self.case) == (other.name, other.device, other.case)
        return alike and self.case.distance(other.case) == 0.0

    @property
    def defence(self) -> tuple[bool, float, str]:
        """How well it is defended, the better the higher.

        One that was measured again beside the default comes before one that was not; then the one whose
        speed-up is higher at the lower end of its interval; then the newer one.
        """
        low = self.speedup.low if self.speedup is not None else 0.0
        return self.defended, low, self.tuned


def best_defended(recipes: Sequence[Recipe]) -> list[Recipe]:
    """One recipe for each thing, device and case: the best defended, of equal ones the first."""
    kept: list[Recipe] = []
    for recipe in recipes:
        place = next((place for place, other in enumerate(kept) if recipe.replaces(other)), None)
        if place is None:
            kept.append(recipe)
        elif recipe.defence > kept[place].defence:
            kept[place] = recipe
    return kept


@dataclass(frozen=True)
class KnownSpace:
    """The space that recipes of one name were searched in."""

    document: Mapping[str, Any]
    """Of :meth:`autotune.Space.to_document`."""
    file: str = ""
    """The space file; in a file of recipes relative to it."""


@dataclass(frozen=True)
class Known:
    """Recipes from one place or several, and the spaces of their names."""

    recipes: tuple[Recipe, ...] = ()
    spaces: Mapping[str, KnownSpace] = field(default_factory=dict)

    def and_then(self, other: Known) -> Known:
        """These, and behind them what ``other`` has; a space that both have is the one of these."""
        return Known((*self.recipes, *other.recipes), {**other.spaces, **self.spaces})

    def of(self, name: str) -> Known:
        """What is known under one name."""
        spaces = {name: self.spaces[name]} if name in self.spaces else {}
        return Known(tuple(recipe for recipe in self.recipes if recipe.name == name), spaces)
