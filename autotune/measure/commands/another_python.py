"""A program in Python that lacks a module, where the Python by which autotune itself runs has it."""

from __future__ import annotations

import re
import shutil
import sys
from importlib.machinery import PathFinder
from pathlib import Path

_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '(\w+)")


def say_another_python(program: str, last_words: str, path: str | None = None) -> str:
    """`` (it ran by /usr/bin/python3; /venv/bin/python, ...)`` to put behind its last words; else empty.

    So it is where autotune was started by its path, and its environment is not active. ``path`` is the
    ``PATH`` that the program has, if it is another.
    """
    lacking = _NO_MODULE.search(last_words)
    if lacking is None or not Path(program).name.startswith("python"):
        return ""
    ran = shutil.which(program, path=path) or program
    if Path(ran).parent == Path(sys.executable).parent or PathFinder.find_spec(lacking[1]) is None:
        return ""
    return (
        f" (it ran by {ran}; {sys.executable}, by which autotune runs, has that module:"
        " activate its environment, or write its path in the command)"
    )


def own_python(program: str) -> str:
    """What helps where ``python`` is no program here; empty for any other."""
    if not re.fullmatch(r"python[\d.]*", program):
        return ""
    return f"activate the environment by which autotune runs, or write {sys.executable}"
