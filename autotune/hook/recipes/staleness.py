"""What has changed since a recipe was made: the objective's source, the driver, compilers, packages.

The packages are those that the objective's own files import, found by parsing them. Nothing is run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from autotune.hook.recipes.recipe import Recipe
from autotune.hook.recipes.this_device import Here
from autotune.provenance.code.imports import parsed
from autotune.provenance.document import part_of

DRIVER = "GPU driver"

_NAMES = {
    "PIL": "pillow",
    "cv2": "opencv-python",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "skopt": "scikit-optimize",
    "yaml": "pyyaml",
}
"""Packages whose import name is not the name they are installed by."""

_COMPILERS = {".c": "gcc", ".cc": "g++", ".cpp": "g++", ".cu": "nvcc"}
"""Which compiler a source is for."""


def versions_of(
    environment: Mapping[str, Any], sources: Mapping[str, bytes], command: str, on_gpu: bool
) -> dict[str, str]:
    """The versions, in an environment's document of a store, of what a recipe depends on.

    ``sources`` are the objective's files by name. ``command`` is the objective as the space file writes it; a
    compiler that it names counts.
    """
    packages, compilers = part_of(environment, "packages"), part_of(environment, "compilers")
    found = {name: packages[name] for name in _imported(sources) if name in packages}
    words = set(re.findall(r"[\w+-]+", command))
    wanted = {_COMPILERS.get(Path(name).suffix) for name in sources} | words
    found |= {name: version for name, version in compilers.items() if name in wanted}
    driver = part_of(environment, "gpus").get("driver")
    return {**found, DRIVER: str(driver)} if driver and on_gpu else found


def _imported(sources: Mapping[str, bytes]) -> set[str]:
    """The packages that the Python files among ``sources`` import, except autotune, by installed name."""
    modules: set[str] = set()
    for name, content in sources.items():
        if name.endswith(".py"):
            for node in ast.walk(parsed(content)):
                if isinstance(node, ast.Import):
                    modules.update(alias.name.partition(".")[0] for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    modules.add(node.module.partition(".")[0])
    modules.discard("autotune")
    return {re.sub(r"[-_.]+", "-", _NAMES.get(module, module)).lower() for module in modules}


def changes(recipe: Recipe, here: Here) -> list[str]:
    """What has changed since, a text for each change; empty if nothing has changed or it cannot be known."""
    said = ["the objective's source changed"] if source_changed(recipe) else []
    if recipe.device in here.names:
        now_installed = _installed(tuple(recipe.versions), here.driver)
        for name, before in sorted(recipe.versions.items()):
            after = now_installed.get(name, "")
            if after != before and before:
                said.append(_say(name, before, after))
    return said


def source_changed(recipe: Recipe) -> bool:
    """Whether the objective's files have changed; false if they are no longer in their folder."""
    if not (recipe.source and recipe.folder and recipe.files):
        return False
    from autotune.provenance.code.frozen import hash_of

    now = hash_of(Path(recipe.folder), recipe.files)
    return now is not None and now != recipe.source


def _installed(names: Iterable[str], driver: str) -> dict[str, str]:
    from autotune.provenance.software import COMPILERS

    compilers = tuple(name for name in names if name in COMPILERS)
    found = dict(_compilers(compilers)) if compilers else {}
    if any(name != DRIVER and name not in COMPILERS for name in names):
        from autotune.provenance.software import read_packages

        found |= {name: v for name, v in read_packages().items() if name not in COMPILERS}
    return {**found, DRIVER: driver}


@cache
def _compilers(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The compilers' versions. Cached, since each compiler has to be started."""
    from autotune.provenance.software import VersionQueries

    return tuple(VersionQueries.start(names).result().items())


def _say(name: str, before: str, after: str) -> str:
    said = before if before.startswith(name) else f"{name} {before}"  # compilers say their own names
    return f"{said} -> {after or 'not there'}"
