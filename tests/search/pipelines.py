"""Synthetic truths for assignments: a pipeline played task by task, with costs drawn at random.

Its arithmetic is that of the schedule, which the structured model only approximates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Pipeline:
    """A chain of items on devices. Seconds are of one micro-batch, forward; backward takes twice as long."""

    cost: NDArray[np.float64]
    """Shape (items, devices)."""
    transfer: NDArray[np.float64]
    """Shape (items - 1,): between an item and the next one, if they are on different devices."""
    micro_batches: int = 4

    @classmethod
    def drawn(cls, items: int, devices: int, rng: np.random.Generator, transfer: float = 0.3) -> Pipeline:
        weight = np.exp(0.6 * rng.standard_normal(items))
        slowness = np.exp(0.5 * rng.standard_normal(devices))
        own = np.exp(0.1 * rng.standard_normal((items, devices)))
        moved = transfer * np.exp(0.3 * rng.standard_normal(items - 1)) * weight.mean() * slowness.mean()
        return cls(1e-3 * weight[:, None] * slowness * own, 1e-3 * moved)

    def seconds(self, place: Sequence[int]) -> float:
        """Of a step: all micro-batches through the chain and back; each device does what is ready first."""
        items = len(place)
        free = [0.0] * self.cost.shape[1]
        ready = [(0.0, m, 0) for m in range(self.micro_batches)]
        while ready:
            task = min(ready, key=lambda t: (max(t[0], free[place[_item(t[2], items)]]), t[1], -t[2]))
            ready.remove(task)
            at, micro_batch, stage = task
            item = _item(stage, items)
            seconds = self.cost[item, place[item]] * (1.0 if stage < items else 2.0)
            end = max(at, free[place[item]]) + seconds
            free[place[item]] = end
            if stage + 1 < 2 * items:
                after = _item(stage + 1, items)
                link = self.transfer[min(item, after)] if place[item] != place[after] else 0.0
                ready.append((end + link, micro_batch, stage + 1))
        return max(free)

    def busy(self, place: Sequence[int]) -> list[float]:
        """What each device works."""
        found = [0.0] * self.cost.shape[1]
        for item, where in enumerate(place):
            found[where] += 3.0 * self.micro_batches * float(self.cost[item, where])
        return found


def _item(stage: int, items: int) -> int:
    """There and back."""
    return stage if stage < items else 2 * items - 1 - stage
