"""What a report says, apart from how it is written: sections of paragraphs, tables, figures and commands.

All text in it is as it was found; whoever writes it out makes it safe (:mod:`autotune.report.pages.html`,
:mod:`autotune.report.pages.markdown`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Paragraph:
    """Some sentences. ``tone``: ``note`` is set apart, ``warning`` is what a reader must not miss."""

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
    """Where the names of the rows lead, if anywhere; our own addresses."""


@dataclass(frozen=True)
class Picture:
    """A figure, what it shows in a sentence, and the numbers behind it."""

    figure: Figure
    described: str
    table: Table | None = None


@dataclass(frozen=True)
class Commands:
    """Lines to type, each with what it does; shown as they are, blank for blank."""

    lines: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Text:
    """What a program wrote, or a file: kept as it stands."""

    caption: str
    text: str


Part = Paragraph | Table | Picture | Commands | Text


@dataclass(frozen=True)
class Section:
    """A heading and what is under it; ``short`` where it also belongs into a pull request."""

    title: str
    parts: Sequence[Part]
    short: bool = False


@dataclass(frozen=True)
class Answer:
    """The one look: what was found, in large."""

    kind: str
    """A word or two above it: ``winner``, ``no better than the default``."""
    big: str
    """``3.34x faster``."""
    beside: str
    """How sure, and against what."""
    good: bool
    """Whether something was won and defended."""
    goes_on: bool = False
    """Whether ``beside`` goes on with the words of ``big``: *than the default*."""


@dataclass(frozen=True)
class Page:
    """A report."""

    title: str
    answer: Answer
    facts: Sequence[tuple[str, str]]
    """A few numbers under the answer."""
    sections: Sequence[Section]
    warnings: Sequence[str] = ()
    """What must be known before anything else is read: a replay, a search that still runs."""
    footer: str = ""
    roomy: bool = False
    """Whether it is one table of many columns, which wants more room than text does."""
    about: dict[str, str] = field(default_factory=dict)
    """``generator`` and ``description`` of the document."""
