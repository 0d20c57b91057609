"""What outcomes show of the whole search, said as soon as it shows and once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from autotune.measure.outcome import UNREACHED, Outcome
from autotune.session.crowded import say_crowded
from autotune.space.space import Space


@dataclass
class Remarks:
    """Hears the outcomes of the trials of a search, which may be of several sessions."""

    _unreached: set[str] = field(default_factory=set)
    """The knobs that were named already."""
    _crowded: bool = False

    def on(self, number: int, outcome: Outcome, space: Space) -> Iterator[str]:
        """What the outcome of trial ``number`` shows that was not said yet."""
        if text := self._unreached_knobs(outcome, space):
            yield text
        if not self._crowded and (text := say_crowded({number: outcome.facts})):
            self._crowded = True
            yield text

    def _unreached_knobs(self, outcome: Outcome, space: Space) -> str:
        """Which knobs a command was not handed, though others were; each is named once.

        One that decides whether another exists acts by that, and need not be handed over itself.
        """
        found = outcome.facts.get(UNREACHED)
        act = {name for knob in space.knobs if knob.when is not None for name in knob.when.knobs}
        known = self._unreached | act
        new = [name for name in found if name not in known] if isinstance(found, list) else []
        self._unreached.update(new)
        if not new:
            return ""
        return (
            f"the knob {', '.join(map(repr, new))} never gets to the command, so no trial says anything about"
            " it: write {name} into an argument, a variable or the text of its config file"
        )
