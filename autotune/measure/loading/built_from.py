"""What a build tool reads: the sources in its folder, and in those that its build file names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from autotune.provenance.code.files import is_folder

_C = (".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".cu", ".cuh", ".cl", ".s", ".S", ".asm")
_OTHERS = (".f", ".f90", ".rs", ".go", ".zig", ".jl", ".java", ".py", ".mk")
SOURCES = frozenset((*_C, *_OTHERS))
"""Endings of the files that programs are built from."""
_CONVENTIONS = {
    "Makefile": "",
    "makefile": "",
    "GNUmakefile": "",
    "CMakeLists.txt": "",
    "meson.build": "",
    "build.zig": "",
    "Cargo.toml": "src",
    "pom.xml": "src",
    "build.gradle": "src",
    "build.gradle.kts": "src",
    "go.mod": ".",
}
"""Build files, and the folder that each stands for without naming it."""
_WORD = re.compile(r"[\w.+@%*/-]+")
_RULE = re.compile(r"([^\s:=#][^:=#]*):(?![:=])")
"""The targets of a rule in a makefile; ``:=`` does not make a rule."""
_OPTION = re.compile(r"-(?:I|L|iquote|isystem)")
"""Options that are followed by the name of a folder without a space between."""
_WRITTEN = frozenset(("build", "_build", "builddir", "target", "out", "obj", "dist", "node_modules"))
"""Names of folders that a build writes."""
_MARKS = ("CMakeCache.txt", "CACHEDIR.TAG", "pyvenv.cfg")
"""Files that show that a tool wrote the folder they are in."""
_MOST_FILES = 2000
"""The most files that are taken from one folder: one with more holds more than the source of what is
tuned."""
_MOST_BYTES = 1 << 20
"""How much of a build file is read: a longer one was written by a program."""


def is_build_file(file: Path) -> bool:
    """Whether make, CMake, Cargo or the like reads it."""
    return file.name in _CONVENTIONS


def built_from(folder: Path) -> list[Path]:
    """What a build tool may read in the folder, and in those that the build files in it name.

    So ``src`` is found in ``cc -Isrc src/main.c``, ``$(wildcard src/*.c)``, ``add_subdirectory(src)`` and by
    a ``Cargo.toml``. Folders that a build writes are left out: each configuration has other files there.
    """
    files = sorted(path for path in folder.iterdir() if path.is_file())
    beside = [file for file in files if _is_source(file)]
    named = [below for file in files if is_build_file(file) for below in _named_by(file)]
    return list(dict.fromkeys([*beside, *(file for below in named for file in _all_in(below))]))


def made_by(lines: Iterable[str]) -> set[str]:
    """The names of files that a makefile has rules to make."""
    rules = filter(None, map(_RULE.match, lines))
    return {Path(target).name for rule in rules for target in rule[1].split()}


def _is_source(file: Path) -> bool:
    return file.suffix in SOURCES or is_build_file(file)


def _named_by(file: Path) -> list[Path]:
    """The folders that a build file names, each by itself or by a file in it; not its own, nor one above."""
    here = file.parent
    try:
        with file.open("rb") as opened:
            text = opened.read(_MOST_BYTES).decode(errors="replace")
    except OSError:
        return []  # the build will say what is wrong with it
    words = (_OPTION.sub("", word, count=1) for word in _WORD.findall(text))
    found = [_nearest_folder(here, word) for word in dict.fromkeys(words) if not word.startswith("/")]
    above = {here.resolve(), *here.resolve().parents}
    named = [folder for folder in found if folder.name not in _WRITTEN and folder.resolve() not in above]
    convention = _CONVENTIONS[file.name]
    return [*([here / convention] if convention else []), *dict.fromkeys(named)]


def _nearest_folder(here: Path, word: str) -> Path:
    """``src`` for ``src/*.c``: the longest beginning of a path that is a folder."""
    for part in word.split("/"):
        if not is_folder(here / part):
            break
        here /= part
    return here


def _all_in(top: Path) -> Iterator[Path]:
    """The sources below a folder, except in folders that are hidden or were written by a build."""
    return islice(_walk(top), _MOST_FILES)


def _walk(top: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(top):
        if any(mark in files for mark in _MARKS):
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _WRITTEN)
        yield from (one for name in sorted(files) if _is_source(one := Path(folder, name)))
