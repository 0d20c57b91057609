"""From which probability of success on a candidate is as good as any; what is less likely comes last.

The ambition (:mod:`~autotune.search.acquisition.ambition`) makes log-improvements differ by more than any
probability can weigh. Each limit is a part of the share of all tries that succeeded: where many have failed
so far, little is likely, and to keep to that would be to stay at the few points that did. But no share counts
as less than :data:`EVEN`: else each failure would let what is less likely pass, which fails all the more.
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
"""The least that the share counts as, where failures are only seen; what is measured says by how much."""


def feasibility_threshold(targets: Targets, ran_out: bool, surrogate: Surrogate | None = None) -> float:
    """That probability after these tries; ``ran_out``: whether one of them ran out of memory."""
    if surrogate is None:
        return (AT_A_LIMIT if ran_out else LIKELY) * targets.likelihood
    if surrogate.knows_cap:
        return FORESEEN * targets.likelihood
    if surrogate.foresees_memory:
        return LIKELY * targets.likelihood
    share = targets.likelihood if surrogate.bounded else max(EVEN, targets.likelihood)
    return (AT_A_LIMIT if ran_out else LIKELY) * share
