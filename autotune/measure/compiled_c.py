"""Kernels in C over arrays, compiled for every configuration: gcc, a shared library, a function pointer."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from autotune.measure.array_objective import ArrayObjective
from autotune.measure.guarded import Array
from autotune.measure.objective import Infeasible
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

_MOST_MESSAGE = 2000


def compile_c(source: Path, flags: Sequence[str], folder: Path) -> Path:
    """Compile one file to a shared library in ``folder``, named by the hash of all that goes in.

    What is there already is not compiled again. Raises :class:`Infeasible` where there is no compiler
    or it refuses, with what it said.
    """
    command = [_compiler(), *MACHINE_FLAGS, *flags]
    identity = "\0".join([source.read_text(), *command])
    library = folder / f"{source.stem}-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.so"
    if not library.exists():
        unfinished = library.with_suffix(f".{os.getpid()}")
        # Libraries come last: the linker takes from them what the source before them needs.
        sources, libraries = [str(source)], [flag for flag in flags if flag.startswith("-l")]
        done = subprocess.run(
            [*command, *sources, "-o", str(unfinished), *libraries],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            raise Infeasible(f"gcc refused it: {done.stderr.strip()[-_MOST_MESSAGE:]}")
        unfinished.replace(library)  # atomic: two preparers may compile the same
    return library


def _compiler() -> str:
    found = shutil.which(os.environ.get("CC", "gcc")) or shutil.which("cc")
    if found is None:
        raise Infeasible("no C compiler: install gcc")
    return found


class CompiledC(ArrayObjective):
    """Base class of kernels in C whose knobs are macros and an optimisation level.

    The function is given pointers to the inputs, then to the outputs, in the order of :meth:`make_inputs`
    and :meth:`outputs`, then :meth:`arguments`. What varies with the workload is an argument and no
    macro, so that one library serves every shape that a check tries.
    """

    source: ClassVar[Path]
    """The C file."""
    function: ClassVar[str]
    """The name of the kernel in it."""
    signature: ClassVar[tuple[Any, ...]]
    """The ctypes of all that the function is given."""
    macros: ClassVar[Mapping[str, str]] = {}
    """Which macro a number or a flag among the knobs sets; a knob that does not exist sets 0."""

    def flags(self, configuration: Configuration) -> tuple[str, ...]:
        """What gcc is told: ``-O`` as the knob ``optimize`` says, and the macros."""
        values = {macro: int(configuration.get(knob, 0)) for knob, macro in self.macros.items()}  # type: ignore[arg-type]
        return (f"-O{configuration['optimize']}", *(f"-D{name}={value}" for name, value in values.items()))

    def arguments(self) -> tuple[int | float, ...]:
        """The sizes and other numbers of the workload."""
        raise NotImplementedError(f"{type(self).__name__} must define arguments()")

    def prepare(self, configuration: Configuration) -> str:
        """Compile; the path of the shared library."""
        return str(compile_c(self.source, self.flags(configuration), self.context.cache))

    def load(self, prepared: str) -> Kernel:
        return c_function(Path(prepared), self.function, self.signature)

    def call(self, loaded: Kernel, inputs: Mapping[str, Array], outputs: dict[str, Array]) -> None:
        loaded(*inputs.values(), *outputs.values(), *self.arguments())


def c_function(library: Path, name: str, signature: tuple[Any, ...]) -> Kernel:
    """A function of a library that takes arrays where its signature has pointers."""
    function = getattr(ctypes.CDLL(str(library)), name)
    function.restype = None
    function.argtypes = signature
    arrays = sum(1 for kind in signature if kind is ctypes.c_void_p)

    def kernel(*values: Any) -> None:
        function(*(array.ctypes.data for array in values[:arrays]), *values[arrays:])

    return kernel
