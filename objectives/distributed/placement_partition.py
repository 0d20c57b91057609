"""Plans that people use without a search: equal parts, and PipeDream's partition. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations


@dataclass(frozen=True)
class Profile:
    """What was measured of a model on devices."""

    seconds: tuple[tuple[float, ...], ...]
    """``seconds[item][device]``: forward and backward pass of one micro-batch."""
    bytes: tuple[int, ...]
    """Of each item's output for one micro-batch."""
    latency: tuple[tuple[float, ...], ...]
    """Seconds, by sender and receiver."""
    rate: tuple[tuple[float, ...], ...]
    """Bytes a second, by sender and receiver."""

    @property
    def devices(self) -> int:
        return len(self.seconds[0])

    def fastest(self) -> int:
        """The device on which the whole model takes the least time."""
        return min(range(self.devices), key=lambda d: sum(item[d] for item in self.seconds))


def equal_split(items: int, devices: int) -> tuple[int, ...]:
    """As many items on each device, in their order; the first have one more where that cannot be."""
    return tuple(item * devices // items for item in range(items))


def pipedream(profile: Profile, readers: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The partition into consecutive stages whose slowest is fastest, on devices in the best order.

    Narayanan et al., PipeDream: Generalized Pipeline Parallelism for DNN Training, SOSP 2019, section 3.1: by
    dynamic programming over a profile. The time of a stage is the larger of its computation and of the
    transfers before it (what it is sent, and the gradients it sends back). Theirs is for equal devices, where
    order does not matter; here all orders of the devices are tried, and fewer of them. There are no replicas.
    """
    best: tuple[float, tuple[int, ...]] = (float("inf"), ())
    for count in range(1, profile.devices + 1):
        for order in permutations(range(profile.devices), count):
            best = min(best, _staged(profile, readers, order))
    return best[1]


def _staged(
    profile: Profile, readers: Sequence[Sequence[int]], order: Sequence[int]
) -> tuple[float, tuple[int, ...]]:
    """The best cut into a stage for each device of ``order``: seconds of its slowest, and the plan."""
    items = len(profile.seconds)
    table = {0: (0.0, ())} if items else {}
    done: dict[int, tuple[float, tuple[int, ...]]] = dict(table)
    for stage, device in enumerate(order):
        found: dict[int, tuple[float, tuple[int, ...]]] = {}
        for begin, (slowest, place) in done.items():
            sent = _crossing(profile, readers, begin, order[stage - 1], device) if begin else 0.0
            seconds = 0.0
            for end in range(begin + 1, items + 1):
                seconds += profile.seconds[end - 1][device]
                candidate = (max(slowest, seconds, sent), (*place, *[device] * (end - begin)))
                if end not in found or candidate < found[end]:
                    found[end] = candidate
        done = found
    return done.get(items, (float("inf"), ()))


def _crossing(profile: Profile, readers: Sequence[Sequence[int]], cut: int, before: int, after: int) -> float:
    """Seconds on the wire for a cut before the item ``cut``: outputs one way, their gradients the other."""
    crossing = [item for item in range(cut) if any(reader >= cut for reader in readers[item])]
    there = sum(
        profile.latency[before][after] + profile.bytes[i] / profile.rate[before][after] for i in crossing
    )
    back = sum(
        profile.latency[after][before] + profile.bytes[i] / profile.rate[after][before] for i in crossing
    )
    return there + back
