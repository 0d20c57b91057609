"""Commands that are Python programs: their script, and what is said where another Python runs them."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path

_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '(\w+)")


def say_another_python(program: str, last_words: str, path: str | None = None) -> str:
    """`` (it was run by /usr/bin/python3; ...)`` to put after its last words; empty for any other failure.

    It happens where autotune was started by its path while its environment is not active. ``path`` is the
    ``PATH`` of the program, if that differs from ours.
    """
    lacking = _NO_MODULE.search(last_words)
    if lacking is None or not Path(program).name.startswith("python"):
        return ""
    ran = shutil.which(program, path=path) or program
    if Path(ran).parent == Path(sys.executable).parent or PathFinder.find_spec(lacking[1]) is None:
        return ""
    return (
        f" (it was run by {ran}; {sys.executable}, which runs autotune, has that module:"
        " activate its environment, or write its path in the command)"
    )


def script_of(command: Sequence[str]) -> str:
    """``bench.py`` of a command ``python bench.py ...``; empty for any other."""
    is_script = len(command) > 1 and command[1].endswith(".py")
    return command[1] if is_script and Path(command[0]).name.startswith("python") else ""


def own_python(program: str) -> str:
    """What to do where ``python`` is not on the ``PATH``; empty for any other program."""
    if not re.fullmatch(r"python[\d.]*", program):
        return ""
    return f"activate the environment that autotune runs in, or write {sys.executable}"
