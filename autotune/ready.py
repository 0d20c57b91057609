"""The objectives and spaces that come with autotune, and where they lie."""

from __future__ import annotations

from pathlib import Path


def ready_root() -> Path:
    """The folder with ``objectives`` and ``searchspaces``: in the wheel, or in the repository."""
    package = Path(__file__).resolve().parent
    inside = package / "_ready"
    return inside if inside.is_dir() else package.parent


def ready_spaces() -> dict[str, Path]:
    """The space files by name."""
    return {path.stem: path for path in sorted((ready_root() / "searchspaces").glob("*.yaml"))}
