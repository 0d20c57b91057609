"""Which cores measure and which prepare.

Cores that measure are whole physical cores from the far end of the machine (interrupts gather on the
first ones), one hardware thread of each. Their other threads idle, and whatever is left prepares, so that a
compiler does not share the units or the first-level cache of what is being timed. On a machine too
small for that, preparing gets what there is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from autotune.provenance.host.system import cpu_list


@dataclass(frozen=True)
class Cores:
    """Hardware threads by number. An empty ``measuring`` is 'not pinned'."""

    measuring: tuple[int, ...]
    preparing: tuple[int, ...]
    shared: bool = False
    """Whether other searches measure on the same cores."""


def choose_cores(
    wanted: int,
    allowed: tuple[int, ...],
    siblings: Mapping[int, frozenset[int]],
    taken: frozenset[int] = frozenset(),
) -> Cores:
    """``wanted`` cores to measure on, of those that are ``allowed``; 0: do not pin.

    ``siblings`` gives the hardware threads of a thread's physical core. ``taken`` are the threads of the
    cores that other searches measure on: they are left alone as long as there are enough others, and
    one more to prepare on, since a compiler disturbs a measurement no less than another one does. Pure.
    """
    ordered = sorted(allowed)
    if wanted <= 0 or not ordered:
        return Cores((), tuple(ordered))
    free = set(ordered) - taken
    measuring = _whole_cores(wanted, sorted(free), siblings)
    shared = bool(taken) and (len(measuring) < wanted or not free - _threads(measuring, siblings))
    if shared:
        measuring = _whole_cores(wanted, ordered, siblings)
    busy = _threads(measuring, siblings)
    for candidates in (free - busy, set(ordered) - busy, set(ordered) - set(measuring), set(ordered)):
        if candidates:
            return Cores(tuple(measuring), tuple(sorted(candidates)), shared)
    raise AssertionError("some core is always allowed")


def _whole_cores(wanted: int, ordered: list[int], siblings: Mapping[int, frozenset[int]]) -> list[int]:
    """A physical core each, the last ones, as long as there are some; then their other threads."""
    first_threads = [cpu for cpu in ordered if cpu == min(siblings.get(cpu, frozenset({cpu})) & set(ordered))]
    others = [cpu for cpu in ordered if cpu not in first_threads]
    return sorted((others + first_threads)[-wanted:])


def _threads(cores: Iterable[int], siblings: Mapping[int, frozenset[int]]) -> set[int]:
    """All hardware threads of these physical cores."""
    return set().union(*(siblings.get(cpu, frozenset({cpu})) for cpu in cores))


def allowed_here() -> tuple[int, ...]:
    """The hardware threads that this process may use."""
    return tuple(sorted(os.sched_getaffinity(0)))


def this_machine(wanted: int) -> Cores:
    """The choice on this machine where no other search runs."""
    allowed = allowed_here()
    return choose_cores(wanted, allowed, {cpu: siblings_here(cpu) for cpu in allowed})


def pin(cores: tuple[int, ...]) -> None:
    """Keep this process, and whatever it starts, on ``cores``; empty: leave it where it is.

    Before numpy is loaded: a BLAS library makes as many threads as it finds cores.
    """
    if cores:
        os.sched_setaffinity(0, cores)


def siblings_here(cpu: int) -> frozenset[int]:
    """The hardware threads of the physical core of ``cpu``, itself included."""
    folder = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
    for name in ("core_cpus_list", "thread_siblings_list"):
        try:
            return frozenset(cpu_list((folder / name).read_text())) | {cpu}
        except OSError:
            continue
    return frozenset({cpu})
