"""The few calls of the CUDA driver that are needed to load and launch a compiled kernel, through ctypes.

A context must be current in the calling thread; PyTorch's is, once it has used the device. Signatures and
numbers are those of cuda.h (CUDA Driver API reference manual). Every argument of a kernel must have a ctypes
type: a pointer is a :class:`ctypes.c_void_p`, an ``int`` a :class:`ctypes.c_int` and so on; nothing is
guessed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from autotune.errors import AutotuneError

LIBRARY = "libcuda.so.1"

_MAX_DYNAMIC_SHARED = 8
"""A value of ``CUfunction_attribute``."""

Dimensions = tuple[int, int, int]


class DriverError(AutotuneError):
    """A call of the CUDA driver failed. ``name`` is CUDA's own, such as ``CUDA_ERROR_ILLEGAL_ADDRESS``.

    :func:`autotune.measure.gpu.failures.classify` says what its ``code`` means for a trial.
    """

    def __init__(self, call: str, code: int, name: str, text: str) -> None:
        super().__init__(f"{call}: {name} ({code}): {text}")
        self.call = call
        self.code = code
        self.name = name


class Library(Protocol):
    """The part of ``ctypes.CDLL`` that is used: functions as attributes."""

    def __getattr__(self, name: str) -> Any: ...


class Driver:
    """The driver's library. Every call that fails raises :class:`DriverError`."""

    def __init__(self, library: Library | None = None) -> None:
        self._library: Library = ctypes.CDLL(LIBRARY) if library is None else library

    def call(self, name: str, *arguments: Any) -> None:
        """Call ``name``; every argument is a ctypes value, so that its width is known."""
        code = int(getattr(self._library, name)(*arguments))
        if code:
            raise DriverError(
                name, code, self._ask("cuGetErrorName", code), self._ask("cuGetErrorString", code)
            )

    def _ask(self, question: str, code: int) -> str:
        text = ctypes.c_char_p()
        failed = getattr(self._library, question)(ctypes.c_int(code), ctypes.byref(text))
        return "unknown error" if failed or not text.value else text.value.decode(errors="replace")

    def version(self) -> tuple[int, int]:
        """The newest CUDA that this driver serves, such as ``(13, 0)``; no device is touched."""
        number = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(number))
        return number.value // 1000, number.value % 1000 // 10

    def load(self, image: bytes) -> Module:
        """Load a cubin into the current context."""
        self.call("cuInit", ctypes.c_uint(0))
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(image))
        return Module(self, module)


def served_major() -> int | None:
    """The major version of CUDA that the driver here serves; ``None`` without a driver. Touches no device."""
    try:
        return Driver().version()[0]
    except (OSError, DriverError):
        return None


class Module:
    """A loaded cubin; unloaded when it is garbage."""

    def __init__(self, driver: Driver, handle: ctypes.c_void_p) -> None:
        self._driver = driver
        self._handle = handle

    def function(self, name: str, dynamic_shared_bytes: int = 0) -> Function:
        """The kernel ``name``, allowed so much dynamic shared memory.

        Without asking it may have 48 KiB less its own static shared memory, which is not known here.
        """
        handle = ctypes.c_void_p()
        self._driver.call(
            "cuModuleGetFunction", ctypes.byref(handle), self._handle, ctypes.c_char_p(name.encode())
        )
        function = Function(self._driver, self, name, handle)
        if dynamic_shared_bytes:
            function.set(_MAX_DYNAMIC_SHARED, dynamic_shared_bytes)
        return function

    def __del__(self) -> None:
        # At the end of a process the context may be gone, and after a sticky error every call fails.
        unload = getattr(self._driver._library, "cuModuleUnload", None)
        if unload is not None and self._handle:
            unload(self._handle)


@dataclass(frozen=True)
class Function:
    """A kernel that can be launched. Holds its module, without which it would be gone."""

    driver: Driver
    module: Module
    name: str
    handle: ctypes.c_void_p

    def set(self, attribute: int, value: int) -> None:
        """Set an attribute by its number in ``CUfunction_attribute``."""
        self.driver.call("cuFuncSetAttribute", self.handle, ctypes.c_int(attribute), ctypes.c_int(value))

    def launch(
        self, grid: Dimensions, block: Dimensions, shared_bytes: int, stream: int, arguments: Sequence[Any]
    ) -> None:
        """Put one launch on ``stream`` (a ``CUstream`` as an integer; 0: the default one)."""
        self.driver.call(
            "cuLaunchKernel",
            self.handle,
            *map(ctypes.c_uint, grid),
            *map(ctypes.c_uint, block),
            ctypes.c_uint(shared_bytes),
            ctypes.c_void_p(stream),
            pack(arguments),
            None,
        )


def pack(arguments: Sequence[Any]) -> Any:
    """An array of pointers to the arguments, as ``cuLaunchKernel`` takes them; the caller keeps these alive.

    Raises ``TypeError`` for what has no ctypes type: a Python ``int`` could be 4 or 8 bytes wide.
    """
    pointers = (ctypes.c_void_p * max(len(arguments), 1))()
    for index, argument in enumerate(arguments):
        if not isinstance(argument, ctypes._SimpleCData):
            expected = "ctypes.c_int, c_float, c_void_p or the like"
            raise TypeError(f"argument {index} of a kernel is {type(argument).__name__}, not {expected}")
        pointers[index] = ctypes.cast(ctypes.byref(argument), ctypes.c_void_p)
    return pointers
