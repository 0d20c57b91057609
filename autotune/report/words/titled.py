"""Lines of text with a title beside the first."""

from __future__ import annotations

from collections.abc import Sequence


def titled(title: str, *texts: str) -> list[str]:
    """A line for each text, with the title before the first."""
    return [f"  {'' if place else title:10} {text}" for place, text in enumerate(texts)]


def titled_beginning(title: str, texts: Sequence[str], most: int) -> list[str]:
    """As :func:`titled` for the first ``most`` texts, and a line on how many more there are."""
    more = [f"and {len(texts) - most} more, see --json"] if len(texts) > most else []
    return titled(title, *texts[:most], *more)
