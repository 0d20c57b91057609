"""What all Triton kernels here have in common: compiling ahead, launching, and the interpreter.

An objective says what its inputs and outputs are and which launches a configuration stands for. On a
machine with a GPU they are compiled in the preparing process (without a context on the device), and
infeasible ones are known there. Without a GPU the kernels can be run by Triton's interpreter, to see
whether their answers are right::

    TRITON_INTERPRET=1  and in the space file  workload: {interpret: true, ...}

What takes how long in the interpreter says nothing of a GPU. So it is used only when it is asked for twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import triton
from triton_compile import Binary, Launch, compile_kernel, compile_launch, wake

from autotune.measure.kernels.device_objective import DeviceObjective
from autotune.measure.kernels.library_call import LibraryCall
from autotune.measure.objective import Baseline, Code, Context, Infeasible
from autotune.space.configuration import Configuration

Shape = tuple[tuple[int, ...], torch.dtype]
"""Shape and type of a tensor."""

Tensors = Mapping[str, torch.Tensor]

TYPES: Mapping[torch.dtype, str] = {
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.float32: "fp32",
    torch.float64: "fp64",
    torch.float8_e4m3fn: "fp8e4nv",
    torch.float8_e5m2: "fp8e5",
    torch.int32: "i32",
    torch.int64: "i64",
}
"""What Triton calls PyTorch's types."""

FLOATS: Mapping[str, torch.dtype] = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}

PRECISIONS = ("tf32", "ieee")
"""How factors of float32 products may be rounded."""

ROW_TOLERANCES: Mapping[torch.dtype, float] = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}
"""Of what is computed of a row in float32, and then rounded to the type."""

SOME_MULTIPROCESSORS = 4
"""Where there is no GPU to count them on: few, so that each program has several pieces of work."""

INTERPRETER = "Triton's interpreter on the CPU: its times say nothing of a GPU"


@dataclass(frozen=True)
class Prepared:
    """A configuration that was compiled for a device, or (without binaries) that is to be interpreted."""

    configuration: Configuration
    binaries: tuple[Binary, ...] = ()


@dataclass
class Kernel:
    """What runs: the launches of a configuration in their order, with what starts each; scratch memory."""

    starts: tuple[tuple[Callable[..., Any], Launch], ...]
    scratch: Tensors = field(default_factory=dict)

    def __call__(self, inputs: Tensors, outputs: Tensors) -> None:
        for start, launch in self.starts:
            values = [self._value(value, inputs, outputs) for value in launch.arguments.values()]
            start(*values, *launch.constants.values())

    def _value(self, value: str | int | float, inputs: Tensors, outputs: Tensors) -> Any:
        if not isinstance(value, str):
            return value
        for tensors in (outputs, inputs, self.scratch):
            if value in tensors:
                return tensors[value]
        raise KeyError(f"no input, output or scratch tensor is called {value!r}")


class TritonObjective(DeviceObjective):
    """Base class of Triton kernels: subclasses define the problem, ``launches`` and ``library``.

    Workload: ``interpret`` (whether to be content with the interpreter, default no), besides that of
    :class:`~autotune.measure.kernels.device_objective.DeviceObjective`.
    """

    device_facts = (*DeviceObjective.device_facts, "interpret")

    precision: str = "ieee"
    """One of :data:`PRECISIONS`, for the kernel and for the library alike."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        known = context.device.get("compute_capability")
        self.capability: float | None = float(known) if known is not None else None
        self.interpreted = bool(triton.knobs.runtime.interpret)
        wanted = context.flag("interpret")
        if self.interpreted and not wanted:
            raise Infeasible(
                "TRITON_INTERPRET is set, and times in Triton's interpreter say nothing of a GPU; to try the "
                "kernels out all the same write  interpret: true  in a small workload"
            )
        if wanted and not self.interpreted:
            raise Infeasible("interpret: true in the workload needs TRITON_INTERPRET=1 in the environment")
        if not self.interpreted and self.device.type == "cuda" and self.capability is None:
            major, minor = torch.cuda.get_device_capability(self.device)
            self.capability = float(f"{major}.{minor}")
        if not self.interpreted and self.capability is None:
            raise Infeasible(
                "there is no GPU here; Triton's interpreter can try the kernels out, though its times say "
                "nothing: set TRITON_INTERPRET=1 and write  interpret: true  in a small workload"
            )

    # -- what a subclass says ----------------------------------------------------------------

    def inputs(self) -> Mapping[str, Shape]:
        """Shape and type of each input by name."""
        raise NotImplementedError(f"{type(self).__name__} must define inputs()")

    def launches(self, configuration: Configuration) -> tuple[Launch, ...]:
        """The launches that a configuration stands for, in their order."""
        raise NotImplementedError(f"{type(self).__name__} must define launches()")

    def scratch(self, configuration: Configuration) -> Mapping[str, Shape]:
        """Memory that the launches hand things over in; default: none."""
        return {}

    def library(self, inputs: Tensors) -> Any:
        """The same with PyTorch: the output, or a tuple of them in their order."""
        raise NotImplementedError(f"{type(self).__name__} must define library()")

    def library_into(self, inputs: Tensors, outputs: Tensors) -> Any:
        """The same as :meth:`library`, written to ``outputs`` where PyTorch can do that; else returned."""
        return self.library(inputs)

    def widens(self, dtype: torch.dtype) -> bool:
        """Whether factors of a product have to be float32: the interpreter multiplies bfloat16 as if it were
        whole numbers. They keep the values that they were rounded to."""
        return self.interpreted and dtype is torch.bfloat16

    # -- inputs ------------------------------------------------------------------------------

    def make_inputs(self, rng: np.random.Generator) -> Tensors:
        """Fresh random inputs."""
        return {
            name: self.random(name, shape, rng).to(dtype) for name, (shape, dtype) in self.inputs().items()
        }

    def random(self, name: str, shape: tuple[int, ...], rng: np.random.Generator) -> torch.Tensor:
        """Values of the input ``name`` in float32; default: standard normal."""
        return torch.randn(shape, generator=self.generator(rng), device=self.device)

    def programs(self, most: int, per_multiprocessor: int) -> int:
        """How many programs share ``most`` pieces of work; 0 a multiprocessor: each piece has its own."""
        if per_multiprocessor == 0:
            return most
        return min(most, per_multiprocessor * int(self.context.device.get("sm_count", SOME_MULTIPROCESSORS)))

    def by_rows(
        self, kernel: Any, arguments: Mapping[str, Any], configuration: Configuration
    ) -> tuple[Launch, ...]:
        """One launch of a kernel that takes some of the ``rows`` of its arguments at a time, in blocks."""
        rows, block, stages = (int(configuration[knob]) for knob in ("rows_at_once", "block", "stages"))
        looped = block < arguments["columns"]
        return (
            Launch(
                kernel,
                (self.programs(triton.cdiv(arguments["rows"], rows), int(configuration["programs"])),),
                arguments,
                {"ROWS": rows, "BLOCK": block, "LOOPED": looped, "STAGES": stages},
                warps=int(configuration["warps"]),
                stages=stages,
            ),
        )

    # -- the way of a configuration ----------------------------------------------------------

    def stand_by(self) -> None:
        """On a GPU also Triton itself, and what it launches with, which on a new machine is in C."""
        super().stand_by()
        if self.device.type == "cuda":
            wake(*self._target)
            triton.runtime.driver.active.get_current_target()

    def prepare(self, configuration: Configuration) -> Prepared:
        """Compile all launches for the device; :class:`Infeasible` where it lacks the resources they need."""
        launches = self.launches(configuration)
        if self.interpreted:
            return Prepared(configuration)
        types = self._types(configuration)
        binaries = tuple(compile_launch(launch, types, *self._target) for launch in launches)
        for binary in binaries:
            self._fits(binary)
        return Prepared(configuration, binaries)

    def code(self, prepared: Prepared) -> Code:
        """Of several kernels the most that any of them takes; registers and spilled bytes are of a thread."""
        binaries = prepared.binaries
        if not binaries:
            return Code(facts={"runs_in": INTERPRETER})
        taken = {
            "registers": [binary.registers for binary in binaries],
            "spilled_bytes": [binary.spilled_bytes for binary in binaries],
            "shared_bytes": [binary.shared_bytes for binary in binaries],
        }
        resources = {name: max(numbers) for name, numbers in taken.items() if None not in numbers}
        seconds = sum(binary.seconds for binary in binaries)
        return Code("-".join(binary.code for binary in binaries), resources, {"compile_seconds": seconds})

    def load(self, prepared: Prepared) -> Kernel:
        """What can be called. Scratch memory is full of NaN, so that nothing of an earlier trial is in it."""
        if not self.interpreted:
            self.require_gpu()
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)  # where Triton launches, wherever its tensors lie
        configuration = prepared.configuration
        types = self._types(configuration)
        starts = tuple((self._start(launch, types), launch) for launch in self.launches(configuration))
        scratch = {
            name: torch.full(shape, float("nan"), dtype=dtype, device=self.device)
            for name, (shape, dtype) in self.scratch(configuration).items()
        }
        return Kernel(starts, scratch)

    def call(self, loaded: Kernel, inputs: Tensors, outputs: Mapping[str, torch.Tensor]) -> None:
        loaded(inputs, outputs)

    def _start(self, launch: Launch, types: Mapping[str, str]) -> Callable[..., Any]:
        if self.interpreted:
            interpreted: Callable[..., Any] = launch.kernel[launch.grid]
            return interpreted
        compiled = compile_kernel(launch, types, *self._target)  # from the cache
        start: Callable[..., Any] = compiled[(*launch.grid, 1, 1)[:3]]
        size = compiled.metadata.global_scratch_size * math.prod(launch.grid)
        return with_scratch(start, size, self.device) if size else start

    @property
    def _target(self) -> tuple[float, Path]:
        """What to compile for, and the folder where other processes find it."""
        assert self.capability is not None
        return self.capability, self.context.cache / "triton"

    def _types(self, configuration: Configuration) -> dict[str, str]:
        tensors = {**self.scratch(configuration), **self.inputs(), **self.outputs()}
        return {name: TYPES[dtype] for name, (_, dtype) in tensors.items()}

    def _fits(self, binary: Binary) -> None:
        limits = self.context.device
        shared = limits.get("shared_memory_bytes")
        if shared is not None and binary.shared_bytes > shared:
            raise Infeasible(
                f"{binary.name} needs {binary.shared_bytes:,} bytes of shared memory, a block has {shared:,}"
            )
        threads = limits.get("max_threads")
        if threads is not None and binary.threads > threads:
            raise Infeasible(f"{binary.name} needs {binary.threads} threads, a block has {threads}")

    # -- baselines ---------------------------------------------------------------------------

    def baselines(self) -> tuple[Baseline, ...]:
        """PyTorch as it comes and, on a GPU, as ``torch.compile`` tunes it."""
        library = Baseline("torch", "PyTorch as it comes: the vendor's library where there is one")
        if self.device.type != "cuda":
            return (library,)
        return library, Baseline("torch-compile", "torch.compile, mode max-autotune, without CUDA graphs")

    def load_baseline(self, baseline: Baseline) -> LibraryCall:
        # Else the library multiplies in full float32 where the kernel rounds to tf32, and loses by that.
        torch.backends.cuda.matmul.allow_tf32 = self.precision == "tf32"
        if baseline.name == "torch-compile":
            compiled = torch.compile(self.library, mode="max-autotune-no-cudagraphs", dynamic=False)
            return LibraryCall(lambda _, inputs, outputs: compiled(inputs))
        return LibraryCall(lambda _, inputs, outputs: self.library_into(inputs, outputs))


def with_scratch(start: Callable[..., Any], size: int, device: torch.device) -> Callable[..., Any]:
    """``start``, which finds that many bytes of global memory when Triton asks for them at each launch.

    That is where programs build their tensor descriptors. All launches have the same memory, and so follow
    one another. So nothing is allocated while a CUDA graph is captured. Triton keeps in a context variable
    whom it asks, so that nobody else's launches are touched by what is set in a context of their own.
    """
    memory = torch.empty(size, dtype=torch.int8, device=device)
    context = copy_context()
    context.run(triton.set_allocator, lambda size, alignment, stream: memory)
    return partial(context.run, start)


def float_type(context: Context) -> torch.dtype:
    """The workload's ``dtype``, default ``float32``."""
    return FLOATS[context.choice("dtype", FLOATS, default="float32")]
