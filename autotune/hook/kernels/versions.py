"""The packages that make a kernel out of its source, as they are installed."""

from __future__ import annotations

from importlib import metadata

PACKAGES = ("torch", "triton")


def versions() -> dict[str, str]:
    """The versions of those that are there, by name."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
