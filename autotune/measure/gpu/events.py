"""Where times come from: marks in the stream of a device's work, and the seconds between two of them.

A mark costs the device next to nothing, and the host does not wait for it. The time between two marks is
known only after :meth:`EventSource.wait` or :meth:`EventSource.synchronise`.
"""

from __future__ import annotations

from typing import Any, Protocol

from autotune.measure.clocks import perf_counter

RESOLUTION = 0.5e-6
"""The resolution of ``cudaEventElapsedTime`` in seconds, according to NVIDIA."""


class EventSource(Protocol):
    """Marks in the stream of work of one device."""

    resolution: float
    """By how many seconds the time between two marks may be off."""

    def record(self) -> Any:
        """A mark after all work that was submitted to the device so far."""

    def elapsed(self, start: Any, end: Any) -> float:
        """Seconds between two marks that the device has passed."""

    def wait(self, mark: Any) -> None:
        """Wait until the device has passed a mark; raises the error of work before it."""

    def synchronise(self) -> None:
        """Wait until the device has done all work that was submitted; raises the error of that work."""


class CudaEvents:
    """``torch.cuda.Event`` on the current stream of a device."""

    resolution = RESOLUTION

    def __init__(self, device: Any) -> None:
        self._device = device

    def record(self) -> Any:
        import torch

        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self._device))
        return event

    def elapsed(self, start: Any, end: Any) -> float:
        return float(start.elapsed_time(end)) * 1e-3

    def wait(self, mark: Any) -> None:
        mark.synchronize()

    def synchronise(self) -> None:
        import torch

        torch.cuda.synchronize(self._device)


class HostEvents:
    """The host's clock, for a device that has done its work when the call returns: the CPU."""

    resolution = 0.1e-6

    def record(self) -> Any:
        return perf_counter()

    def elapsed(self, start: Any, end: Any) -> float:
        return float(end - start)

    def wait(self, mark: Any) -> None:
        return

    def synchronise(self) -> None:
        return
