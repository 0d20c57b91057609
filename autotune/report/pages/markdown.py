"""A report as Markdown, short enough for a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from autotune.report.pages.page import Commands, Page, Paragraph, Part, Picture, Section, Table, Text
from autotune.report.text import one_line, visible

MOST_ROWS = 12
"""The most rows of a table that are shown."""
MOST_OF_A_CELL = 160

_ACTIVE = re.compile(r"([\\`*_{}\[\]<>#|~$@&!])")
"""Characters with a meaning in Markdown, or to sites that show it."""


def markdown(page: Page) -> str:
    """The answer and the sections that are marked ``short``, with tables in the place of figures."""
    lines = [f"## {_safe(page.title)}: {_safe(page.answer.big)}", ""]
    said = f"{page.answer.big} {page.answer.beside}" if page.answer.goes_on else page.answer.beside
    lines += [f"**{_safe(page.answer.kind)}**: {_safe(said)}", ""]
    for warning in page.warnings:
        lines += [f"> {_safe(warning)}", ""]
    if page.facts:
        lines += [" · ".join(f"{_safe(name)} {_safe(value)}" for name, value in page.facts), ""]
    for section in page.sections:
        if section.short:
            lines += list(_section(section))
    return "\n".join([*lines, f"<sub>{_safe(page.footer)}</sub>", ""])


def _section(section: Section) -> Iterator[str]:
    yield f"### {_safe(section.title)}"
    yield ""
    for part in section.parts:
        yield from _part(part)


def _part(part: Part) -> Iterator[str]:
    match part:
        case Paragraph():
            yield from (_safe(part.text, 2000), "")
        case Picture():
            if part.table is not None and not part.table.folded:
                yield from _table(part.table)
        case Table():
            if not part.folded:
                yield from _table(part)
        case Commands():
            lines = [f"{visible(command)}  # {one_line(what)}" for command, what in part.lines]
            yield from _fenced("\n".join(lines), "console")
        case Text():
            yield f"{_safe(part.caption)}:"
            yield ""
            yield from _fenced(part.within(1000), "text")


def _table(table: Table) -> Iterator[str]:
    yield _row(table.headings)
    yield "|" + "---|" * len(table.headings)
    left = len(table.rows) - MOST_ROWS
    whole = left <= 1  # a row that says "1 more" takes as much room as the row itself
    yield from (_row(row) for row in (table.rows if whole else table.rows[:MOST_ROWS]))
    if not whole:
        yield _row([f"{left} more", *[""] * (len(table.headings) - 1)])
    yield ""


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_safe(cell, MOST_OF_A_CELL) for cell in cells) + " |"


def _fenced(text: str, language: str) -> Iterator[str]:
    """The text as a code block, with a fence longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (f"{fence}{language}", text, fence, "")


def _safe(text: str, most: int = 400) -> str:
    return (
        _ACTIVE.sub(r"\\\1", one_line(text, most))
        .replace("\\<", "&lt;")
        .replace("\\>", "&gt;")
        .replace("\\&", "&amp;")
    )
