"""The exceptions that autotune raises on purpose.

The family is small, so that a caller can tell what went wrong by its type:

``AutotuneError``
    anything below; the command line prints its text without a traceback.
``InputError``
    the user's input is at fault: a space file, an argument, a recording. Carries every problem
    that was found, not only the first. Exit code 2.
``StoreError``
    the store cannot be read or written (unreachable, full disk, newer schema).
``OutputError``
    a file or another tool's storage cannot be written (full disk, no permission, a folder).

How a trial ends is not an exception but a :class:`autotune.status.Status`. The functions at the end of this
file help to write the texts of problems.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Location:
    """A place in a file, for people: ``line`` and ``column`` count from 1; 0 means unknown."""

    file: str
    line: int = 0
    column: int = 0

    def at(self, offset: int) -> Location:
        """Where the letter at ``offset`` of a text stands that begins here, and is on one line."""
        return Location(self.file, self.line, self.column + offset if self.column else 0)

    def __str__(self) -> str:
        parts = [self.file, *(str(n) for n in (self.line, self.column) if n)]
        return ":".join(parts)


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with the user's input, said so that it can be mended.

    ``message`` says what was wrong, ``expected`` what was expected instead, ``hint`` what to do.
    """

    message: str
    where: Location | None = None
    expected: str = ""
    hint: str = ""

    @property
    def headline(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message

    def __str__(self) -> str:
        tail = [f"  expected: {self.expected}"] if self.expected else []
        tail += [f"  {self.hint}"] if self.hint else []
        return "\n".join([self.headline, *tail])


class AutotuneError(Exception):
    """Base of every error that autotune raises on purpose; its text is written for the reader."""


class InputError(AutotuneError):
    """The user's input is at fault. ``problems`` holds everything that was found, in file order."""

    def __init__(self, problems: Problem | str | Iterable[Problem]) -> None:
        if isinstance(problems, str):
            problems = Problem(problems)
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(_said(self.problems)))


def _said(problems: Sequence[Problem]) -> Iterator[str]:
    """The text of each; of several in a row with the same expectation and hint, only the last shows them."""
    for problem, following in zip(problems, (*problems[1:], None), strict=True):
        same = following is not None and (following.expected, following.hint) == (
            problem.expected,
            problem.hint,
        )
        yield problem.headline if same else str(problem)


class NothingFeasibleError(InputError):
    """No configuration of a space satisfies its constraints: there is nothing to search."""


class StoreError(AutotuneError):
    """The store cannot be read or written; nothing that was finished before is lost."""


class OutputError(AutotuneError):
    """What was to be written could not be: a full disk, no permission, a folder in its place."""

    @classmethod
    def of(cls, place: object, error: OSError, hint: str = "") -> OutputError:
        return cls(str(Problem(f"cannot write {place}: {error.strerror or error}", hint=hint)))


def nearest(name: str, known: Iterable[str]) -> str:
    """``did you mean 'tile_m'?`` for a misspelt name, or an empty text where nothing is near.

    Case does not matter. A word between hyphens finds the name if only one contains it: ``tpe`` finds
    ``optuna-tpe``.
    """
    names = {one.lower(): one for one in reversed(list(known))}
    word = name.lower()
    close = difflib.get_close_matches(word, list(names), n=1, cutoff=0.6)
    having = [one for one in names if word in one.split("-")]
    if not close and len(having) == 1:
        close = having
    return f"did you mean {names[close[0]]!r}?" if close else ""


def shorten(text: str, width: int = 60) -> str:
    """``text``, cut to ``width`` characters."""
    return text if len(text) <= width else text[: width - 3] + "..."


def shorten_middle(text: str, width: int) -> str:
    """``text`` on one line of at most ``width`` characters.

    The middle is cut out: a message begins with what is wrong and ends with what to do about it.
    """
    line = " ".join(text.split())
    if len(line) <= width:
        return line
    kept = width - len(_GAP)
    return line[: kept - kept // 2].rstrip() + _GAP + line[-(kept // 2) :].lstrip()


_GAP = " ... "


def listed(known: Iterable[object], most: int = 12) -> str:
    """``a, b, c``; of more than ``most`` names only the first ones, and how many there are."""
    names = [str(name) for name in known]
    return ", ".join(names[:most]) + (f", ... ({len(names)} in all)" if len(names) > most else "")
