"""What :func:`autotune.kernel` was told of a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from autotune.hook.tuning import Budget


@dataclass(frozen=True)
class Settings:
    """What was said in the decorator."""

    name: str
    key: tuple[str, ...]
    recipes: Path
    source: str
    written: tuple[str, ...]
    tolerance: float | None
    asks: bool
    """Whether a call may tune where somebody asks for it."""
    budget: Budget
