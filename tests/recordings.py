"""Recorded spaces, as Kernel Tuner's cache files have them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any


def record(
    file: Path, knobs: Mapping[str, Sequence[Any]], entries: Iterable[Mapping[str, Any]], **head: Any
) -> Path:
    """Write ``file``. An entry has its knobs, its ``time`` in ms or a word for its failure, and more."""
    cache = {str(number): dict(entry) for number, entry in enumerate(entries)}
    params = {name: list(values) for name, values in knobs.items()}
    file.write_text(
        json.dumps({**head, "tune_params_keys": [*params], "tune_params": params, "cache": cache})
    )
    return file
