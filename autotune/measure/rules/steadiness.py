"""Whether what is measured has any noise, by what was read so far. Pure, but for its own counts."""

from __future__ import annotations

from dataclasses import dataclass

NOISELESS = 3
"""After so many configurations without any noise the next ones are read once: a size, a count or a loss from
a fixed seed is known from one reading."""

LOOK_AGAIN = 10
"""After so many that were read once, one is read twice to look for noise again; after twice as many the next,
and so on. A time rounded to hundredths of a second has noise where it is long, and none where it is short."""


@dataclass
class Steadiness:
    """Whether an objective has noise, over the configurations that were read one after another."""

    _steady: int = 0
    """Configurations in a row that were read several times and had no noise, in any metric."""
    _once: int = 0
    """How many were read once since the last of those."""

    @property
    def noiseless(self) -> bool:
        """Whether a single reading says all."""
        return self._steady >= NOISELESS

    def enough(self, readings: int) -> bool:
        """Whether so many readings of a configuration are enough."""
        looks_again = self._once >= LOOK_AGAIN * 2 ** (self._steady - NOISELESS)
        return self.noiseless and readings >= (2 if looks_again else 1)

    def note(self, readings: int, noisy: bool) -> None:
        """Take note of how often a configuration was read, and whether its readings differed."""
        if noisy:
            self._steady = self._once = 0
        elif readings > 1:
            self._steady, self._once = self._steady + 1, 0
        else:
            self._once += 1
