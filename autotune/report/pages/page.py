"""The contents of a report without their form: sections of paragraphs, tables, figures and commands.

Texts are as they were found; what writes them out makes them safe (:mod:`autotune.report.pages.html`,
:mod:`autotune.report.pages.markdown`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from autotune.report.text import last_lines, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Paragraph:
    """Some sentences. A ``tone`` of ``note`` sets them apart; ``warning`` is for what must not be missed."""

    text: str
    tone: Literal["", "note", "warning"] = ""


@dataclass(frozen=True)
class Table:
    """Rows of text under headings. The first column names the row."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    folded: bool = False
    """Whether it is shown only when asked for."""
    links: Sequence[str] = ()
    """The addresses that the names of the rows link to, if any; pages of our own."""


@dataclass(frozen=True)
class Picture:
    """A figure, what it shows in a sentence, and the numbers behind it."""

    figure: Figure
    described: str
    table: Table | None = None


@dataclass(frozen=True)
class Commands:
    """Commands to type, each with what it does; shown exactly as they are."""

    lines: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Text:
    """The output of a program, or a file; shown exactly as it is."""

    caption: str
    text: str
    tail: bool = False
    """Whether its end matters most, so that a long text loses its beginning."""

    def within(self, most: int) -> str:
        """The text, safe to show, in about ``most`` characters."""
        return (last_lines if self.tail else visible)(self.text, most)


Part = Paragraph | Table | Picture | Commands | Text


@dataclass(frozen=True)
class Section:
    """A heading and what is below it; ``short`` sections are also in the short form for a pull request."""

    title: str
    parts: Sequence[Part]
    short: bool = False


@dataclass(frozen=True)
class Answer:
    """What was found, at a glance, in large letters."""

    kind: str
    """A word or two above it: ``winner``, ``no better than the default``."""
    big: str
    """``3.34x faster``."""
    beside: str
    """How sure, and against what."""
    good: bool
    """Whether something was won and defended."""
    goes_on: bool = False
    """Whether ``beside`` continues the phrase of ``big``: *than the default*."""


@dataclass(frozen=True)
class Page:
    """A report."""

    title: str
    answer: Answer
    facts: Sequence[tuple[str, str]]
    """A few numbers under the answer."""
    sections: Sequence[Section]
    warnings: Sequence[str] = ()
    """What a reader must know first: that it is a replay, or that a search still runs."""
    footer: str = ""
    roomy: bool = False
    """Whether the page is wider than usual, for a table of many columns."""
    about: dict[str, str] = field(default_factory=dict)
    """Metadata of the document by name, such as ``description``."""
