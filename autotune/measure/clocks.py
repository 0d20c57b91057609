"""The clocks, bound before any objective is loaded.

One that puts a function of its own in the place of ``time.perf_counter``, as a simulation may, changes what
its own code sees, and not what is measured of it.
"""

from __future__ import annotations

from time import monotonic, perf_counter, process_time

__all__ = ["monotonic", "perf_counter", "process_time"]
