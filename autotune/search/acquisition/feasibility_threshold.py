"""The probability of success above which a higher one is no advantage; less likely candidates come last.

A threshold is needed since the ambition (:mod:`~autotune.search.acquisition.ambition`) makes log-improvements
differ by more than any probability can weigh. It is a fixed part of the share of all tries that succeeded:
where many have failed so far, little is likely to succeed, and a fixed threshold would keep the search at the
few points that did. But no share counts as less than :data:`EVEN`: else each failure would lower the
threshold, and what then passes it fails all the more.
"""

from __future__ import annotations

from autotune.search.models.history import Targets
from autotune.search.models.surrogate import Surrogate

LIKELY = 0.75
"""The part of the share for most kinds of failure."""
AT_A_LIMIT = 0.5
"""That where memory ran out and nobody measures it: larger is mostly faster until it no longer fits, so that
the best lies where success is doubtful. Other kinds of failure give no reason to go there, and where
successes say how much they used, the limit can be foreseen."""
FORESEEN = 0.8
"""That where the memory cap is known beforehand: what fits can be predicted from what successes used, and a
failure teaches little. With 0.9 and 1 there are still fewer failures, but one search in seventy misses the
best."""

EVEN = 0.5
"""The smallest value that the share counts as, where failures only show that they happened. Where something
is measured, it shows by how much a limit was missed."""


def feasibility_threshold(targets: Targets, ran_out: bool, surrogate: Surrogate | None = None) -> float:
    """The threshold after these tries; ``ran_out``: whether one of them ran out of memory."""
    if surrogate is None:
        return (AT_A_LIMIT if ran_out else LIKELY) * targets.likelihood
    if surrogate.knows_cap:
        return FORESEEN * targets.likelihood
    if surrogate.foresees_memory:
        return LIKELY * targets.likelihood
    share = targets.likelihood if surrogate.bounded else max(EVEN, targets.likelihood)
    return (AT_A_LIMIT if ran_out else LIKELY) * share
