"""Asking for recipes anew, and files of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import autotune
from autotune.hook import recipe as module
from autotune.hook.recipes.file import write_known
from autotune.hook.recipes.stored import known_in
from autotune.store.store import Store

ELSEWHERE = "another processor"


def ask(workload: dict[str, Any] | None = None, name: str = "gemm", **more: Any) -> autotune.hook.recipe.Best:
    module.forget()
    return autotune.recipe(name, workload, **more)


def filed(store: Store, file: Path) -> Path:
    write_known(file, known_in(store.url.removeprefix("sqlite:///")))
    return file
