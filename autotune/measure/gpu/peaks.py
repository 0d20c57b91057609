"""Measures the peaks of a GPU: bytes a second by copying, operations a second by large matrix products.

This takes some hundred milliseconds, once a session on each GPU. The result stays in the cache folder of the
session, so that a device that is slower tomorrow is not compared with the peaks of yesterday.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from autotune.measure.gpu.timing import Apparatus
from autotune.measure.kernels.compile_cache import write_whole
from autotune.measure.kernels.roofline import Peaks

ARITHMETIC = ("float64", "float32", "tf32", "float16", "bfloat16", "float8_e4m3fn")
COPIED_BYTES = 1 << 30
SIZE = 8192
"""The side of the matrices."""
REPEATS = 5


def known_peaks(device: Any, apparatus: Apparatus, folder: Path) -> Peaks | None:
    """The peaks of a GPU, measured where ``folder`` does not have them yet; of a CPU none."""
    if device.type != "cuda":
        return None
    file = folder / f"peaks-{device_uuid(device)}.json"
    if (found := read_peaks(file)) is None:
        found = measure_peaks(device, apparatus)
        write_peaks(file, found)
    return found


def device_uuid(device: Any) -> str:
    """``GPU-...`` as NVML writes it; empty where PyTorch does not report it."""
    import torch

    uuid = str(getattr(torch.cuda.get_device_properties(device), "uuid", ""))
    return uuid if not uuid or uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"


def measure_peaks(device: Any, apparatus: Apparatus) -> Peaks:
    """Measure the peaks. Types that the GPU lacks, or that its memory has no room for, are left out."""
    import torch

    room = apparatus.free_bytes() // 4
    source = torch.empty(min(COPIED_BYTES, room // 2), dtype=torch.uint8, device=device)
    bandwidth = 2 * source.numel() / _best(apparatus, partial(torch.empty_like(source).copy_, source))
    del source
    operations = {}
    for name in ARITHMETIC:
        # No such type on this GPU, or in this PyTorch.
        with suppress(RuntimeError, TypeError, AttributeError):
            operations[name] = _product_rate(name, device, apparatus, room)
    return Peaks(bandwidth, operations)


def read_peaks(file: Path) -> Peaks | None:
    """What an earlier process of the session has measured."""
    try:
        found = json.loads(file.read_text())
        return Peaks(float(found["bandwidth"]), {str(k): float(v) for k, v in found["operations"].items()})
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None


def write_peaks(file: Path, peaks: Peaks) -> None:
    text = json.dumps({"bandwidth": peaks.bandwidth, "operations": dict(peaks.operations)})
    write_whole(file, text.encode())


def _product_rate(name: str, device: Any, apparatus: Apparatus, room: int) -> float:
    """Operations a second of a square product of random matrices, in one type of arithmetic."""
    import torch

    size = 2048 if name == "float64" or room < 3 * 4 * SIZE**2 else SIZE
    a, b = (torch.randn(size, size, device=device) for _ in range(2))
    if name == "float8_e4m3fn":
        one = torch.ones((), device=device)
        eight, other = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn).t()

        def product() -> Any:
            return torch._scaled_mm(eight, other, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)

        return 2 * size**3 / _best(apparatus, product)
    dtype = torch.float32 if name == "tf32" else getattr(torch, name)
    a, b = a.to(dtype), b.to(dtype)
    allowed = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    try:
        return 2 * size**3 / _best(apparatus, lambda: torch.matmul(a, b))
    finally:
        torch.backends.cuda.matmul.allow_tf32 = allowed


def _best(apparatus: Apparatus, run: Callable[[], Any]) -> float:
    """Seconds of the fastest of some runs, since a peak is wanted and not an average."""
    events = apparatus.events
    run()
    marks = []
    for _ in range(REPEATS):
        start = events.record()
        run()
        marks.append((start, events.record()))
    events.synchronise()
    return max(min(events.elapsed(*pair) for pair in marks), 1e-9)
