"""CUDA kernels on the CPU, for their answers: the same source, through g++ and ``emulation/emulator.cpp``.

What a GPU hides by chance shows here: blocks, and threads between barriers, run in a random order; shared
memory holds NaN until it is written; and a race in shared memory, a misaligned access or one outside of every
buffer makes the launch fail. Times mean nothing.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from autotune.measure.gpu.driver import Dimensions, pack
from autotune.measure.gpu.nvrtc import CompilerRefusal
from autotune.measure.macros import definitions
from autotune.measure.objective import WrongAnswer
from autotune.space.configuration import Value

FOLDER = Path(__file__).with_name("emulation")

# The calls of ThreadSanitizer end in emulator.cpp: its own library is never linked.
_KERNEL_FLAGS = (
    "-std=c++17",
    "-O1",
    "-fPIC",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-fsanitize=thread",
)
_RUNTIME_FLAGS = ("-std=c++17", "-O2", "-fPIC")

_SHARED = re.compile(r"[^;{}]*\b__shared__")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


class Emulator:
    """A compiled source whose kernels can be launched on the CPU."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._launches = 0

    def launch(
        self,
        kernel: str,
        grid: Dimensions,
        block: Dimensions,
        shared_bytes: int,
        arguments: Sequence[Any],
        buffers: Sequence[tuple[int, int]],
    ) -> None:
        """Run one launch to its end. ``buffers``: address and size of every buffer that the kernel may use.

        Raises :class:`WrongAnswer` if the kernel does something that it must not.
        """
        function = getattr(self._library, f"emulate_{kernel}")
        function.restype = ctypes.c_char_p
        addresses = (ctypes.c_void_p * len(buffers))(*(address for address, _ in buffers))
        sizes = (ctypes.c_size_t * len(buffers))(*(size for _, size in buffers))
        self._launches += 1
        problem = function(
            (ctypes.c_uint * 3)(*grid),
            (ctypes.c_uint * 3)(*block),
            ctypes.c_size_t(shared_bytes),
            ctypes.c_uint(self._launches),
            pack(arguments),
            addresses,
            sizes,
            ctypes.c_size_t(len(buffers)),
        )
        if problem:
            raise WrongAnswer(f"{kernel}, {problem.decode(errors='replace')}")


def emulated(source: Path, kernels: Sequence[str], macros: Mapping[str, Value], folder: Path) -> Path:
    """Compile ``source`` for :class:`Emulator` into ``folder``, unless it is there already.

    Raises :class:`CompilerRefusal` where g++ is missing or refuses it, and where it would mean something else
    here.
    """
    compiler = shutil.which("g++")
    if compiler is None:
        raise CompilerRefusal("no g++: without a GPU, CUDA kernels are compiled by it and emulated")
    written = source.read_text()
    _require_dynamic(source.name, written)
    runtime = _object([compiler, *_RUNTIME_FLAGS], FOLDER / "emulator.cpp", folder)
    entries = "\n".join(f"EMULATE({kernel})" for kernel in kernels)
    text = f'#include "{FOLDER / "cuda.h"}"\n#line 1 "{source.name}"\n{written}\n{entries}\n'
    command = [compiler, *_KERNEL_FLAGS, *definitions(macros), "-x", "c++"]
    return _made(command, text, folder / f"{source.stem}.cpp", runtime)


def _require_dynamic(name: str, text: str) -> None:
    """Refuse static shared memory: each thread would have its own here, and a right kernel would be wrong."""
    code = _COMMENT.sub(lambda comment: "\n" * comment.group().count("\n"), text)
    for found in _SHARED.finditer(code):
        if "extern" not in found.group():
            line = code.count("\n", 0, found.end()) + 1
            raise CompilerRefusal(
                f"{name}:{line}: the emulator supports only dynamic shared memory: "
                "extern __shared__, of as many bytes as blocks() says"
            )


def _object(command: Sequence[str], source: Path, folder: Path) -> Path:
    key = _key(command, source.read_text(), (FOLDER / "cuda.h").read_text())
    made = folder / f"{source.stem}-{key}.o"
    if not made.exists():
        _run([*command, "-c", str(source)], made)
    return made


def _made(command: Sequence[str], text: str, name: Path, runtime: Path) -> Path:
    library = name.with_name(f"{name.stem}-{_key(command, text, runtime.name)}.so")
    if not library.exists():
        source = library.with_suffix(f".{os.getpid()}.cpp")
        compiled = library.with_suffix(f".{os.getpid()}.o")
        source.write_text(text)
        try:
            _run([*command, "-c", str(source)], compiled)
            _run([command[0], "-shared", "-Wl,-Bsymbolic", str(compiled), str(runtime)], library)
        finally:
            source.unlink()
            compiled.unlink(missing_ok=True)
    return library


def _run(command: Sequence[str], made: Path) -> None:
    unfinished = made.with_name(f"{made.name}.{os.getpid()}")
    done = subprocess.run(
        [*command, "-o", str(unfinished)], capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        raise CompilerRefusal(done.stderr.strip())
    unfinished.replace(made)  # atomic: two may make the same


def _key(command: Sequence[str], *texts: str) -> str:
    return hashlib.sha256("\0".join([*command, *texts]).encode()).hexdigest()[:16]
