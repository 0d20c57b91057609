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
"""The flags of every compilation: for this machine alone, and for a shared library."""

SINGLE_THREAD: Mapping[str, str] = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""The environment of a baseline that may use one thread, to compare with a kernel of one thread."""

Kernel = Callable[..., None]
"""A loaded kernel or baseline: called with the inputs, the outputs, then the numbers."""


@dataclass(frozen=True)
class Library(os.PathLike[str]):
    """A shared library in the session's folder, and how long compiling it took."""

    path: str
    seconds: float = 0.0
    """How long gcc took to compile it, in this search or an earlier one; 0 where that is not known."""
    cached: bool = False
    """Whether it had been compiled before."""

    def __fspath__(self) -> str:
        return self.path


def compile_c(source: Path, flags: Sequence[str], folder: Path, cache: CompileCache | None = None) -> Library:
    """Compile one file to a shared library in ``folder``, named by the hash of everything that goes in.

    A library that is there already, or in the ``cache`` of all searches, is not compiled again. Raises
    :class:`Infeasible`, with the output of the compiler, where it refuses or there is none.
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

    The function takes pointers to the inputs, then to the outputs, in the order of :meth:`make_inputs` and
    :meth:`outputs`, then :meth:`arguments`. It is not given strides: of an input that is transposed or a
    slice it sees the memory as it lies, as a kernel for another order may want it. What varies with the
    workload is an argument and not a macro, so that one library serves every shape that a check tries.
    """

    checks_ahead = True

    variations = 16  # some milliseconds each: a kernel that is wrong for a third of them passes once in 650

    source: ClassVar[Path]
    """The C file."""
    function: ClassVar[str]
    """The name of the kernel in it."""
    signature: ClassVar[tuple[Any, ...]]
    """The ctypes of all arguments of the function."""
    macros: ClassVar[Mapping[str, str]] = {}
    """The macro that each knob sets: to its number or text, or to 1 or 0 for a flag. A knob that is inactive
    in a configuration sets 0. A name that is not a knob of the space is refused, since it is misspelt in one
    of them."""

    def knob_problems(self, knobs: Collection[str]) -> list[Problem]:
        return macro_problems(type(self).__name__, self.macros, knobs, self.source.name)

    def flags(self, configuration: Configuration) -> tuple[str, ...]:
        """The flags for gcc: ``-O`` with the value of the knob ``optimize`` (else 3), and the macros."""
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
        """The fingerprint of the machine code, which is all that the knobs change."""
        content = Path(prepared).read_bytes()
        facts = {"compile_seconds": round(prepared.seconds, 4), "compiled_before": prepared.cached}
        return Code(code_fingerprint(content), facts={**facts, **self._least})

    @cached_property
    def _least(self) -> Mapping[str, object]:
        """The work of the problem, to compare times with the peaks of a machine."""
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
    """A function of a library, called with arrays where its signature has pointers."""
    function = getattr(ctypes.CDLL(os.fspath(library)), name)
    function.restype = None
    function.argtypes = signature
    arrays = sum(1 for kind in signature if kind is ctypes.c_void_p)

    def kernel(*values: Any) -> None:
        function(*(array.ctypes.data for array in values[:arrays]), *values[arrays:])

    return kernel
