"""The page of a benchmark: for whoever runs it, and for the repository; and on what it was made."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def publish(page: str, out: Path | None) -> None:
    """Print the page, and write it where ``--out`` asks for it."""
    print(page)
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(page)


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
