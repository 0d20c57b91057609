"""The key under which the result of a C compiler is kept in :mod:`autotune.measure.kernels.compile_cache`.

The file is preprocessed first (some ten milliseconds), so that headers, macros and include paths are in the
key as the compiler sees them, and included files need not be looked for. The rest of the key says which
compiler it is: its own description of itself and of the processor that ``-march=native`` means here, and the
programs that it calls.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from autotune.measure.kernels.compile_cache import cache_key
from autotune.provenance.code.files import is_file

_PROGRAMS = ("cc1", "as", "collect2", "ld", "lto1")
"""The programs that a compiler's driver calls."""

_VARIABLES = ("LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "SOURCE_DATE_EPOCH")
"""Variables that change what a linker or an assembler does."""


_LEAD_TO_FILES = ("@", "-L", "-T", "-fprofile-use", "-fbranch-prob", "-fauto-profile", "-fplugin", "-specs")
"""Flags that make a compiler or a linker read files that the preprocessor does not: archives, profiles,
flags."""

_PREPROCESSED = (".c", ".h")


def compilation_key(compiler: Sequence[str], flags: Sequence[str], source: Path) -> str | None:
    """The key of the command ``compiler flags source``; ``None``: it has none, and must always be run.

    That is so where preprocessing fails (compiling will say why), and where compiler, assembler or linker
    read other files, whose contents may change.
    """
    if any(_leads_to_a_file(flag) for flag in flags):
        return None
    # Lines and paths are in the object only where it has debug information, and then they count.
    plain = [] if any(flag.startswith("-g") for flag in flags) else ["-P"]
    wanted = [flag for flag in flags if not flag.startswith("-l")]
    done = subprocess.run(
        [*compiler, *wanted, "-E", *plain, str(source)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode or b".incbin" in done.stdout or b".include" in done.stdout:
        return None
    return cache_key(
        kind="c",
        text=done.stdout,
        flags="\0".join(flags),
        compiler=compiler_identity(tuple(compiler), tuple(f for f in flags if f.startswith("-m"))),
        variables="\0".join(f"{name}={os.environ.get(name, '')}" for name in _VARIABLES),
    )


def _leads_to_a_file(flag: str) -> bool:
    if flag.startswith(_LEAD_TO_FILES):
        return True
    named = [Path(part) for part in re.split("[=,]", flag) if part]
    return any(path.suffix not in _PREPROCESSED and is_file(path) for path in named)


@cache
def compiler_identity(compiler: tuple[str, ...], machine_flags: tuple[str, ...] = ()) -> str:
    """What the compiler says about itself and its target, and the files that it consists of.

    Its command may have several words: ``ccache gcc-13``, ``gcc -m32``.
    """
    account = _output([*compiler, *machine_flags, "-E", "-v", "-"])
    words = [shutil.which(word) or word for word in compiler]
    called = [_output([*compiler, f"-print-prog-name={name}"]).strip() for name in _PROGRAMS]
    return "\0".join([account, *map(_file_identity, [*words, *called])])


def _file_identity(program: str) -> str:
    """Path, size and time of the file behind a name, which change when it is replaced."""
    try:
        path = Path(program).resolve(strict=True)
        found = path.stat()
    except OSError:
        return program  # a word that is no file: clang has no cc1
    return f"{path} {found.st_size} {found.st_mtime_ns}"


def _output(command: Sequence[str]) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr
