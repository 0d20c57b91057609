"""Answers in lines, each beside what it is called."""

from __future__ import annotations

from collections.abc import Sequence


def titled(title: str, *texts: str) -> list[str]:
    """A line each; the title stands before the first."""
    return [f"  {'' if place else title:10} {text}" for place, text in enumerate(texts)]


def titled_beginning(title: str, texts: Sequence[str], most: int) -> list[str]:
    """The first ``most`` of them, and how many more the JSON document has."""
    more = [f"and {len(texts) - most} more, see --json"] if len(texts) > most else []
    return titled(title, *texts[:most], *more)
