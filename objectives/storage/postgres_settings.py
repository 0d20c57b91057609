"""Knobs as PostgreSQL's settings, and what is usually advised for a machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MIB_IN_PAGES, _KIB_A_PAGE = 128, 8
"""Sizes of memory are in pages of 8 KiB there."""


@dataclass(frozen=True)
class Setting:
    """What a knob sets, and how many of the setting's own units its unit has."""

    name: str
    times: float = 1


SETTINGS: Mapping[str, Setting] = {
    "shared_buffers_mib": Setting("shared_buffers", _MIB_IN_PAGES),
    "work_mem_kib": Setting("work_mem"),
    "effective_cache_size_mib": Setting("effective_cache_size", _MIB_IN_PAGES),
    "random_page_cost": Setting("random_page_cost"),
    "effective_io_concurrency": Setting("effective_io_concurrency"),
    "max_parallel_workers_per_gather": Setting("max_parallel_workers_per_gather"),
    "plan_cache_mode": Setting("plan_cache_mode"),
    "wal_buffers_kib": Setting("wal_buffers", 1 / _KIB_A_PAGE),
    "wal_compression": Setting("wal_compression"),
    "wal_sync_method": Setting("wal_sync_method"),
    "max_wal_size_mib": Setting("max_wal_size"),
    "commit_delay_us": Setting("commit_delay"),
    "commit_siblings": Setting("commit_siblings"),
    "autovacuum_naptime_s": Setting("autovacuum_naptime"),
}
"""By knob."""
CHOSEN_BY_SERVER = -1
"""A size with which the server chooses one itself, and then says which."""


def settings_of(knobs: Mapping[str, Any]) -> dict[str, str]:
    """What the server is told, by its own names; a name that is no knob's is a setting already."""
    found = {}
    for name, value in knobs.items():
        setting = SETTINGS.get(name, Setting(name))
        found[setting.name] = _text(value, setting.times)
    return found


def _text(value: Any, times: float) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        return value
    return f"{value if value == CHOSEN_BY_SERVER else value * times:.12g}"


def is_as_told(told: str, found: str) -> bool:
    """Whether the server has a setting as it was told it."""
    if told in (str(CHOSEN_BY_SERVER), found):
        return True
    try:
        return float(told) == float(found)
    except ValueError:
        return False


def pgtune(memory_bytes: int, cores: int) -> dict[str, Any]:
    """What PGTune advises for a machine with an SSD and a "mixed" load, as settings in their own units.

    From ``configurationSlice.js`` of https://github.com/le0pard/pgtune: a quarter of the memory for shared
    buffers and three quarters as the planner's idea of the caches; for a sort half of what else there is,
    over three times 100 connections and the worker processes (8, or from 4 cores on one a core), and 4 MiB
    at least; 3 % of the shared buffers for the log, up to 16 MiB; no JIT; lz4 for page images. From 4 cores
    on half of them, up to 4, work on a query. Its advice on building indices is left out: none is built.
    """
    memory = memory_bytes >> 10
    shared = memory // 4
    workers = cores if cores >= 4 else 8
    work = max(4096, (memory - shared) // ((100 + workers) * 3) // 2)
    advised: dict[str, Any] = {
        "shared_buffers": shared // _KIB_A_PAGE,
        "effective_cache_size": memory * 3 // 4 // _KIB_A_PAGE,
        "work_mem": work,
        "wal_buffers": max(32, min(shared * 3 // 100, 16384)) // _KIB_A_PAGE,
        "random_page_cost": 1.1,
        "effective_io_concurrency": 200,
        "jit": False,
        "wal_compression": "lz4",
        "min_wal_size": 1024,
        "max_wal_size": 4096,
    }
    if cores >= 4:
        advised |= {
            "max_worker_processes": cores,
            "max_parallel_workers": cores,
            "max_parallel_workers_per_gather": min(4, -(-cores // 2)),
        }
    return advised
