"""Crossing: the better of two configurations, with one knob after the other as the other one has it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from autotune.search.candidates.assemble import assemble
from autotune.search.contract import Reason
from autotune.space.configuration import Configuration
from autotune.space.space import Space


@dataclass(frozen=True)
class Place:
    """Where a search has come to."""

    configuration: Configuration
    loss: float


class Crossing:
    """What may be gained where two searches have ended in different places.

    Where knobs act nearly independently of each other, each of the two may have some of them right, and a
    crossing has them all. It takes a try for each knob in which they differ, and keeps what is better.
    """

    def __init__(self, space: Space, one: Place, other: Place, knobs: Sequence[str]) -> None:
        """``knobs``: those in which the two differ enough to count."""
        self._space = space
        self._better, self._other = sorted((one, other), key=lambda place: place.loss)
        self._left = list(knobs)
        self._heard: set[str] = set()
        self._tried_in = [self._better.configuration]
        """Each that was :attr:`best` for a time, the present one last."""
        self.best = self._better
        """The best of both and of what was heard."""

    def next(self, taken: Collection[str]) -> tuple[Configuration, Reason] | None:
        """What to try, with its parents, if its hash is not ``taken``; ``None`` until more is heard."""
        here, theirs = self.best.configuration, self._other.configuration
        for name in self._left:
            *before, made = (assemble(self._space, {**one, name: theirs[name]}) for one in self._tried_in)
            in_flight = any(one and one.hash in taken and one.hash not in self._heard for one in before)
            if made is not None and made.hash not in taken and not in_flight:
                return made, {"parent": here.hash, "other": theirs.hash}
        return None

    def hear(self, configuration: Configuration, loss: float) -> bool:
        """Learn from a try if it is a crossing of the two, and say whether it is; NaN is a failure.

        A knob stays in question where it made the better of the two better still: another may have done so
        too before that was known, and it was tried without it.
        """
        mine, theirs = self._better.configuration, self._other.configuration
        if any(value not in (mine.get(name), theirs.get(name)) for name, value in configuration.items()):
            return False
        self._heard.add(configuration.hash)
        if not loss < self._better.loss:
            self._left = [name for name in self._left if configuration.get(name) != theirs[name]]
        if loss < self.best.loss:
            self.best = Place(configuration, loss)
            self._tried_in.append(configuration)
        return True
