"""For how long a search has gone on, by when its trials were in flight."""

from __future__ import annotations

from collections.abc import Iterable

from autotune.search.contract import Observation


class Elapsed:
    """The time in which some trial that has ended was in flight.

    Of trials side by side it counts once, and a pause between two searches does not count. A strategy reads
    no clock, so that its proposals follow from what it was told.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._until = 0.0

    def learn(self, observations: Iterable[Observation]) -> None:
        """Take in further trials, in the order in which they ended."""
        for observation in observations:
            self.seconds += max(0.0, observation.ended - max(observation.began, self._until))
            self._until = max(self._until, observation.ended)
