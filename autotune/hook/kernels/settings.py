"""The arguments of :func:`autotune.kernel`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autotune.hook.tuning import Budget


@dataclass(frozen=True)
class Settings:
    """The arguments of the decorator, and what is only known once it is applied to its function."""

    name: str
    key: tuple[str, ...]
    written: tuple[str, ...]
    tolerance: float | None
    asks: bool
    """Whether a call may tune its case when :func:`autotune.tuning` asks: ``tune="ask"``."""
    budget: Budget
    recipes: Path = Path()
    """The file of recipes."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """The defaults of those parameters in the key that have one."""
