"""A recipe: the configuration that won for a case on a device, and how that is known. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from autotune.hook.recipes.case import Case


@dataclass(frozen=True)
class Metric:
    """The measured value of a recipe's metric, with its interval, in ``unit``."""

    name: str
    value: float
    low: float | None = None
    """``None``: there is no interval."""
    high: float | None = None
    unit: str = ""
    goal: str = "minimize"

    @property
    def interval(self) -> tuple[float, float, float]:
        """Value and ends, which are the value where there is no interval."""
        low = self.value if self.low is None else self.low
        return self.value, low, self.value if self.high is None else self.high


@dataclass(frozen=True)
class Speedup:
    """How many times better than the default, with its interval."""

    estimate: float
    low: float
    high: float

    @property
    def interval(self) -> tuple[float, float, float]:
        """Estimate and ends."""
        return self.estimate, self.low, self.high


@dataclass(frozen=True)
class Recipe:
    """The configuration that won for a case on a device, and how that is known."""

    name: str
    """The name of the study, or of the kernel."""
    device: str
    """As :mod:`autotune.hook.recipes.this_device` names it: the GPUs, or the processor, or both."""
    case: Case
    configuration: Mapping[str, Any]
    metric: Metric | None = None
    """The study's first goal, by which it was chosen."""
    speedup: Speedup | None = None
    """Relative to the default."""
    defended: bool = False
    """Whether it was measured again, interleaved with the default, after the search."""
    is_default: bool = False
    """Whether it is the default itself: nothing was shown to be better."""
    trials: int = 0
    source: str = ""
    """Hash of the objective's own files, or of the kernel's source."""
    folder: str = ""
    """The folder of those files; in a file of recipes, relative to that file."""
    files: tuple[str, ...] = ()
    """The objective's own files, relative to the folder."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """The versions of the driver, the compilers and the packages that it may depend on."""
    machine: str = ""
    """The key of the machine, finer than ``device``: the same processor with more cores has another key."""
    study: str = ""
    """``name#id`` in the store that has its trials."""
    tuned: str = ""
    """The day, as ``2026-11-21``."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """The state of the machine during the measurement, by the names in
    :data:`autotune.session.reproduction.causes.SHARES`; empty if unknown."""

    @property
    def only_default_tried(self) -> bool:
        """Whether its search came to try the default alone, so that nothing is known of all others."""
        return self.is_default and not self.defended and self.trials == 1

    def replaces(self, other: Recipe) -> bool:
        """Whether ``other`` has the same name, device and case; ``True`` and ``1`` are different facts."""
        alike = (self.name, self.device, self.case) == (other.name, other.device, other.case)
        return alike and self.case.distance(other.case) == 0.0


@dataclass(frozen=True)
class KnownSpace:
    """The space that recipes of one name were searched in."""

    document: Mapping[str, Any]
    """As :meth:`autotune.Space.to_document` gives it."""
    file: str = ""
    """The space file; in a file of recipes, relative to that file."""


@dataclass(frozen=True)
class Known:
    """Recipes from one place or several, and the spaces of their names."""

    recipes: tuple[Recipe, ...] = ()
    spaces: Mapping[str, KnownSpace] = field(default_factory=dict)

    def and_then(self, other: Known) -> Known:
        """These recipes, followed by those of ``other``; of a space that both have, this one's."""
        return Known((*self.recipes, *other.recipes), {**other.spaces, **self.spaces})

    def of(self, name: str) -> Known:
        """What is known under one name."""
        spaces = {name: self.spaces[name]} if name in self.spaces else {}
        return Known(tuple(recipe for recipe in self.recipes if recipe.name == name), spaces)

    @property
    def telling(self) -> Known:
        """Without those of which only the default was tried: of such a case, the nearest one knows more."""
        return replace(self, recipes=tuple(r for r in self.recipes if not r.only_default_tried))
