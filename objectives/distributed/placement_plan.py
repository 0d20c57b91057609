"""A plan: which item is on which device, and in which order the devices work. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Plan:
    """One configuration."""

    place: tuple[int, ...]
    """The device of each item, by number."""
    micro_batches: int = 4
    schedule: str = "1f1b"
    recompute: bool = False
    """Whether what an item computes inside is thrown away and computed again for the backward pass."""

    @classmethod
    def of(cls, configuration: Mapping[str, Any], items: Sequence[str], devices: Sequence[str]) -> Plan:
        """Of a configuration's knobs. Raises ``ValueError`` for items or devices that are not there."""
        place = configuration["place"]
        if set(place) != set(items):
            raise ValueError(f"the knob place has the items {sorted(place)}, and the model {sorted(items)}")
        unknown = {str(device) for device in place.values()} - set(devices)
        if unknown:
            raise ValueError(f"the workload has no device {sorted(unknown)}, but {list(devices)}")
        rest = {
            name: configuration[name]
            for name in ("micro_batches", "schedule", "recompute")
            if name in configuration
        }
        return cls(tuple(devices.index(str(place[item])) for item in items), **rest)


def stages(place: Sequence[int], reads: Sequence[Sequence[int]]) -> list[int]:
    """By item: how many times the data has gone from one device to another before it, on the longest way."""
    found: list[int] = []
    for item, inputs in enumerate(reads):
        found.append(max((found[i] + (place[i] != place[item]) for i in inputs), default=0))
    return found


@dataclass
class Turns:
    """What one device does next: forward and backward tasks of its items, a micro-batch each.

    ``gpipe`` (Huang et al., GPipe, 2019): all forward passes of the device, then all backward passes.
    ``1f1b`` (Narayanan et al., PipeDream, 2019, section 3.2; with a flush at the end of each step, as in
    Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, 2021): backward passes as soon as there
    are some, and no item is further ahead of its backward pass than there are stages after it. With several
    stages on a device the oldest micro-batch goes first. Neither can lock: the oldest micro-batch that is not
    done is always allowed to go on.
    """

    items: tuple[int, ...]
    ahead: Mapping[int, int]
    """By item: how many micro-batches may be between its forward and backward pass."""
    micro_batches: int
    schedule: str

    def __post_init__(self) -> None:
        self.forward = dict.fromkeys(self.items, 0)
        """How many forward passes of each item are done."""
        self.backward = dict.fromkeys(self.items, 0)

    @property
    def done(self) -> bool:
        return all(count == self.micro_batches for count in self.backward.values())

    def candidates(self) -> list[tuple[str, int, int]]:
        """``(pass, item, micro-batch)`` in the order in which they should run, whatever is ready first."""
        ahead = [
            ("forward", item, done)
            for item, done in self.forward.items()
            if done < self.micro_batches and done - self.backward[item] < self._ahead(item)
        ]
        ahead.sort(key=lambda task: (task[2], task[1]))
        if self.schedule == "gpipe" and any(n < self.micro_batches for n in self.forward.values()):
            return ahead
        back = [("backward", item, done) for item, done in self.backward.items() if done < self.forward[item]]
        back.sort(key=lambda task: (task[2], -task[1]))
        return back + ahead

    def finish(self, task: tuple[str, int, int]) -> None:
        (self.forward if task[0] == "forward" else self.backward)[task[1]] += 1

    def _ahead(self, item: int) -> int:
        return self.micro_batches if self.schedule == "gpipe" else self.ahead[item]


def make_turns(plan: Plan, reads: Sequence[Sequence[int]], device: int) -> Turns:
    """The turns of one device in one step."""
    at = stages(plan.place, reads)
    own = tuple(item for item, where in enumerate(plan.place) if where == device)
    ahead = {item: max(at) + 1 - at[item] for item in own}
    return Turns(own, ahead, plan.micro_batches, plan.schedule)
