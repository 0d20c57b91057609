"""A report as one HTML file that loads nothing from the network and has no scripts."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from autotune.report.pages.page import Commands, Page, Paragraph, Part, Picture, Section, Table, Text
from autotune.report.pages.style import base_style, colours
from autotune.report.pages.svg import Sheet, svg_of
from autotune.report.text import MOST_OF_A_TEXT, one_line, visible

MOST_OF_A_CELL = 600
_NUMBER = re.compile(r"^[<~]?-?[\d.,]+(e[+-]?\d+)?( ?[%x]| \w{1,4}(/s)?)?( \[.*\])?( to .*)?$")


def html_page(page: Page, around: Sequence[tuple[str, str]] = ()) -> str:
    """The page as text, to be written in UTF-8. ``around`` has links to other pages: address and words."""
    sheet = Sheet()
    body = "\n".join(_body(page, sheet, around))
    style = colours() + base_style() + sheet.css()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    title = _safe(f"{page.title}: {page.answer.big}")
    head = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<meta name="referrer" content="no-referrer">',
        *(f'<meta name="{_safe(name)}" content="{_safe(value)}">' for name, value in page.about.items()),
        f"<title>{title}</title>",
        f"<style>{style}</style>",
        "</head>",
    ]
    return "\n".join([*head, "<body>", body, "</body>", "</html>", ""])


def _body(page: Page, sheet: Sheet, around: Sequence[tuple[str, str]]) -> Iterator[str]:
    names = {section.title: f"part{place}" for place, section in enumerate(page.sections)}
    yield '<a class="skip" href="#content">To the answer</a>'
    yield f'<main id="content"{" class=roomy" if page.roomy else ""}>'
    if around:
        places = "".join(
            f'<li><a href="{_safe(address)}">{_safe(words)}</a></li>' for address, words in around
        )
        yield f'<nav aria-label="Elsewhere"><ul>{places}</ul></nav>'
    yield f"<header><h1>{_name(page.title)}</h1>"
    yield from (f'<p class="warning">{_safe(text)}</p>' for text in page.warnings)
    answer = page.answer
    yield f'<div class="answer {"good" if answer.good else "open"}"><p class="kind">{_safe(answer.kind)}</p>'
    yield f'<p class="big">{_safe(answer.big)}</p><p class="beside">{_safe(answer.beside)}</p></div>'
    facts = "".join(f"<div><dt>{_safe(name)}</dt><dd>{_safe(value)}</dd></div>" for name, value in page.facts)
    yield f'<dl class="facts">{facts}</dl></header>'
    links = "".join(f'<li><a href="#{names[s.title]}">{_safe(s.title)}</a></li>' for s in page.sections)
    yield f'<nav aria-label="Contents"><ul>{links}</ul></nav>'
    for section in page.sections:
        yield from _section(section, names[section.title], sheet)
    yield f"</main><footer><p>{_safe(page.footer)}</p></footer>"


def _section(section: Section, name: str, sheet: Sheet) -> Iterator[str]:
    yield f'<section aria-labelledby="{name}"><h2 id="{name}">{_safe(section.title)}</h2>'
    for place, part in enumerate(section.parts):
        yield from _part(part, f"{name}p{place}", sheet)
    yield "</section>"


def _part(part: Part, name: str, sheet: Sheet) -> Iterator[str]:
    match part:
        case Paragraph():
            tone = f' class="{part.tone}"' if part.tone else ""
            yield f"<p{tone}>{_safe(part.text, MOST_OF_A_TEXT)}</p>"
        case Picture():
            yield f'<figure><div class="wide" tabindex="0" role="group" aria-label="{_safe(part.described)}">'
            yield svg_of(part.figure, name, one_line(part.described, MOST_OF_A_CELL), sheet)
            yield f"</div><figcaption>{_safe(part.described, MOST_OF_A_CELL)}</figcaption></figure>"
            if part.table is not None:
                yield from _table(part.table)
        case Table():
            yield from _table(part)
        case Commands():
            lines = "".join(
                f"<dt><code>{html.escape(visible(command))}</code></dt><dd>{_safe(what)}</dd>"
                for command, what in part.lines
            )
            yield f'<dl class="commands">{lines}</dl>'
        case Text():
            shown = html.escape(part.within(2 * MOST_OF_A_TEXT))
            yield f"<details><summary>{_safe(part.caption)}</summary>"
            yield f'<pre tabindex="0">{shown}</pre></details>'


def _table(table: Table) -> Iterator[str]:
    if table.folded:
        yield f"<details><summary>{_safe(table.caption)} (table)</summary>"
    yield f'<div class="wide" tabindex="0" role="region" aria-label="{_safe(table.caption)}"><table>'
    yield f"<caption>{_safe(table.caption)}</caption><thead><tr>"
    yield "".join(f'<th scope="col">{_safe(heading)}</th>' for heading in table.headings)
    yield "</tr></thead><tbody>"
    for row, address in zip_longest(table.rows, table.links, fillvalue=""):
        first, *others = (str(cell) for cell in row)
        cells = "".join(f"<td{_aligned(cell)}>{_name(cell)}</td>" for cell in others)
        name = f'<a href="{_safe(address)}">{_name(first)}</a>' if address else _name(first)
        yield f'<tr><th scope="row">{name}</th>{cells}</tr>'
    yield "</tbody></table></div>"
    if table.folded:
        yield "</details>"


def _aligned(cell: str) -> str:
    return ' class="number"' if len(cell) < 60 and _NUMBER.match(cell) else ""


def _safe(text: str, most: int = MOST_OF_A_CELL) -> str:
    return html.escape(one_line(text, most))


def _name(text: str) -> str:
    """A text from other sources, isolated so that its writing direction does not affect what is beside it."""
    safe = _safe(text)
    return safe if safe.isascii() else f"<bdi>{safe}</bdi>"
