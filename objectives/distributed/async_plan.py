"""How several workers train one model: the knobs of ``async-sgd`` as a value, and its arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """``mode``:

    * ``allreduce``: every step averages the workers' gradients;
    * ``server``: the same through a parameter server, which waits for all and takes the mean;
    * ``async``: the server takes each gradient as it comes (Dean et al., 2012);
    * ``bounded``: the same, but nobody gets more than ``staleness`` steps ahead of the slowest (Ho et al.,
      2013);
    * ``easgd``: workers train models of their own, and every ``period`` steps one is drawn to the centre, and
      the centre to it, by ``elastic`` of their distance (Zhang, Choromanska and LeCun, 2015).

    ``rate`` and ``momentum`` of SGD; ``batch``: samples of one worker's gradient.
    """

    mode: str = "allreduce"
    rate: float = 0.1
    momentum: float = 0.0
    batch: int = 32
    staleness: int = 0
    period: int = 4
    elastic: float = 0.2

    @property
    def most_lead(self) -> float:
        """Steps that a worker may be ahead of the slowest."""
        if self.mode == "bounded":
            return self.staleness
        return 0 if self.mode in ("allreduce", "server") else float("inf")


def lead_of(worker: int, clocks: Sequence[int]) -> int:
    """By how many steps a worker is ahead of the slowest."""
    return clocks[worker] - min(clocks)
