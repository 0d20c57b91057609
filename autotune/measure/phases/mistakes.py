"""Whether a failure is due to a mistake in the code that was run, or to something missing on the machine.

Any other exception, exit code or signal may be due to a hidden limit of the configuration. Exceptions are
told apart by their type. That of a program in Python is only known from the traceback that it prints.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from autotune.measure.diagnostics import telling_line, text_of
from autotune.measure.objective import Context, Objective
from autotune.measure.program import Finished
from autotune.measure.reports import Reporter
from autotune.measure.torchrun import without_torchrun
from autotune.space.configuration import Configuration

_KINDS = (NameError, ImportError, SyntaxError, KeyError, FileNotFoundError, PermissionError)
"""A name, module, key or file that does not exist, or is misspelt. (A TypeError is a mistake as well, with
exceptions: see :func:`_is_mistake`.)"""

_ALWAYS_ALIKE = (ModuleType, Objective, Context, Reporter, Configuration)
"""What has the same attributes whatever was chosen."""

_OF_NONE = "NoneType"
"""What Python calls the type of ``None`` in its messages."""

_NAMES = ("TypeError", "UnboundLocalError", "ModuleNotFoundError", "IndentationError", "TabError")
_OF_A_MODULE = r"AttributeError: (?:partially initialized )?module '"
"""With any other object, that it lacks an attribute may follow from a limit."""

_KIND = re.compile(rf"(?:{'|'.join((*(kind.__name__ for kind in _KINDS), *_NAMES))}): |{_OF_A_MODULE}")
_PLACE = re.compile(r'  File "(.+)", line \d+')

_SHELL_EXITS = (126, 127)
"""A shell found no such program, or may not run it (POSIX, Shell Command Language, 2.8.2)."""


class MissingMetricError(TypeError):
    """An objective has measured, but not what the space file asks for.

    Where it knows why, it says so in a fact with the name of the metric.
    """

    def __init__(self, message: str, names: Sequence[str], facts: Mapping[str, object]) -> None:
        known = [str(facts[name]) for name in names if isinstance(facts.get(name), str)]
        super().__init__(f"{message} ({'; '.join(known)})" if known else message)


def mistake_in(error: BaseException) -> str:
    """What was raised and where, in the same words whenever it is the same mistake; empty if it is none."""
    if not _is_mistake(error):
        return ""
    said = traceback.format_exception_only(error)[-1].strip()
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, MissingMetricError) or not frames:
        return said
    return f"{said} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"


def _is_mistake(error: BaseException) -> bool:
    if isinstance(error, MissingMetricError):
        return True
    if type(error).__module__ != "builtins":  # somebody has defined it on purpose
        return False
    if isinstance(error, AttributeError):  # that ``None`` has no such attribute may follow from a limit
        return isinstance(error.obj, _ALWAYS_ALIKE)
    if isinstance(error, TypeError):  # so may one about ``None``, and one that we raise for a result
        return _OF_NONE not in text_of(error) and not _raised_by_us(error)
    return isinstance(error, _KINDS)


def _raised_by_us(error: BaseException) -> bool:
    frames = list(traceback.walk_tb(error.__traceback__))
    return bool(frames) and str(frames[-1][0].f_globals.get("__name__", "")).startswith("autotune.")


def mistake_of_program(ended: Finished, command: Sequence[str]) -> str:
    """As :func:`mistake_in`, for a program that has ended."""
    lines = without_torchrun(ended.stderr).rstrip().splitlines()
    if ended.exit_code in _SHELL_EXITS:
        return f"{command[0]}: {ended.how}: {lines[-1].strip()}" if lines else f"{command[0]}: {ended.how}"
    places = [line for line in lines if _PLACE.match(line)]
    said = telling_line(ended.stderr)
    if ended.exit_code != 1 or not places or not _KIND.match(said) or _is_of_none(said):
        return ""
    file, _, line = places[-1].strip().removeprefix("File ").partition(", ")
    return f"{said} ({Path(file.strip(chr(34))).name}, {line.partition(',')[0]})"


def _is_of_none(line: str) -> bool:
    return line.startswith("TypeError") and _OF_NONE in line


def missing_metric(found: Mapping[str, object], message: str) -> str:
    """``message`` if numbers were found, but under other names; else empty: a text may tell of a limit."""
    numbers = [value for value in found.values() if isinstance(value, (int, float))]
    return message if numbers else ""
