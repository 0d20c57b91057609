"""Warnings that point at the code of the one who uses a sampler."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import optuna

import autotune

_OURS = tuple(f"{Path(str(module.__file__)).parent}/" for module in (autotune, optuna))


def warn(text: str) -> None:
    """Warn at the line that called Optuna or autotune; in a thread of ``n_jobs`` there may be none."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)
