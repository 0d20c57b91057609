"""How a rank is told at which port another listens: it lies in the folder that all of a group see."""

from __future__ import annotations

import time
from pathlib import Path

from autotune.measure.groups.rank import Rank

_WAIT_SECONDS = 0.001


def publish(rank: Rank, purpose: str, port: int) -> None:
    """Others find it there whole or not at all."""
    file = _file(rank, purpose, rank.rank)
    part = file.with_suffix(".part")
    part.write_text(str(port))
    part.rename(file)


def published(rank: Rank, purpose: str, other: int) -> int:
    """The port of ``other``, as soon as it is there."""
    file = _file(rank, purpose, other)
    while not file.exists():
        rank.beat("wait")
        time.sleep(_WAIT_SECONDS)
    return int(file.read_text())


def withdraw(rank: Rank, purpose: str) -> None:
    """Nobody is to find it there any more."""
    _file(rank, purpose, rank.rank).unlink()


def _file(rank: Rank, purpose: str, number: int) -> Path:
    return rank.meeting / f"{purpose}-port{number}"
