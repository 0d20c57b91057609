"""Resources of each kernel from the log of the assembler (``ptxas -v``): registers, spills, shared memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_STACK = re.compile(r"bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


@dataclass(frozen=True)
class KernelResources:
    """What one kernel takes: registers and bytes of spills for each thread, bytes of shared memory."""

    registers: int
    spill_store_bytes: int
    spill_load_bytes: int
    shared_static_bytes: int


def read_log(log: str) -> Mapping[str, KernelResources]:
    """The kernels of one compilation by name. Raises ``ValueError`` for a log in another form."""
    parts = _ENTRY.split(log)[1:]
    return {name: _read(name, text) for name, text in zip(parts[::2], parts[1::2], strict=True)}


def names_kernels(log: str) -> bool:
    """Whether the log has any kernel."""
    return _ENTRY.search(log) is not None


def _read(name: str, text: str) -> KernelResources:
    stack, registers, shared = _STACK.search(text), _REGISTERS.search(text), _SHARED.search(text)
    if stack is None or registers is None:
        raise ValueError(
            f"ptxas says nothing of the registers or the stack of {name!r}: {text.strip()[:500]}"
        )
    return KernelResources(
        registers=int(registers.group(1)),
        spill_store_bytes=int(stack.group(1)),
        spill_load_bytes=int(stack.group(2)),
        shared_static_bytes=int(shared.group(1)) if shared else 0,
    )
