"""Which cores measure and which prepare.

Cores that measure are whole physical cores from the far end of the machine (interrupts gather on the
first ones), one hardware thread of each. Their other threads idle, and whatever is left prepares, so that a
compiler does not share the units or the first-level cache of what is being timed. On a machine too
small for that, preparing gets what there is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from autotune.provenance.system import cpu_list


@dataclass(frozen=True)
class Cores:
    """Hardware threads by number. An empty ``measuring`` is 'not pinned'."""

    measuring: tuple[int, ...]
    preparing: tuple[int, ...]


def choose_cores(wanted: int, allowed: tuple[int, ...], siblings: Mapping[int, frozenset[int]]) -> Cores:
    """``wanted`` cores to measure on, of those that are ``allowed``; 0: do not pin.

    ``siblings`` gives the hardware threads of a thread's physical core. Pure.
    """
    ordered = sorted(allowed)
    if wanted <= 0 or not ordered:
        return Cores((), tuple(ordered))
    first_threads = [cpu for cpu in ordered if cpu == min(siblings.get(cpu, frozenset({cpu})) & set(ordered))]
    others = [cpu for cpu in ordered if cpu not in first_threads]
    # A physical core each as long as there are some, then their other threads.
    measuring = sorted((others + first_threads)[-wanted:])
    busy = set().union(*(siblings.get(cpu, frozenset({cpu})) for cpu in measuring))
    for candidates in (set(ordered) - busy, set(ordered) - set(measuring), set(ordered)):
        if candidates:
            return Cores(tuple(measuring), tuple(sorted(candidates)))
    raise AssertionError("some core is always allowed")


def this_machine(wanted: int) -> Cores:
    """The choice on this machine, within what this process may use."""
    allowed = tuple(sorted(os.sched_getaffinity(0)))
    return choose_cores(wanted, allowed, {cpu: _siblings(cpu) for cpu in allowed})


def pin(cores: tuple[int, ...]) -> None:
    """Keep this process, and whatever it starts, on ``cores``; empty: leave it where it is.

    Before numpy is loaded: a BLAS library makes as many threads as it finds cores.
    """
    if cores:
        os.sched_setaffinity(0, cores)


def _siblings(cpu: int) -> frozenset[int]:
    folder = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
    for name in ("core_cpus_list", "thread_siblings_list"):
        try:
            return frozenset(cpu_list((folder / name).read_text())) | {cpu}
        except OSError:
            continue
    return frozenset({cpu})
