"""Files of recipes. People review and commit them, so the same recipes always give the same text."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from autotune.errors import InputError, Location, OutputError, Problem
from autotune.hook.recipes.document import FORMAT, MARK, read_document, to_document
from autotune.hook.recipes.recipe import Known, KnownSpace, Recipe
from autotune.paths import written_whole
from autotune.ready import ready_root

MAX_BYTES = 64 << 20
"""A larger file is refused: it can be no file of recipes."""


def read_known(file: Path) -> Known:
    """The recipes of a file and their spaces, with absolute paths; none if there is no such file.

    Raises :class:`InputError`, with line and column, if the file cannot be read or is no file of recipes.
    """
    try:
        if file.stat().st_size > MAX_BYTES:
            raise InputError(Problem("this file is too large to be one of recipes", Location(str(file))))
        text = file.read_text("utf-8")
    except FileNotFoundError:
        return Known()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(Problem(f"the recipes cannot be read: {why}", Location(str(file)))) from None
    known = read_document(text, str(file))
    folder = file.absolute().parent
    return Known(
        tuple(replace(r, folder=_absolute(folder, r.folder)) for r in known.recipes),
        {name: replace(s, file=_absolute(folder, s.file)) for name, s in known.spaces.items()},
    )


def write_recipe(file: Path, recipe: Recipe) -> None:
    """Put ``recipe`` into the file, in the place of an earlier one for the same case.

    Raises :class:`OutputError` if the file cannot be written, and :class:`InputError` if it exists and is no
    file of recipes.
    """
    write_known(file, Known((recipe,)), hint="name another file: @autotune.kernel(..., recipes=FILE)")


def write_known(file: Path, new: Known, hint: str = "name another file") -> Known:
    """Put recipes and spaces into the file; its recipes of other names, devices and cases stay.

    ``hint`` ends the message if the file cannot be written. Returns the new contents of the file. Raises as
    :func:`write_recipe`.
    """
    try:
        folder = Path(os.path.realpath(file)).parent  # one lock, whatever links lead to the file
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            there = read_known(file)
            kept = [one for one in there.recipes if not any(recipe.replaces(one) for recipe in new.recipes)]
            recipes = tuple(sorted([*kept, *new.recipes], key=place_in_file))
            result = Known(recipes, {**there.spaces, **new.spaces})
            _write(file, result)
    except OSError as error:
        raise OutputError.of(file, error, hint) from error
    return result


def place_in_file(recipe: Recipe) -> tuple[Any, ...]:
    """The sort key of a recipe in its file."""
    values = recipe.case.values
    said = [f"{v:020}" if type(v) is int else json.dumps(v) for v in values.values()]
    return recipe.name, recipe.device, said, sorted(recipe.case.types.items())


# -- text ----------------------------------------------------------------------------------------------


def render(known: Known, folder: Path) -> str:
    """The text of a file of recipes in ``folder``: a line for each field and each knob of a recipe."""
    documents = [to_document(replace(r, folder=_relative(folder, r.folder))) for r in known.recipes]
    parts = [f' "{MARK}": {FORMAT}', f' "recipes": {_listed([_recipe(one) for one in documents])}']
    if known.spaces:
        spaces = [_space(name, known.spaces[name], folder) for name in sorted(known.spaces)]
        parts.append(' "spaces": {\n' + ",\n".join(spaces) + "\n }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _listed(items: Sequence[str]) -> str:
    return "[\n" + ",\n".join(items) + "\n ]" if items else "[]"


def _recipe(document: dict[str, Any]) -> str:
    lines = []
    for name, value in document.items():
        text = _members(value, 4) if name in ("configuration", "versions") and value else _inline(value)
        lines.append(f"   {_inline(name)}: {text}")
    return "  {\n" + ",\n".join(lines) + "\n  }"


def _space(name: str, space: KnownSpace, folder: Path) -> str:
    lines = [f'   "file": {_inline(_relative(folder, space.file))}'] if space.file else []
    inner = []
    for part, value in space.document.items():
        text = _members(value, 5) if isinstance(value, dict) and value else _inline(value)
        if isinstance(value, (list, tuple)) and value:
            text = "[\n" + ",\n".join(f"     {_inline(one)}" for one in value) + "\n    ]"
        inner.append(f"    {_inline(part)}: {text}")
    lines.append('   "space": {\n' + ",\n".join(inner) + "\n   }")
    return f"  {_inline(name)}: {{\n" + ",\n".join(lines) + "\n  }"


def _members(value: dict[str, Any], indent: int) -> str:
    space = " " * indent
    lines = [f"{space}{_inline(name)}: {_inline(inner)}" for name, inner in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{space[1:]}}}"


def _inline(value: Any) -> str:
    # What JSON does not know is a frozen map.
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=dict)
    # A path whose bytes are not UTF-8 has lone surrogates; JSON can escape each, and reads it back.
    return _UNPAIRED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


_UNPAIRED = re.compile("[\ud800-\udfff]")


def _write(file: Path, known: Known) -> None:
    with written_whole(file) as draft:
        draft.write_text(render(known, file.absolute().parent), "utf-8")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the recipes of a folder. The folder itself is the lock, so that no lock file is left behind."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


# -- paths ---------------------------------------------------------------------------------------------


READY = "autotune:"
"""The prefix of paths to what comes with autotune, which is installed in another folder on every machine."""


def _relative(folder: Path, path: str) -> str:
    """The path relative to the folder of the recipe file, so that it is right in another checkout too."""
    if not os.path.isabs(path):  # noqa: PTH117
        return path
    for part in ("objectives", "searchspaces"):
        if Path(path).is_relative_to(ready_root() / part):
            return READY + Path(path).relative_to(ready_root()).as_posix()
    return os.path.relpath(path, folder)


def _absolute(folder: Path, path: str) -> str:
    if path.startswith(READY):
        return str(ready_root() / path.removeprefix(READY))
    return os.path.normpath(folder / path) if path else ""
