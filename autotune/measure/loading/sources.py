"""Which files an objective is made of, so that its source can be frozen. Found without running it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from autotune.errors import InputError, Location, Problem, nearest, shorten
from autotune.measure.loading.built_from import built_from, is_build_file, made_by
from autotune.measure.loading.declared_sources import Declared, declared_sources
from autotune.measure.loading.included_sources import with_included
from autotune.measure.loading.target import split_target, target_file
from autotune.provenance.code.files import is_file, is_folder
from autotune.provenance.code.imports import local_imports
from autotune.space.spec import (
    CallableObjective,
    CommandObjective,
    ObjectiveSpec,
    PythonObjective,
    ReplayObjective,
)

_GOES_TO = frozenset(("-C", "--directory", "--chdir", "cd", "pushd", "-S"))
"""Words before the folder in which make, ninja, env, a shell or CMake works."""
_WRITES_TO = re.compile(
    r">|>>|>\||>&|&>|&>>|tee|-o"
    r"|--?(?:\w+[-_])?(?:out|output|log)[-_]?(?:file|path|json|csv)?|--(?:save|dump|results?|report)(?:[-_]\w+)?"
)
"""Words before a file that a command writes."""
_SHOWS = frozenset(("cat", "head", "tail"))
"""Programs that only print a file."""


def source_files(objective: ObjectiveSpec) -> tuple[Path, ...]:
    """The objective's own files, without repeats: those it is written in, and those that these bring in."""
    match objective:
        case PythonObjective():
            found = with_included(_of_python(objective))
        case CommandObjective():
            found = _of_command(objective)
        case ReplayObjective():
            found = [objective.file]
        case CallableObjective():
            found = [] if objective.file is None else [objective.file]
    return tuple(dict.fromkeys(path.resolve() for path in found))


def python_file(objective: PythonObjective) -> Path | None:
    """The file that the target is defined in; ``None`` where there is none."""
    try:
        return target_file(objective)  # the very file that will be loaded
    except InputError:
        return None  # loading the objective will say what is wrong with it


def unread_sources(objective: ObjectiveSpec) -> str:
    """A warning where only running its class would tell all of its ``sources``; else empty."""
    name, _, declared = _declaration(objective)
    if not (unread := declared.unread):
        return ""
    return (
        f"some of the files that {name} names by `sources = {shorten(unread)}` cannot be read from its text:"
        " an edit of those goes unnoticed, and results from before it count. Name each file as a text"
    )


def require_sources(objective: ObjectiveSpec) -> None:
    """Raises :class:`InputError` where its class names a source that is certainly not there.

    The file that was meant would not be frozen, and results from before an edit of it would count.
    """
    name, file, declared = _declaration(objective)
    there = () if declared.unread else declared.files
    missing = [one for one in there if not (is_file(one) or is_folder(one))]
    if missing:
        raise InputError([_missing_source(name, one, Location(str(file))) for one in missing])


def _declaration(objective: ObjectiveSpec) -> tuple[str, Path | None, Declared]:
    """The name of its class, the file of that class, and the ``sources`` that it declares; else empty."""
    file = python_file(objective) if isinstance(objective, PythonObjective) else None
    if file is None or not isinstance(objective, PythonObjective):
        return "", None, Declared()
    _, name = split_target(objective)
    return name, file, declared_sources(file, name)


def _missing_source(class_name: str, file: Path, where: Location) -> Problem:
    beside = sorted(one.name for one in file.parent.iterdir()) if is_folder(file.parent) else []
    return Problem(
        f"{class_name} names {file.name!r} among its `sources`, and there is no {file}",
        where,
        "the path of a file, relative to the folder of the file that defines the class",
        nearest(file.name, beside),
    )


def _of_python(objective: PythonObjective) -> list[Path]:
    _, file, declared = _declaration(objective)
    return [] if file is None else [file, *declared.files, *local_imports(file)]


def _of_command(objective: CommandObjective) -> list[Path]:
    """The files in the folder that the command lines name, and what the Python files among them import.

    A program that ``prepare`` builds is not a source: each configuration has another one. Its sources are the
    files that ``prepare`` names, and those in the folder that it works in, as with ``make -C src``; where it
    names nothing (``make``), those in the command's own folder.
    """
    prepare = _named(objective, objective.prepare)
    named = [path for line in (objective.arguments, objective.check) for path in _named(objective, line)]
    if objective.prepare:
        named, prepare = ([path for path in paths if not _is_compiled(path)] for paths in (named, prepare))
        folders = [*_built_in(objective), *(path.parent for path in prepare if is_build_file(path))]
        prepare = [*prepare, *(path for folder in folders for path in built_from(folder))]
        prepare = prepare or built_from(objective.base)
    files = with_included([*named, *prepare])
    written = _written(objective, files)
    files = [file for file in files if file.name not in written]
    return [*files, *(found for file in files if file.suffix == ".py" for found in local_imports(file))]


def _written(objective: CommandObjective, files: Iterable[Path]) -> set[str]:
    """The names of files that command lines, scripts and makefiles write: each configuration has others."""
    lines = (objective.prepare, objective.check, objective.arguments)
    scripts = [_lines(file) for file in files if file.suffix in (".sh", ".bash")]
    makefiles = [_lines(file) for file in files if is_build_file(file) or file.suffix == ".mk"]
    return {
        objective.config_file,
        Path(objective.metrics_file).name,
        *(n for line in (*lines, *scripts, *makefiles) for n in _written_by(line)),
        *(n for line in lines for argument in line for n in _shown_at_the_end(argument)),
        *(n for makefile in makefiles for n in made_by(makefile)),
    }


def _named(objective: CommandObjective, line: Iterable[str]) -> list[Path]:
    """The files of the folder that a command line names, also inside a text for a shell.

    Names may be relative to a folder that the line changes to first, as in ``cd train && python run.py``.
    """
    inside = objective.base.resolve()
    line = list(line)
    folders = [objective.base, *_gone_to(objective.base, line)]
    words = [word for argument in line for word in _words(argument)]
    modules = [word.replace(".", "/") for flag, word in pairwise(words) if flag == "-m"]
    names = [*words, *(f"{m}{end}" for m in modules for end in (".py", "/__main__.py"))]
    names = [name for name in names if "{" not in name and not name.startswith("-")]
    paths = [folder / name for folder in folders for name in names]
    return [path for path in paths if is_file(path) and path.resolve().is_relative_to(inside)]


def _written_by(line: Iterable[str]) -> set[str]:
    """The names of files that a command line writes by its own words, which are not sources."""
    words = [word for argument in line for word in _words(argument)]
    return {Path(name).name for sign, name in pairwise(words) if _WRITES_TO.fullmatch(sign)}


def _shown_at_the_end(text: str) -> Iterator[str]:
    """The names of files that the last of several commands for a shell only prints.

    The commands before it must have written them: printing what is always the same would measure nothing.
    """
    try:
        words = list(_shell_words(text)) if " " in text else []
    except ValueError:  # a quotation that does not end
        return
    after = max((place for place, word in enumerate(words) if word in ("&&", ";")), default=len(words)) + 1
    if words[after : after + 1] and words[after] in _SHOWS and "|" not in words[after:]:
        yield from (Path(name).name for name in words[after + 1 :])


def _lines(script: Path) -> list[str]:
    try:
        return script.read_text(errors="replace").splitlines()
    except OSError:
        return []  # running it will say what is wrong with it


def _words(argument: str) -> list[str]:
    """An argument as it is, and what a shell would make of it where it has several words."""
    try:
        split = list(_shell_words(argument)) if " " in argument else []
    except ValueError:  # a quotation that does not end
        split = argument.split()
    return [argument, *(word.strip(";&|()") for word in split)]


def _shell_words(text: str) -> Iterable[str]:
    """Its words, also where only ``&&`` or ``;`` stands between two. ``ValueError``: an open quotation."""
    words = shlex.shlex(text, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    words.commenters = ""
    return words


def _is_compiled(path: Path) -> bool:
    """Whether it is a compiled program, which nobody wrote by hand."""
    with path.open("rb") as file:
        return b"\0" in file.read(1024)


def _gone_to(base: Path, line: Iterable[str]) -> list[Path]:
    """The folders that a command line changes to, each relative to ``base`` or to the one before."""
    words = [part for argument in line for word in _words(argument) for part in _parted(word)]
    found: list[Path] = []
    for flag, name in pairwise(words):
        if flag in _GOES_TO and "{" not in name:
            here = [start / name for start in (base, *found[-1:])]
            found += [folder for folder in here if is_folder(folder)]
    return list(dict.fromkeys(found))


def _parted(word: str) -> list[str]:
    """``--directory=src`` as two words."""
    flag, sign, name = word.partition("=")
    return [flag, name] if sign and flag in _GOES_TO else [word]


def _built_in(objective: CommandObjective) -> list[Path]:
    """The folders in which ``prepare`` builds, as in ``make -C src``, without those that CMake wrote."""
    folders = _gone_to(objective.base, objective.prepare)
    return [folder for folder in folders if not (folder / "CMakeCache.txt").exists()]
