"""Recipes of kernels in a small JSON file that people read, review and commit.

::

    {"autotune_recipes": 1,
     "recipes": [{"kernel": "add", "device": "NVIDIA H200", "key": {"n": 4096}, "types": {"x": "float16"},
                  "configuration": {"BLOCK": 1024, "num_warps": 4}, "time": 1.2e-05, ...}]}
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotune.errors import InputError, Location, Problem
from autotune.hook.case import Case, Plain

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT = 1


@dataclass(frozen=True)
class Recipe:
    """The configuration that won for a case on a device, and how that is known."""

    kernel: str
    device: str
    """As the driver calls it."""
    case: Case
    configuration: Mapping[str, Plain]
    time: float | None = None
    """Seconds a call."""
    speedup: Mapping[str, float] | None = None
    """Over the default: ``estimate``, ``low``, ``high``."""
    trials: int = 0
    source: str = ""
    """Hash of the kernel's source."""
    versions: Mapping[str, str] = field(default_factory=dict)
    study: str = ""
    """``name#id`` in the store that has its trials."""
    tuned: str = ""
    """The day."""

    def replaces(self, other: Recipe) -> bool:
        """Whether it is for the same kernel, device and case."""
        return (self.kernel, self.device, self.case) == (other.kernel, other.device, other.case)

    def to_document(self) -> dict[str, Any]:
        document = asdict(self)
        case = document.pop("case")
        head = {"kernel": self.kernel, "device": self.device, "key": case["values"], "types": case["types"]}
        return {**head, **{name: value for name, value in document.items() if value not in (None, "", {})}}


def read_recipes(file: Path) -> tuple[Recipe, ...]:
    """Those of a file; none where there is no file. Raises :class:`InputError` where it cannot be read."""
    try:
        text = file.read_text()
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(Problem(f"the recipes cannot be read: {error}", Location(str(file)))) from None
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        where = Location(str(file), error.lineno, error.colno)
        raise InputError(Problem(f"this is not JSON: {error.msg}", where)) from None
    if not isinstance(document, dict) or document.get("autotune_recipes") != FORMAT:
        expected = f'{{"autotune_recipes": {FORMAT}, "recipes": [...]}}'
        raise InputError(Problem("this is no file of recipes", Location(str(file)), expected))
    return tuple(_recipe(one, number, file) for number, one in enumerate(document.get("recipes", ())))


def write_recipe(file: Path, recipe: Recipe) -> None:
    """Put ``recipe`` into the file, in the place of an earlier one for the same case.

    Raises :class:`InputError` where the file cannot be written or is none of recipes.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with _locked(file.parent):
            kept = [one for one in read_recipes(file) if not recipe.replaces(one)]
            ordered = sorted([*kept, recipe], key=_order)
            _write(file, ordered)
    except OSError as error:
        hint = "name another file: @autotune.kernel(..., recipes=FILE)"
        raise InputError(Problem(f"cannot write {file}: {error.strerror or error}", hint=hint)) from error


def _order(recipe: Recipe) -> tuple[str, ...]:
    return (
        recipe.kernel,
        recipe.device,
        *(f"{v:020}" if isinstance(v, int) else str(v) for v in recipe.case.values.values()),
    )


def _write(file: Path, recipes: Sequence[Recipe]) -> None:
    document = {"autotune_recipes": FORMAT, "recipes": [recipe.to_document() for recipe in recipes]}
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(document, indent=1) + "\n")
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Alone with the recipes of a folder; the folder itself is the lock, so that nothing is left behind."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _recipe(document: Any, number: int, file: Path) -> Recipe:
    try:
        own = dict(document)
        case = Case(dict(own.pop("key")), dict(own.pop("types", {})))
        known = {name: own[name] for name in Recipe.__dataclass_fields__ if name in own}
        recipe = Recipe(case=case, **known)
    except (TypeError, ValueError, KeyError) as error:
        expected = '"kernel", "device", "key", "types" and "configuration"'
        message = f"recipe {number} cannot be read: {error}"
        raise InputError(Problem(message, Location(str(file)), expected)) from None
    if not isinstance(recipe.configuration, dict):
        raise InputError(Problem(f"recipe {number} has no configuration", Location(str(file))))
    return recipe
