"""CUDA C to a cubin, by NVRTC or else by nvcc, for an architecture that need not be here."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from autotune.measure.gpu.nvrtc import CompilerRefusal, Nvrtc, find_nvrtc
from autotune.measure.gpu.ptxas import names_kernels
from autotune.measure.macros import definitions
from autotune.space.configuration import Value

_VERBOSE = "--ptxas-options=-v"
_NO_CACHE = "--no-cache"


class CudaCompiler(Protocol):
    """A compiler from CUDA C to cubins."""

    @property
    def identity(self) -> str:
        """Name and version, for the key of a cache."""

    def compile(self, source: str, name: str, options: Sequence[str]) -> tuple[bytes, str]:
        """The cubin, and the log with the resources of each kernel. Raises :class:`CompilerRefusal`."""


@dataclass(frozen=True)
class NvrtcCompiler:
    """Compiles in this process."""

    nvrtc: Nvrtc

    @property
    def identity(self) -> str:
        return f"nvrtc {self.nvrtc.version[0]}.{self.nvrtc.version[1]}"

    def compile(self, source: str, name: str, options: Sequence[str]) -> tuple[bytes, str]:
        wanted = [*options, _VERBOSE]
        cubin, log = self.nvrtc.compile(source, name, wanted)
        if names_kernels(log):
            return cubin, log
        # Where there is a driver, NVRTC 13 keeps cubins in ~/.nv. For a cubin from there the assembler was
        # not run, and its report, which we need, is missing from the log.
        with suppress(CompilerRefusal):  # a version of NVRTC that keeps none does not know this option
            return self.nvrtc.compile(source, name, [*wanted, _NO_CACHE])
        return cubin, log


@dataclass(frozen=True)
class NvccCompiler:
    """Calls the toolkit's compiler driver."""

    path: str

    @property
    def identity(self) -> str:
        return f"nvcc {self._release}"

    @property
    def version(self) -> tuple[int, int]:
        """The version of CUDA, such as ``(13, 0)``."""
        major, minor = self._release.split(",")[0].split(".")[:2]
        return int(major), int(minor)

    @cached_property
    def _release(self) -> str:
        """``13.0, V13.0.88`` and what follows. Raises :class:`CompilerRefusal` where it does not say."""
        try:
            done = subprocess.run([self.path, "--version"], capture_output=True, text=True, check=False)
        except OSError as error:
            raise CompilerRefusal(f"{self.path} cannot be run: {error}") from error
        found = re.search(r"release (\d+\.\d+.*)", done.stdout, re.DOTALL)
        if found is None:
            said = (done.stderr.strip() or done.stdout.strip())[:200]
            raise CompilerRefusal(f"{self.path} --version says no release, but {said!r}")
        return found.group(1).strip()

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

    ``newest``: the major version of CUDA that the driver serves. A newer compiler is not used, since its
    cubins may not load. Raises :class:`CompilerRefusal` for an nvcc that does not report its version.
    """
    nvrtc = find_nvrtc(newest)
    if nvrtc is not None:
        return NvrtcCompiler(nvrtc)
    path = shutil.which("nvcc")
    if path is None:
        return None
    nvcc = NvccCompiler(path)
    return nvcc if newest is None or nvcc.version[0] <= newest else None


def package(newest: int | None) -> str:
    """What to ``pip install`` for an NVRTC of at most that major version of CUDA; ``None``: any."""
    # Before CUDA 13 the package has the version in its name.
    return "'nvidia-cuda-nvrtc>=13'" if newest is None or newest >= 13 else f"nvidia-cuda-nvrtc-cu{newest}"


def options(architecture: str, macros: Mapping[str, Value]) -> list[str]:
    """The options that NVRTC and nvcc share: the architecture (``sm_90``) and each macro's value."""
    return [f"--gpu-architecture={architecture}", *definitions(macros)]


def architecture(compute_capability: float) -> str:
    """``sm_90`` for 9.0."""
    return f"sm_{round(compute_capability * 10)}"
