"""Kernels in C over arrays, compiled for every configuration: gcc, a shared library, a function pointer."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from autotune.errors import Problem
from autotune.measure.clocks import perf_counter
from autotune.measure.kernels.array_objective import ArrayObjective
from autotune.measure.kernels.c_identity import compilation_key
from autotune.measure.kernels.compile_cache import CompileCache, Compiled, write_whole
from autotune.measure.kernels.elf import code_fingerprint
from autotune.measure.kernels.guarded import Array
from autotune.measure.macros import definitions, macro_problems
from autotune.measure.objective import Code, Infeasible, WrongAnswer
from autotune.provenance.compiler import NoCompilerError, c_compiler
from autotune.space.configuration import Configuration

MACHINE_FLAGS = ("-march=native", "-std=gnu11", "-shared", "-fPIC")
"""Of every compilation: the code is for this machine alone, and for loading."""

SINGLE_THREAD: Mapping[str, str] = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""The environment of a baseline that is to have one thread, as a kernel of one thread has."""

Kernel = Callable[..., None]
"""What is loaded, a kernel or a baseline: called with the inputs, the outputs, the numbers."""


@dataclass(frozen=True)
class Library(os.PathLike[str]):
    """A shared library in the session's folder, and what making it took."""

    path: str
    seconds: float = 0.0
    """That gcc took when it was compiled, in this search or an earlier one; 0 where that is not known."""
    cached: bool = False
    """Whether it was compiled before, and nothing had to be now."""

    def __fspath__(self) -> str:
        return self.path


def compile_c(source: Path, flags: Sequence[str], folder: Path, cache: CompileCache | None = None) -> Library:
    """Compile one file to a shared library in ``folder``, named by the hash of all that goes in.

    What is there already, or in the ``cache`` of all searches, is not compiled again. Raises
    :class:`Infeasible` where there is no compiler or it refuses, with what it said.
    """
    compiler, wanted = _compiler(), [*MACHINE_FLAGS, *flags]
    key = compilation_key(compiler, wanted, source)
    name = key or hashlib.sha256("\0".join([source.read_text(), *compiler, *wanted]).encode()).hexdigest()
    path = folder / f"{source.stem}-{name[:16]}.so"
    if key is not None and path.exists():
        return Library(str(path), cached=True)
    made = partial(_run_compiler, compiler, wanted, source, path)
    compiled = made() if key is None or cache is None else cache.get_or_make(key, made)
    if not path.exists():
        write_whole(path, compiled.content)
    seconds = compiled.facts.get("compile_seconds")
    return Library(str(path), seconds if isinstance(seconds, float) else 0.0, compiled.cached)


def _run_compiler(compiler: Sequence[str], flags: Sequence[str], source: Path, path: Path) -> Compiled:
    unfinished = path.with_suffix(f".{os.getpid()}")
    # Libraries come last: the linker takes from them what the source before them needs.
    libraries = [flag for flag in flags if flag.startswith("-l")]
    start = perf_counter()
    done = subprocess.run(
        [*compiler, *flags, str(source), "-o", str(unfinished), *libraries],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    seconds = perf_counter() - start
    if done.returncode:
        raise Infeasible(f"gcc refused it: {done.stderr.strip()}")
    unfinished.replace(path)  # atomic: two preparers may compile the same
    return Compiled(path.read_bytes(), {"compile_seconds": seconds})


def _compiler() -> tuple[str, ...]:
    try:
        return c_compiler()
    except NoCompilerError as error:
        raise Infeasible(str(error)) from error


class CompiledC(ArrayObjective):
    """Base class of kernels in C whose knobs are macros and an optimisation level.

    The function is given pointers to the inputs, then to the outputs, in the order of :meth:`make_inputs`
    and :meth:`outputs`, then :meth:`arguments`. It is told nothing of strides: an input that is turned or a
    slice is the memory that it lies in, as a kernel in another order may want it. What varies with the
    workload is an argument and no macro, so that one library serves every shape that a check tries.
    """

    checks_ahead = True

    variations = 16  # of some milliseconds each: what is wrong for a third of them passes once in 650

    source: ClassVar[Path]
    """The C file."""
    function: ClassVar[str]
    """The name of the kernel in it."""
    signature: ClassVar[tuple[Any, ...]]
    """The ctypes of all that the function is given."""
    macros: ClassVar[Mapping[str, str]] = {}
    """Which macro a knob sets, to its number, its text, or 1 or 0; one that does not exist in a configuration
    sets 0. One that the space does not have at all is refused: it is misspelt, here or there."""

    def knob_problems(self, knobs: Collection[str]) -> list[Problem]:
        return macro_problems(type(self).__name__, self.macros, knobs, self.source.name)

    def flags(self, configuration: Configuration) -> tuple[str, ...]:
        """What gcc is told: ``-O`` as the knob ``optimize`` says (3 where there is none), and the macros."""
        values = {macro: configuration.get(knob, 0) for knob, macro in self.macros.items()}
        return (f"-O{configuration.get('optimize', 3)}", *definitions(values))

    def arguments(self) -> tuple[int | float, ...]:
        """The sizes and other numbers of the workload."""
        raise NotImplementedError(f"{type(self).__name__} must define arguments()")

    def prepare(self, configuration: Configuration) -> Library:
        """Compile."""
        flags = self.flags(configuration)
        return compile_c(self.source, flags, self.context.cache, self.compile_cache)

    def code(self, prepared: Library) -> Code:
        """The code decides, for no knob is used but by the compiler."""
        content = Path(prepared).read_bytes()
        facts = {"compile_seconds": round(prepared.seconds, 4), "compiled_before": prepared.cached}
        return Code(code_fingerprint(content), facts={**facts, **self._least})

    @cached_property
    def _least(self) -> Mapping[str, object]:
        """The work of the problem, from which follows what share of a machine's peaks a time is."""
        work = self.work()
        return {} if work is None else {"work": {"bytes": work.bytes, "operations": work.operations}}

    def load(self, prepared: Library) -> Kernel:
        return c_function(prepared, self.function, self.signature)

    def _check(self, loaded: Kernel, rng: np.random.Generator) -> float:
        try:
            return super()._check(loaded, rng)
        except WrongAnswer as wrong:
            inputs = self.make_inputs(np.random.default_rng(0))
            names = [repr(name) for name, array in inputs.items() if not array.flags.c_contiguous]
            if not names:
                raise
            raise WrongAnswer(
                f"{wrong}; it knows of {' and '.join(names)} only where the memory begins, and that is not in"
                " C order: if it should be, make_inputs can give np.ascontiguousarray of it"
            ) from wrong

    def call(self, loaded: Kernel, inputs: Mapping[str, Array], outputs: dict[str, Array]) -> None:
        loaded(*inputs.values(), *outputs.values(), *self.arguments())


def c_function(library: os.PathLike[str], name: str, signature: tuple[Any, ...]) -> Kernel:
    """A function of a library that takes arrays where its signature has pointers."""
    function = getattr(ctypes.CDLL(os.fspath(library)), name)
    function.restype = None
    function.argtypes = signature
    arrays = sum(1 for kind in signature if kind is ctypes.c_void_p)

    def kernel(*values: Any) -> None:
        function(*(array.ctypes.data for array in values[:arrays]), *values[arrays:])

    return kernel
