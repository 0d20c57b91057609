"""Where times come from: marks in the order of the device's work, and the seconds between two of them.

A mark costs the device next to nothing and the host does not wait for it. Only after
:meth:`EventSource.wait` or :meth:`EventSource.synchronise` may one ask how far two marks are apart.
"""

from __future__ import annotations

from typing import Any, Protocol

from autotune.measure.clocks import perf_counter

RESOLUTION = 0.5e-6
"""Seconds. What NVIDIA gives as the resolution of ``cudaEventElapsedTime``."""


class EventSource(Protocol):
    """Marks in the stream of work of one device."""

    resolution: float
    """Seconds that the distance of two marks may be wrong by."""

    def record(self) -> Any:
        """A mark behind all work that was handed to the device so far."""
        ...

    def elapsed(self, start: Any, end: Any) -> float:
        """Seconds between two marks that the device has passed."""
        ...

    def wait(self, mark: Any) -> None:
        """Wait until the device has passed a mark; raises what went wrong in it."""
        ...

    def synchronise(self) -> None:
        """Wait until the device has done all work that it was handed; raises what went wrong in it."""
        ...


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
