"""Objectives that are kernels in CUDA C: a cubin for every configuration, or without a GPU the emulator."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Protocol

from autotune.measure.clocks import perf_counter
from autotune.measure.gpu.cuda_compiler import (
    CudaCompiler,
    architecture,
    find_compiler,
    options,
    package,
)
from autotune.measure.gpu.driver import Dimensions, Driver, served_major
from autotune.measure.gpu.nvrtc import CompilerRefusal
from autotune.measure.gpu.ptxas import KernelResources, names_kernels, read_log
from autotune.measure.gpu.shaking import shaken, shares_between_threads
from autotune.measure.gpu.tensors import Tensor
from autotune.measure.kernels.compile_cache import Compiled, cache_key, write_whole
from autotune.measure.kernels.device_objective import DeviceObjective
from autotune.measure.objective import Code, Context, Infeasible, WrongAnswer
from autotune.space.configuration import Configuration, Value

_WARP = 32
_MOST_SAID = 300
"""How many characters of a compiler's refusal are kept in the facts of a trial."""


@dataclass(frozen=True)
class Block:
    """How each block of a kernel is launched: its threads, and its dynamic shared memory."""

    threads: Dimensions
    shared_bytes: int = 0

    @property
    def size(self) -> int:
        x, y, z = self.threads
        return x * y * z


@dataclass(frozen=True)
class Program:
    """What :meth:`CudaObjective.prepare` makes of a configuration."""

    path: str
    """The cubin; for the emulator a shared library."""
    configuration: Configuration
    emulated: bool
    seconds: float = 0.0
    """How long the compiler took, in this search or an earlier one."""
    cached: bool = False
    """Whether it had been compiled before."""
    kernels: Mapping[str, KernelResources] | None = None
    """The resources of each kernel, as the assembler reports them; ``None`` for the emulator."""
    shaken: Program | None = None
    """The same kernels with delays at barriers (:mod:`autotune.measure.gpu.shaking`), for the check."""
    unshaken: str = ""
    """Why there is no such version, although a barrier may be missing."""


class Loaded(Protocol):
    """Kernels that can be launched, and the configuration that they were compiled for."""

    @property
    def configuration(self) -> Configuration: ...

    def launch(self, kernel: str, grid: Sequence[int], *arguments: Any) -> None:
        """Launch a kernel on PyTorch's current stream. Arguments are tensors and ctypes numbers."""


class CudaObjective(DeviceObjective):
    """Base class of kernels in CUDA C whose knobs are macros.

    Subclasses name the source, its kernels, and the macros and blocks of a configuration; ``launch`` launches
    the kernels. What varies with the workload is an argument of a kernel and not a macro, so that one program
    serves every shape. For a GPU that is here or that a profile describes, a configuration is compiled to a
    cubin, and one over the limits of the device is infeasible before it is launched. Where the workload has
    ``device: cpu``, the same source runs in :mod:`autotune.measure.gpu.emulator`. That shows whether answers
    are right, but its times mean nothing, which is why it has to be asked for.

    Where the source shares memory between threads, a check on a GPU also runs the kernels with delays at
    barriers (:mod:`autotune.measure.gpu.shaking`), since a missing barrier shows only now and then.
    """

    source: ClassVar[Path]
    """The .cu file. It includes nothing, and its shared memory is all dynamic."""
    kernels: ClassVar[tuple[str, ...]]
    """The ``extern "C"`` kernels in it."""

    def macros(self, configuration: Configuration) -> Mapping[str, Value]:
        """The value of each macro: a number, a text, or a flag, which is 1 or 0 in C."""
        raise NotImplementedError(f"{type(self).__name__} must define macros()")

    def blocks(self, configuration: Configuration) -> Mapping[str, Block]:
        """How each kernel is launched, by name."""
        raise NotImplementedError(f"{type(self).__name__} must define blocks()")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.emulates = context.workload.get("device") == "cpu"
        """Whether the CPU stands in for a GPU."""
        if not self.emulates and "compute_capability" not in context.device:
            raise Infeasible(
                "there is no GPU here; an emulator can try the kernels out, though its times say nothing: "
                "write  device: cpu  in a small workload"
            )

    # -- compiling -----------------------------------------------------------------------------

    def prepare(self, configuration: Configuration) -> Program:
        """Compile; raises :class:`Infeasible` where the compiler refuses it or a block exceeds the device."""
        try:
            return self._emulated(configuration) if self.emulates else self.compile(configuration)
        except CompilerRefusal as refusal:
            raise Infeasible(f"{self.source.name}: {refusal}") from refusal

    def compile(self, configuration: Configuration) -> Program:
        """A cubin for ``context.device``, which need not be here."""
        source = self.source.read_text()
        program = self._within_limits(self._cubin(source, configuration))
        if not shares_between_threads(source) or self._is_one_warp(configuration):
            return program
        try:
            other = self._within_limits(self._cubin(shaken(source, self.source.name), configuration))
        except (CompilerRefusal, Infeasible, NameError) as refusal:  # the program itself has been compiled
            return replace(program, unshaken=f"left out: {str(refusal)[:_MOST_SAID]}")
        return replace(program, shaken=other)

    def _is_one_warp(self, configuration: Configuration) -> bool:
        return all(block.size <= _WARP for block in self.blocks(configuration).values())

    def _cubin(self, source: str, configuration: Configuration) -> Program:
        capability = float(self.context.device["compute_capability"])
        wanted, compiler = options(architecture(capability), self.macros(configuration)), self._compiler
        key = cache_key(source=source, compiler=compiler.identity, options="\0".join(wanted))

        def make() -> Compiled:
            start = perf_counter()
            cubin, log = compiler.compile(source, self.source.name, wanted)
            if not names_kernels(log):
                raise NameError(f"{self.source.name}: the compiler's log names no kernel: are there any?")
            return Compiled(cubin, {"compile_seconds": perf_counter() - start, "log": log})

        made = self.compile_cache.get_or_make(key, make)
        path = self.context.cache / f"{self.source.stem}-{key[:16]}.cubin"
        write_whole(path, made.content)
        seconds, log = made.facts["compile_seconds"], str(made.facts["log"])
        return Program(str(path), configuration, False, float(str(seconds)), made.cached, read_log(log))

    def _within_limits(self, program: Program) -> Program:
        """``program``; raises :class:`Infeasible` where one of its blocks exceeds the device's limits."""
        there = program.kernels or {}
        for kernel, block in self.blocks(program.configuration).items():
            if kernel not in there:
                found = ", ".join(sorted(there))
                raise NameError(
                    f"{self.source.name} has the kernels {found}, but no {kernel}, which blocks() names: "
                    'is it misspelt, or not extern "C"?'
                )
            refuse_over_limits(kernel, block, there[kernel], self.context.device)
        return program

    def code(self, prepared: Program) -> Code:
        """The hash of the cubin and its launches, and the most that any kernel takes of each resource.

        A knob that neither macros() nor blocks() read can only be used by ``launch`` (how many blocks, how
        often), so configurations that differ in it are not the same code.
        """
        if prepared.kernels is None:
            return Code(facts={"emulated": True})
        blocks = self.blocks(prepared.configuration)
        kernels = {name: prepared.kernels[name] for name in blocks}
        launched = sorted(blocks.items()), self._left_to_launch(prepared.configuration)
        identity = Path(prepared.path).read_bytes() + repr(launched).encode()
        most = {
            "registers": max(k.registers for k in kernels.values()),
            "spilled_bytes": max(k.spill_store_bytes + k.spill_load_bytes for k in kernels.values()),
            "shared_bytes": max(
                blocks[name].shared_bytes + k.shared_static_bytes for name, k in kernels.items()
            ),
        }
        facts = {
            "compile_seconds": round(prepared.seconds, 4),
            "compiled_before": prepared.cached,
            "kernels": {name: asdict(resources) for name, resources in kernels.items()},
        }
        if prepared.shaken is not None:
            facts["shaken"] = {"compile_seconds": round(prepared.shaken.seconds, 4)}
        elif prepared.unshaken:
            facts["shaken"] = prepared.unshaken
        return Code(hashlib.sha256(identity).hexdigest(), most, facts)

    def _left_to_launch(self, configuration: Configuration) -> list[tuple[str, Value]]:
        """The knobs that neither macros() nor blocks() read."""
        watched = _Watched(configuration)
        self.macros(watched)
        self.blocks(watched)
        return sorted((name, value) for name, value in configuration.items() if name not in watched.asked)

    @cached_property
    def _compiler(self) -> CudaCompiler:
        served = served_major()
        compiler = find_compiler(served)
        if compiler is None:
            fitting = "" if served is None else f" of CUDA {served} or before, which the driver serves"
            raise CompilerRefusal(
                f"no CUDA compiler{fitting}: pip install {package(served)}, or put nvcc on the PATH"
            )
        return compiler

    def _emulated(self, configuration: Configuration) -> Program:
        from autotune.measure.gpu.emulator import emulated

        path = emulated(self.source, self.kernels, self.macros(configuration), self.context.cache)
        return Program(str(path), configuration, True)

    # -- loading and calling -------------------------------------------------------------------

    def launch(self, loaded: Loaded, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> None:
        """Launch the kernels of one call, which is what is timed."""
        raise NotImplementedError(f"{type(self).__name__} must define launch()")

    def call(self, loaded: Loaded, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> None:
        self.launch(loaded, inputs, outputs)

    def load(self, prepared: Program) -> Loaded:
        blocks = self.blocks(prepared.configuration)
        if prepared.emulated:
            return _OnEmulator(prepared, blocks)
        self.require_gpu()
        return _OnDevice(prepared, blocks, self.device)

    def _provoke(self, loaded: Any, once: Callable[[Any], float]) -> None:
        other = loaded.shaken() if isinstance(loaded, _OnDevice) else None
        if other is None:
            return
        try:
            once(other)
        except WrongAnswer as wrong:
            raise WrongAnswer(
                f"with the warps held up at barriers: {wrong}: a barrier is missing somewhere"
            ) from wrong


class _Watched(Configuration):
    """A configuration that notes which knobs are read; asking whether a knob exists does not count."""

    __slots__ = ("asked",)

    def __init__(self, values: Mapping[str, Value]) -> None:
        super().__init__(values)
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.asked.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        return name in self._items


class _OnEmulator:
    def __init__(self, program: Program, blocks: Mapping[str, Block]) -> None:
        from autotune.measure.gpu.emulator import Emulator

        self.configuration = program.configuration
        self._blocks = blocks
        self._emulator = Emulator(Path(program.path))

    def launch(self, kernel: str, grid: Sequence[int], *arguments: Any) -> None:
        block = self._blocks[kernel]
        tensors = [argument for argument in arguments if hasattr(argument, "data_ptr")]
        buffers = [(tensor.data_ptr(), tensor.numel() * tensor.element_size()) for tensor in tensors]
        given = _values(arguments)
        self._emulator.launch(kernel, _dimensions(grid), block.threads, block.shared_bytes, given, buffers)


class _OnDevice:
    """Kernels loaded into PyTorch's context on ``device``, which becomes the current device."""

    def __init__(self, program: Program, blocks: Mapping[str, Block], device: Any) -> None:
        import torch

        torch.cuda.set_device(device)
        torch.empty(1, device=device)  # makes the context, and it current
        self.configuration = program.configuration
        self._program, self._blocks, self._device = program, blocks, device
        self._stream = torch.cuda.current_stream
        module = Driver().load(Path(program.path).read_bytes())
        self._functions = {name: module.function(name, block.shared_bytes) for name, block in blocks.items()}

    def launch(self, kernel: str, grid: Sequence[int], *arguments: Any) -> None:
        block, stream = self._blocks[kernel], int(self._stream().cuda_stream)
        self._functions[kernel].launch(
            _dimensions(grid), block.threads, block.shared_bytes, stream, _values(arguments)
        )

    def shaken(self) -> _OnDevice | None:
        """The same kernels with delays, loaded anew, since delays end some time after the first launch."""
        other = self._program.shaken
        return None if other is None else _OnDevice(other, self._blocks, self._device)


def refuse_over_limits(
    kernel: str, block: Block, resources: KernelResources, device: Mapping[str, Any]
) -> None:
    """Raise :class:`Infeasible` where one block does not fit the device, as far as its limits are known."""
    taken = {
        "max_threads": (block.size, "threads"),
        "shared_memory_bytes": (block.shared_bytes + resources.shared_static_bytes, "bytes of shared memory"),
        "registers": (_allocated(resources.registers, block.size), "registers"),
    }
    for fact, (needed, what) in taken.items():
        limit = device.get(fact)
        if limit is not None and needed > limit:
            raise Infeasible(f"a block of {kernel} takes {needed:,} {what}; the device has {limit:,}")


def _allocated(registers: int, threads: int) -> int:
    """Registers of a block: a warp gets them for 32 threads in units of 256 (CUDA occupancy calculator)."""
    warps, units = -(-threads // _WARP), -(-registers // 8)
    return warps * units * 256


def _values(arguments: Sequence[Any]) -> list[Any]:
    return [ctypes.c_void_p(a.data_ptr()) if hasattr(a, "data_ptr") else a for a in arguments]


def _dimensions(grid: Sequence[int]) -> Dimensions:
    x, y, z = (*grid, 1, 1)[:3]
    return x, y, z


__all__ = ["Block", "CudaObjective", "Loaded", "Program", "Tensor", "refuse_over_limits"]
