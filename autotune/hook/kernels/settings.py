"""What :func:`autotune.kernel` was told of a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autotune.hook.tuning import Budget


@dataclass(frozen=True)
class Settings:
    """What was said in the decorator, completed by what only the function tells."""

    name: str
    key: tuple[str, ...]
    written: tuple[str, ...]
    tolerance: float | None
    asks: bool
    """Whether a call may tune where somebody asks for it."""
    budget: Budget
    recipes: Path = Path()
    """The file of recipes."""
    source: str = ""
    """Hash of the kernel's source."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Of the parameters in the key that have one."""
