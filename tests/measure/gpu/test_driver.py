"""The driver's binding against a library that answers as cuda.h says: arguments, errors by name."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from autotune.measure.gpu.driver import Driver, DriverError, pack
from autotune.measure.gpu.failures import classify

ILLEGAL_ADDRESS = 700


class FakeCuda:
    """A driver that keeps what it is given; ``fails`` maps a call to the code that it answers with."""

    def __init__(self, fails: dict[str, int] | None = None) -> None:
        self.fails = fails or {}
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            self.calls.append((name, arguments))
            if name in self.fails:
                return self.fails[name]
            return getattr(self, f"on_{name}", lambda *_: 0)(*arguments)

        if name.startswith("on_"):
            raise AttributeError(name)
        return call

    def on_cuGetErrorName(self, code: Any, text: Any) -> int:  # noqa: N802 - CUDA's
        if code.value != ILLEGAL_ADDRESS:
            return 1
        text._obj.value = b"CUDA_ERROR_ILLEGAL_ADDRESS"
        return 0

    def on_cuGetErrorString(self, code: Any, text: Any) -> int:  # noqa: N802 - CUDA's
        text._obj.value = b"an illegal memory access was encountered"
        return 0

    def on_cuModuleLoadData(self, module: Any, image: Any) -> int:  # noqa: N802 - CUDA's
        module._obj.value = 0x1000
        return 0

    def on_cuModuleGetFunction(self, function: Any, module: Any, name: Any) -> int:  # noqa: N802 - CUDA's
        function._obj.value = 0x2000
        return 0

    def on_cuDriverGetVersion(self, value: Any) -> int:  # noqa: N802 - CUDA's
        value._obj.value = 13010
        return 0

    def arguments(self, name: str) -> tuple[Any, ...]:
        return next(arguments for called, arguments in reversed(self.calls) if called == name)


def test_packed_arguments_are_pointers_to_values_of_their_width() -> None:
    given = [ctypes.c_void_p(0xABCD_0123_4567), ctypes.c_int(-3), ctypes.c_float(0.5)]
    packed = pack(given)
    assert ctypes.cast(packed[0], ctypes.POINTER(ctypes.c_uint64))[0] == 0xABCD_0123_4567
    assert ctypes.cast(packed[1], ctypes.POINTER(ctypes.c_int32))[0] == -3
    assert ctypes.cast(packed[2], ctypes.POINTER(ctypes.c_float))[0] == 0.5
    assert len(packed) == 3


def test_an_argument_without_a_width_is_refused() -> None:
    with pytest.raises(TypeError, match="argument 1 of a kernel is int"):
        pack([ctypes.c_int(1), 7])


def test_a_launch_passes_what_it_is_told() -> None:
    cuda = FakeCuda()
    function = Driver(cuda).load(b"\x7fELF").function("f")
    given = [ctypes.c_int(9)]
    function.launch((7, 2, 1), (32, 4, 1), 1024, 0xBEEF, given)
    handle, *numbers, stream, packed, extra = cuda.arguments("cuLaunchKernel")
    assert handle.value == 0x2000 and [number.value for number in numbers] == [7, 2, 1, 32, 4, 1, 1024]
    assert all(isinstance(number, ctypes.c_uint) for number in numbers)
    assert stream.value == 0xBEEF and extra is None
    assert ctypes.cast(packed[0], ctypes.POINTER(ctypes.c_int))[0] == 9


def test_a_failure_has_the_drivers_name_for_it() -> None:
    function = Driver(FakeCuda({"cuLaunchKernel": ILLEGAL_ADDRESS})).load(b"").function("f")
    with pytest.raises(
        DriverError, match=r"cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS \(700\): an illegal"
    ) as error:
        function.launch((1, 1, 1), (1, 1, 1), 0, 0, [])
    assert error.value.code == ILLEGAL_ADDRESS and error.value.name == "CUDA_ERROR_ILLEGAL_ADDRESS"
    failure = classify(error.value)
    assert failure is not None and failure.name == error.value.name


def test_a_code_that_the_driver_cannot_name() -> None:
    with pytest.raises(DriverError, match=r"cuInit: unknown error \(12345\)"):
        Driver(FakeCuda({"cuInit": 12345})).load(b"")


@pytest.mark.parametrize(("shared", "asked"), [(0, False), (44 * 1024, True), (48 * 1024 + 1, True)])
def test_dynamic_shared_memory_is_asked_for(shared: int, asked: bool) -> None:
    cuda = FakeCuda()
    Driver(cuda).load(b"").function("f", shared)
    assert ("cuFuncSetAttribute" in [name for name, _ in cuda.calls]) == asked
    if asked:
        assert [a.value for a in cuda.arguments("cuFuncSetAttribute")] == [0x2000, 8, shared]


def test_version() -> None:
    assert Driver(FakeCuda()).version() == (13, 1)


def test_a_module_is_unloaded_with_its_last_function() -> None:
    cuda = FakeCuda()
    function = Driver(cuda).load(b"").function("f")
    assert "cuModuleUnload" not in [name for name, _ in cuda.calls]
    del function
    assert "cuModuleUnload" in [name for name, _ in cuda.calls]
