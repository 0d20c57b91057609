"""The C compiler of this machine: what the variable ``CC`` says, else gcc or the system's."""

from __future__ import annotations

import os
import shlex
import shutil


class NoCompilerError(LookupError):
    """There is none, or ``CC`` names none; the message says which and what to do."""


def c_compiler() -> tuple[str, ...]:
    """The words of its command, the first a path; ``CC`` may have several (``ccache gcc``).

    Raises :class:`NoCompilerError`.
    """
    given = os.environ.get("CC", "").strip()
    if not given:
        found = shutil.which("gcc") or shutil.which("cc")
        if found is None:
            raise NoCompilerError("no C compiler on PATH: install gcc")
        return (found,)
    try:
        program, *words = shlex.split(given)
    except ValueError as error:
        raise NoCompilerError(f"the variable CC is {given!r}, which is no command: {error}") from error
    found = shutil.which(program)
    if found is None:
        # Another compiler in its place would be measured under this one's name.
        raise NoCompilerError(
            f"the variable CC is {given!r}, but there is no program {program!r}: correct or unset it"
        )
    return (found, *words)
