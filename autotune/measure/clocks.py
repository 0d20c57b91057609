"""The clocks, bound before any objective is loaded.

So an objective that replaces ``time.perf_counter``, as a simulation may, changes the time that its own code
sees and not the time that is measured.
"""

from __future__ import annotations

from time import monotonic, perf_counter, process_time

__all__ = ["monotonic", "perf_counter", "process_time"]
