"""The devices that a :class:`~autotune.measure.gpu.timing.Timer` works on: a GPU under CUDA, and the CPU."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from autotune.errors import AutotuneError
from autotune.measure.diagnostics import text_of
from autotune.measure.gpu.events import CudaEvents, EventSource, HostEvents
from autotune.measure.gpu.timing import Apparatus, CannotCapture

FLUSHES = 2
"""The size of the buffer that is written to flush a cache, over the size of the cache."""

_UNKNOWN_L2 = 64 << 20
"""The assumed bytes of the cache where PyTorch does not report them."""

_HOST_CACHE = 32 << 20
"""The assumed bytes of the CPU's last-level cache."""


class CudaApparatus:
    """A GPU through ``torch.cuda``."""

    def __init__(self, device: Any) -> None:
        import torch

        self.device = device
        self.events: EventSource = CudaEvents(device)
        properties = torch.cuda.get_device_properties(device)
        self.flush_bytes = FLUSHES * (getattr(properties, "L2_cache_size", 0) or _UNKNOWN_L2)
        self._buffer: Any = None
        self._stream: Any = None
        self._gap: Any = None
        khz = getattr(properties, "clock_rate", 0) or 1_500_000
        self._cycles_per_second = khz * 1e3

    def flush(self) -> None:
        import torch

        if self._buffer is None:
            self._buffer = torch.empty(self.flush_bytes, dtype=torch.uint8, device=self.device)
        self._buffer.zero_()

    def hold(self, seconds: float) -> None:
        import torch

        sleep = getattr(torch.cuda, "_sleep", None)  # not documented, and only an improvement
        if sleep is not None:
            sleep(int(seconds * self._cycles_per_second))

    def capture(self, run: Callable[[], None]) -> Callable[[], None]:
        import torch

        graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.current_stream(self.device)
        torch.cuda.synchronize(self.device)
        try:
            with torch.cuda.device(self.device), torch.cuda.stream(self._capturing()), _no_collection():
                graph.capture_begin()
                try:
                    run()
                finally:
                    graph.capture_end()
        except (RuntimeError, AutotuneError) as error:
            torch.cuda.set_stream(stream)
            torch.cuda.synchronize(self.device)  # raises where the device is gone, and not only the graph
            why = text_of(error).partition("\n")[0]
            raise CannotCapture(f"it cannot be captured in a CUDA graph: {why}") from error
        replay: Callable[[], None] = graph.replay
        return replay

    def _capturing(self) -> Any:
        """A stream to capture on: the default one cannot be captured."""
        import torch

        if self._stream is None:
            self._stream = torch.cuda.Stream(self.device)
        return self._stream

    def free_bytes(self) -> int:
        import torch

        # Memory that PyTorch keeps from earlier tensors is free for new ones. Without it, a plan would depend
        # on what ran before.
        kept = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return int(torch.cuda.mem_get_info(self.device)[0] + kept)

    def relocate(self, gap_bytes: int) -> None:
        import torch

        self._gap = None
        torch.cuda.empty_cache()
        with suppress(torch.cuda.OutOfMemoryError):  # then there is no gap
            self._gap = torch.empty(gap_bytes, dtype=torch.uint8, device=self.device)


class HostApparatus:
    """The CPU: a call has done its work when it returns, so nothing has to be held or replayed."""

    def __init__(self) -> None:
        self.events: EventSource = HostEvents()
        self.flush_bytes = FLUSHES * _HOST_CACHE
        self._buffer: Any = None

    def flush(self) -> None:
        import torch

        if self._buffer is None:
            self._buffer = torch.empty(self.flush_bytes, dtype=torch.uint8)
        self._buffer.zero_()

    def hold(self, seconds: float) -> None:
        return

    def capture(self, run: Callable[[], None]) -> Callable[[], None]:
        raise CannotCapture("the CPU has no graphs")

    def free_bytes(self) -> int:
        import psutil

        return int(psutil.virtual_memory().available)

    def relocate(self, gap_bytes: int) -> None:
        return


@contextmanager
def _no_collection() -> Iterator[None]:
    """No garbage collection inside: a tensor that is freed while a graph is captured makes the capture fail.

    Collecting before each capture would work as well, but takes 90 ms in a process that has loaded PyTorch:
    as long as everything else that is done to read a kernel.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def find_apparatus(device: Any) -> Apparatus:
    """The apparatus for ``device`` (a ``torch.device``)."""
    return CudaApparatus(device) if device.type == "cuda" else HostApparatus()
