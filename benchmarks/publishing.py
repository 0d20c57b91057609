"""The page of a benchmark: for whoever runs it, and for the repository."""

from __future__ import annotations

from pathlib import Path


def publish(page: str, out: Path | None) -> None:
    """Print the page, and write it where ``--out`` asks for it."""
    print(page)
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(page)
