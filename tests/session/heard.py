"""What a search tells its user while it goes."""

from __future__ import annotations

from autotune.session.progress import Progress


class Heard(Progress):
    """Keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)
