"""A study's page in both of its forms, and its text."""

from __future__ import annotations

from autotune.report.pages.html import html_page
from autotune.report.pages.markdown import markdown
from autotune.report.pages.study_page import study_page
from autotune.store.store import Store
from tests.report.pages.reading_html import Read, faults

NOW = 1_700_001_000.0


def both(store: Store) -> tuple[str, str]:
    """The page as HTML without a fault, and as Markdown."""
    page = study_page(store, None, NOW)
    html = html_page(page)
    assert faults(html) == []
    return html, markdown(page)


def text_of(html: str) -> str:
    return " ".join(Read(html).text.split())
