"""The pressure of the machine, sampled cheaply beside each reading.

``/proc/pressure`` (pressure stall information, Linux 4.20) counts the time in which some task waited
for a resource; the difference of two samples over the time between them is the share that was lost.
Steal is time that the hypervisor gave to somebody else.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping
from pathlib import Path

_TICK = 100.0
"""Ticks a second in ``/proc/stat``: USER_HZ, fixed on every Linux that Python runs on but Alpha."""


def pressure(root: Path = Path("/")) -> Mapping[str, float]:
    """One sample, in well under 200 microseconds; what this kernel does not tell is absent.

    ``load1``, ``runnable`` (tasks); ``cpu_stall``, ``memory_stall``, ``io_stall`` (seconds since boot in
    which some task waited) and their ten-second averages ``..._stall_avg10`` (fractions); ``busy``,
    ``steal`` (processor seconds since boot); ``switches`` (of the machine, since boot) and
    ``own_switches`` (involuntary ones of this process); ``own_wait`` (seconds in which this thread was ready
    to run, and had no core); ``frequency_mhz`` (of the first processor).
    """
    base = "" if root == Path("/") else str(root)
    sample: dict[str, float] = {}
    _load(_read(f"{base}/proc/loadavg"), sample)
    for resource_name in ("cpu", "memory", "io"):
        _stall(_read(f"{base}/proc/pressure/{resource_name}"), resource_name, sample)
    _stat(_read(f"{base}/proc/stat"), sample)
    frequency = _read(f"{base}/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq").strip()
    if frequency.isdigit():
        sample["frequency_mhz"] = int(frequency) / 1000
    _schedule(_read(f"{base}/proc/thread-self/schedstat"), sample)
    sample["own_switches"] = float(resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw)
    return sample


def _load(text: str, sample: dict[str, float]) -> None:
    fields = text.split()  # 0.02 0.09 0.06 2/95 8595
    if len(fields) >= 4:
        _put(sample, "load1", fields[0])
        _put(sample, "runnable", fields[3].partition("/")[0])


def _stall(text: str, name: str, sample: dict[str, float]) -> None:
    first = text.partition("\n")[0].split()  # some avg10=0.00 avg60=0.00 avg300=0.00 total=8033868
    if first[:1] == ["some"]:
        fields = dict(part.split("=", 1) for part in first[1:] if "=" in part)
        _put(sample, f"{name}_stall_avg10", fields.get("avg10", ""), 100)
        _put(sample, f"{name}_stall", fields.get("total", ""), 1e6)


def _stat(text: str, sample: dict[str, float]) -> None:
    fields = text.partition("\n")[0].split()  # cpu user nice system idle iowait irq softirq steal ...
    if len(fields) >= 9 and fields[0] == "cpu" and all(field.isdigit() for field in fields[1:9]):
        user, nice, system, _, _, irq, softirq, steal = (int(field) for field in fields[1:9])
        sample["busy"] = (user + nice + system + irq + softirq) / _TICK
        sample["steal"] = steal / _TICK
    _put(sample, "switches", text.partition("\nctxt ")[2].partition("\n")[0])


def _schedule(text: str, sample: dict[str, float]) -> None:
    fields = text.split()  # nanoseconds on a core, nanoseconds ready and without one, times on a core
    if len(fields) == 3:
        _put(sample, "own_wait", fields[1], 1e9)


def _put(sample: dict[str, float], name: str, text: str, divisor: float = 1.0) -> None:
    try:
        sample[name] = float(text) / divisor
    except ValueError:
        return


def _read(path: str) -> str:
    # os.open and os.read take a third of the time of a file object.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(descriptor, 1 << 17).decode(errors="replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)
