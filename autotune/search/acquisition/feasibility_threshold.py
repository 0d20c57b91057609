"""From which probability of success on a candidate is as good as any; what is less likely comes last.

The ambition (:mod:`~autotune.search.acquisition.ambition`) makes log-improvements differ by more than any
probability can weigh. Each limit is a part of the share of all tries that succeeded: where many have failed so
far, little is likely, and to keep to that would be to stay at the few points that did. But no share counts as
less than :data:`EVEN`: else each failure would make doubtful tries pass for likely ones, and so fail the next.
"""

from __future__ import annotations

from autotune.search.models.history import Targets
from autotune.search.models.surrogate import Surrogate

LIKELY = 0.75
"""For failures of most kinds."""
AT_A_LIMIT = 0.5
"""Where memory ran out that nobody measures: larger is mostly faster until it no longer fits, so that the
best lies where success is doubtful. For failures of other kinds there is no reason to, and where successes
tell how much they used, the limit is foreseen."""
FORESEEN = 0.8
"""Where the cap of memory is known beforehand: what fits is foretold from what successes used, and a failure
teaches little. With 0.9 and 1 there are fewer still, and one in seventy searches misses the best."""

EVEN = 0.5
"""The least that the share of successes counts as."""


def feasibility_threshold(targets: Targets, ran_out: bool, surrogate: Surrogate | None = None) -> float:
    """That probability after these tries; ``ran_out``: whether one of them ran out of memory."""
    share = max(EVEN, targets.likelihood)
    if surrogate and surrogate.knows_cap:
        return FORESEEN * share
    unforeseen = ran_out and not (surrogate and surrogate.foresees_memory)
    return (AT_A_LIMIT if unforeseen else LIKELY) * share
