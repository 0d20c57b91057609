"""Asks the CUDA driver for the limits of each GPU; prints one JSON list. Run as a script, in a child.

Only the driver knows shared memory, registers and the number of multiprocessors. But a process that
has initialised it cannot fork workers that use it, so a process of its own asks and ends. It needs
nothing but the standard library, and no context on any device.
"""

from __future__ import annotations

import ctypes
import json
import uuid

ATTRIBUTES = {
    "max_threads": 1,
    "warp_size": 10,
    "registers": 12,
    "sm_count": 16,
    "l2_bytes": 38,
    "sm_threads": 39,
    "major": 75,
    "minor": 76,
    "sm_shared_memory_bytes": 81,
    "sm_registers": 82,
    "shared_memory_bytes": 97,
}
"""Numbers of ``CUdevice_attribute`` in cuda.h: per block, shared memory as far as a kernel may opt in."""


def query() -> list[dict[str, object]]:
    """The visible GPUs in the order of CUDA; raises ``OSError`` where there is no driver."""
    driver = ctypes.CDLL("libcuda.so.1")
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return []
    return [_describe(driver, index) for index in range(count.value)]


def _describe(driver: ctypes.CDLL, index: int) -> dict[str, object]:
    device, name, memory = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_size_t()
    facts: dict[str, object] = {"index": index}
    if driver.cuDeviceGet(ctypes.byref(device), index):
        return facts
    if not driver.cuDeviceGetName(name, len(name), device):
        facts["name"] = name.value.decode(errors="replace")
    if not driver.cuDeviceTotalMem_v2(ctypes.byref(memory), device):
        facts["memory_bytes"] = memory.value
    identity, ask = (ctypes.c_ubyte * 16)(), getattr(driver, "cuDeviceGetUuid", None)
    if ask is not None and not ask(identity, device):
        facts["uuid"] = f"GPU-{uuid.UUID(bytes=bytes(identity))}"
    for attribute, number in ATTRIBUTES.items():
        value = ctypes.c_int()
        if not driver.cuDeviceGetAttribute(ctypes.byref(value), number, device):
            facts[attribute] = value.value
    return facts


if __name__ == "__main__":
    print(json.dumps(query()))
