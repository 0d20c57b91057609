"""NVIDIA's run-time compiler as a library (NVRTC), by ctypes: CUDA C in, a cubin out, no GPU needed.

The library comes with the package ``nvidia-cuda-nvrtc`` (CUDA 13), with PyTorch for CUDA, or with a toolkit.
Signatures are those of nvrtc.h (NVRTC documentation, "Compilation").
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_PACKAGE_FOLDERS = ("cu*/lib", "cuda_nvrtc/lib")
"""Below the namespace package ``nvidia``: where the packages of CUDA 13, and those of CUDA 12, put it."""
_BUILTINS = "libnvrtc-builtins.so.*"


class CompilerRefusal(Exception):  # noqa: N818 - an answer of the compiler
    """The compiler refuses the source; the text is its log."""


class Nvrtc:
    """One loaded NVRTC library."""

    def __init__(self, path: str) -> None:
        # NVRTC looks for its library of built-in headers by name alone, and finds it if it is loaded already.
        for builtins in sorted(Path(path).parent.glob(_BUILTINS)) if "/" in path else ():
            ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
        self._library = ctypes.CDLL(path)
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        self.version = (major.value, minor.value)

    def compile(self, source: str, name: str, options: Sequence[str]) -> tuple[bytes, str]:
        """The cubin of ``source`` and the compiler's log. Raises :class:`CompilerRefusal`.

        ``options`` must name a real architecture (``--gpu-architecture=sm_90``), or there is no cubin.
        """
        program = ctypes.c_void_p()
        made = (ctypes.byref(program), source.encode(), name.encode(), 0, None, None)
        self._call("nvrtcCreateProgram", *made)
        try:
            given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            code = self._library.nvrtcCompileProgram(program, len(options), given)
            log = self._bytes(program, "nvrtcGetProgramLog").rstrip(b"\0").decode(errors="replace")
            if code:
                raise CompilerRefusal(f"{self._error(code)}\n{log}".strip())
            return self._bytes(program, "nvrtcGetCUBIN"), log
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _bytes(self, program: ctypes.c_void_p, question: str) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"{question}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self._call(question, program, buffer)
        return buffer.raw

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            raise OSError(f"{name}: {self._error(code)}")

    def _error(self, code: int) -> str:
        return str(self._library.nvrtcGetErrorString(code).decode(errors="replace"))


def find_nvrtc(newest: int | None = None) -> Nvrtc | None:
    """The newest NVRTC here whose major version the driver serves too (``newest``; ``None``: any)."""
    for path in sorted(_candidates(), key=_major, reverse=True):
        if newest is not None and _major(path) > newest:
            continue
        try:
            return Nvrtc(path)
        except (OSError, AttributeError):  # not for this machine, or not NVRTC
            continue
    return None


def _candidates() -> Iterator[str]:
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        for folder in _PACKAGE_FOLDERS:
            yield from map(str, Path(root).glob(f"{folder}/libnvrtc.so.*"))
    if system := ctypes.util.find_library("nvrtc"):
        yield system


def _major(path: str) -> int:
    found = re.search(r"libnvrtc\.so\.(\d+)", path)
    return int(found.group(1)) if found else 0
