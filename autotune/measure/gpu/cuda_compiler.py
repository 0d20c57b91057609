"""CUDA C to a cubin, by NVRTC or else by nvcc, for an architecture that need not be here."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from autotune.measure.gpu.nvrtc import CompilerRefusal, Nvrtc, find_nvrtc

_VERBOSE = "--ptxas-options=-v"


class CudaCompiler(Protocol):
    """What makes a cubin."""

    @property
    def identity(self) -> str:
        """Name and version, for the key of a cache."""

    def compile(self, source: str, name: str, options: Sequence[str]) -> tuple[bytes, str]:
        """Cubin and log, which says what each kernel takes. Raises :class:`CompilerRefusal`."""


@dataclass(frozen=True)
class NvrtcCompiler:
    """Compiles in this process."""

    nvrtc: Nvrtc

    @property
    def identity(self) -> str:
        return f"nvrtc {self.nvrtc.version[0]}.{self.nvrtc.version[1]}"

    def compile(self, source: str, name: str, options: Sequence[str]) -> tuple[bytes, str]:
        return self.nvrtc.compile(source, name, [*options, _VERBOSE])


@dataclass(frozen=True)
class NvccCompiler:
    """Calls the toolkit's compiler driver."""

    path: str

    @cached_property
    def identity(self) -> str:
        done = subprocess.run([self.path, "--version"], capture_output=True, text=True, check=True)
        return f"nvcc {done.stdout.split('release', 1)[-1].strip()}"

    def compile(self, source: str, name: str, options: Sequence[str]) -> tuple[bytes, str]:
        with tempfile.TemporaryDirectory() as folder:
            file, cubin = Path(folder, name), Path(folder, "made.cubin")
            file.write_text(source)
            command = [self.path, "-cubin", *options, _VERBOSE, "-o", str(cubin), str(file)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise CompilerRefusal(done.stderr.strip() or done.stdout.strip())
            return cubin.read_bytes(), done.stderr


def find_compiler(newest: int | None = None) -> CudaCompiler | None:
    """NVRTC where it is installed, else nvcc on the PATH; ``None`` where there is neither.

    ``newest``: the major version of CUDA that the driver serves; a newer compiler's cubin may not load.
    """
    nvrtc = find_nvrtc(newest)
    if nvrtc is not None:
        return NvrtcCompiler(nvrtc)
    nvcc = shutil.which("nvcc")
    return NvccCompiler(nvcc) if nvcc else None


def options(architecture: str, macros: Mapping[str, int | str]) -> list[str]:
    """The options that NVRTC and nvcc share: the architecture (``sm_90``) and each macro's value."""
    return [f"--gpu-architecture={architecture}", *(f"-D{name}={value}" for name, value in macros.items())]


def architecture(compute_capability: float) -> str:
    """``sm_90`` for 9.0."""
    return f"sm_{round(compute_capability * 10)}"


__all__ = [
    "CompilerRefusal",
    "CudaCompiler",
    "NvccCompiler",
    "NvrtcCompiler",
    "architecture",
    "find_compiler",
    "options",
]
