"""One launch of a Triton kernel, and its compilation ahead: for a named target, without a GPU or its context.

:func:`compile_kernel` gives Triton's compiled kernel, whose binary lies in a cache folder that other
processes share: what a preparing process has compiled, the measuring one finds there. What is known
of it before it ever ran (registers, spilled bytes, shared memory) comes from the compiler and the binary, and
takes a process to read: :func:`compile_launch` does that, ahead, and whoever measures does without.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from autotune.measure.objective import Infeasible

DIVISOR = 16
"""Of addresses and numbers, in bytes and units: what Triton specialises a kernel for."""


class Wide(int):
    """A number that a kernel is given as 64 bits, whatever its size: products of it do not fit 32."""


def stride(elements: int, count: int) -> int:
    """How far apart ``count`` things of one tile are: :class:`Wide` where the last is 2^31 elements away."""
    return Wide(elements) if elements * count >= 2**31 else elements


@dataclass(frozen=True)
class Launch:
    """A kernel and what it is called with.

    ``arguments`` follow the order of the kernel's parameters: the name of a tensor, or a number.
    ``constants`` are its ``constexpr`` parameters, which come last.
    """

    kernel: Any
    grid: tuple[int, ...]
    arguments: Mapping[str, str | int | float]
    constants: Mapping[str, Any] = field(default_factory=dict)
    warps: int = 4
    stages: int = 3


@dataclass(frozen=True)
class Binary:
    """What is known of one compiled launch before it runs. Bytes of shared memory are those of a block."""

    name: str
    registers: int | None
    """Of a thread; ``None``: the tool that reads it from the binary is missing."""
    spilled_bytes: int | None
    """Local memory of a thread, where the compiler puts what registers do not hold."""
    shared_bytes: int
    threads: int
    seconds: float
    """That the compiler took; next to nothing where the binary was in the cache."""
    code: str
    """Hash of the binary and of how it is launched: the same code has the same hash."""


def source_of(launch: Launch, types: Mapping[str, str]) -> ASTSource:
    """The launch with types in place of values, specialised as Triton's own launcher does it.

    ``types`` are the tensors' (``fp16``, ``fp32``, ``i8`` ...). Tensors are taken to be aligned to 16 bytes.
    """
    signature: dict[str, str] = {}
    constants: dict[str, Any] = dict(launch.constants)
    attributes: dict[tuple[int, ...], list[list[Any]]] = {}
    aligned = [["tt.divisibility", DIVISOR]]
    for position, (name, value) in enumerate(launch.arguments.items()):
        if isinstance(value, str):
            signature[name] = f"*{types[value]}"
            attributes[(position,)] = aligned
        elif isinstance(value, float):
            signature[name] = "fp32"
        elif value == 1:
            signature[name] = "constexpr"
            constants[name] = 1
        else:
            narrow = -(2**31) <= value < 2**31 and not isinstance(value, Wide)
            signature[name] = "i32" if narrow else "i64"
            if value % DIVISOR == 0:
                attributes[(position,)] = aligned
    signature |= dict.fromkeys(launch.constants, "constexpr")
    return ASTSource(fn=launch.kernel, signature=signature, constexprs=constants, attrs=attributes)


def compile_kernel(launch: Launch, types: Mapping[str, str], capability: float, cache: Path) -> Any:
    """Triton's compiled kernel for a GPU of that compute capability.

    Raises :class:`Infeasible` where Triton or ptxas refuses the configuration.
    """
    options = {"num_warps": launch.warps, "num_stages": launch.stages, "enable_fp_fusion": True}
    target = GPUTarget("cuda", round(capability * 10), 32)
    with triton.knobs.cache.scope():
        triton.knobs.cache.dir = str(cache)
        try:
            return triton.compile(source_of(launch, types), target=target, options=options)
        except (OSError, MemoryError):
            raise
        except Exception as error:  # a compiler's refusals have no common type
            raise Infeasible(f"Triton refuses {launch.kernel.__name__}: {_last_lines(error)}") from error


def wake(capability: float, cache: Path) -> None:
    """Have Triton do once what the first kernel of a process waits for: with the keys of its cache it hashes
    itself, all of it, which takes a third of a second."""
    compile_kernel(Launch(_nothing, (1,), {}), {}, capability, cache)


@triton.jit
def _nothing():  # type: ignore[no-untyped-def]
    return


def compile_launch(launch: Launch, types: Mapping[str, str], capability: float, cache: Path) -> Binary:
    """Compile it as :func:`compile_kernel` does, and say what is known of it then."""
    start = time.perf_counter()
    compiled = compile_kernel(launch, types, capability, cache)
    seconds = time.perf_counter() - start
    cubin = compiled.asm["cubin"]
    registers, spilled = resource_usage(cubin)
    identity = hashlib.sha256(cubin)
    identity.update(repr((launch.grid, tuple(launch.arguments.items()), launch.warps)).encode())
    return Binary(
        name=launch.kernel.__name__,
        registers=registers,
        spilled_bytes=spilled,
        shared_bytes=int(compiled.metadata.shared),
        # The compiler may add warps to those that were asked for, and knows how many.
        threads=int(compiled.metadata.num_warps) * 32,
        seconds=seconds,
        code=identity.hexdigest()[:16],
    )


def resource_usage(cubin: bytes) -> tuple[int | None, int | None]:
    """Registers and bytes of local memory of a thread, as the ``cuobjdump`` that Triton brings reads them."""
    try:
        tool = triton.knobs.nvidia.cuobjdump.path
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(cubin)
            file.flush()
            done = subprocess.run(
                [tool, "--dump-resource-usage", file.name], capture_output=True, text=True, check=True
            )
    except (OSError, RuntimeError, subprocess.CalledProcessError):
        return None, None
    registers = [int(number) for number in re.findall(r"\bREG:(\d+)", done.stdout)]
    local = [
        int(stack) + int(rest) for stack, rest in re.findall(r"\bSTACK:(\d+).*?\bLOCAL:(\d+)", done.stdout)
    ]
    return (max(registers, default=None), max(local, default=None))


def _last_lines(error: Exception) -> str:
    text = f"{type(error).__name__}: {error}".strip()
    return "\n".join(line for line in text.splitlines() if line.strip())[-1500:]
