"""How often a slow configuration is worth reading when a search is short of time. Pure.

For the time of four more readings of one configuration a search can try four others, and a model learns
more from those: it has seen what is like them, so that noise averages out over neighbours (benchmark
``slow_programs``). Where a reading is short beside what a trial costs anyway, more of them are as good as
free, and none of this applies.
"""

from __future__ import annotations

from dataclasses import dataclass

from autotune.space.spec import USUAL_READINGS, Share

SHORT_SECONDS = 0.1
"""A reading that is shorter takes less time than the rest of its trial (a process, a proposal)."""


@dataclass(frozen=True)
class Worth:
    """When a trial has had its ``share`` of the time.

    ``fewest``: how many readings the user wants in any case; ``None`` if the user did not say.
    """

    share: Share
    fewest: int | None = None

    def enough(self, count: int, spent: float, last: float, paid: float, *, beaten: bool) -> str:
        """Why ``count`` readings are enough, in a sentence; empty if they are not.

        They took ``spent`` seconds, the last one of them ``last``, and what came before them (compiling,
        loading, the check, a warm-up) ``paid``. A configuration that is ``beaten`` by the best so far is read
        once; one that looks better is read again before that is believed.
        """
        if count >= (self.fewest or USUAL_READINGS) and spent > self.share.most:
            return f"{count} readings have taken a trial's share of the time"
        if self.fewest is not None or count < (1 if beaten else 2):
            return ""
        room = max(self.share.least, paid, USUAL_READINGS * SHORT_SECONDS)
        if USUAL_READINGS * last <= room or spent + last <= room:
            return ""
        return f"at {last:.3g} s a reading the time is better spent on other configurations"
