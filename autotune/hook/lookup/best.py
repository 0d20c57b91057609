"""What a lookup answers: a configuration, and how it was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from autotune.hook.recipes.recipe import Recipe

How = Literal["exact", "nearest", "device", "default"]


@dataclass(frozen=True)
class Best:
    """The best configuration that is known, and how it was chosen."""

    name: str
    workload: Mapping[str, Any]
    """As it was asked for; facts that were left out are filled in."""
    configuration: Mapping[str, Any]
    """A value for each knob; not to be changed: ``dict(best.configuration)`` is a copy."""
    how: str
    """How it was chosen, in words."""
    kind: How
    """``exact``: won for this workload on this device; ``nearest``: for the nearest workload known on this
    device; ``device``: on another device; ``default``: the default of the space."""
    stale: str = ""
    """What has changed since it was measured (the objective's source, a driver, a compiler, a package);
    empty if nothing has."""
    distance: float = 0.0
    """To the workload that it was measured for; 1 is a factor of two in one number."""
    recipe: Recipe | None = None
    """The recipe that it is from; ``None`` for the default."""

    def __str__(self) -> str:
        said = f"{self.name}: {self.how}"
        return f"{said}; STALE: {self.stale}" if self.stale else said
