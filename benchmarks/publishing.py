"""The page of a benchmark: for whoever runs it, and for the repository; and on what it was made."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def publish(text: str, out: Path | None) -> None:
    """Print the page, and write it where ``--out`` asks for it."""
    print(text)
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text)


def software(*packages: str) -> str:
    """``autotune 0.1.0, numpy 2.4.6, Python 3.11.7``: of these packages those that are installed."""
    found = []
    for name in ("autotune", *packages):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join([*found, f"Python {platform.python_version()}"])


def machine() -> str:
    """``AMD EPYC, 2 cores``."""
    from autotune.provenance.device import device_facts

    facts = device_facts()
    return f"{facts['name']}, {facts['cores']} cores"


def page(title: str, command: str, *parts: str | Sequence[str]) -> str:
    """Markdown: a title, the command that made it, and parts, each of which is a paragraph or lines."""
    texts = (part if isinstance(part, str) else "\n".join(part) for part in parts)
    return "\n\n".join([f"# {title}", f"`{command}`", *texts]) + "\n"


def head(names: str) -> list[str]:
    """The first two lines of a table with these columns, between ``|``."""
    return [f"| {names} |", "|---" * (names.count("|") + 1) + "|"]
