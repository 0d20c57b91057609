"""What an exception of CUDA, PyTorch, Triton or CuPy means for a trial.

Exceptions are told apart by their type and by CUDA's error number, which is the same for runtime and driver.
Where a library only passes on CUDA's description of an error, its number is looked up by that. Nothing is
imported: a type is recognised by its name and module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autotune.measure.diagnostics import text_of
from autotune.status import Status


@dataclass(frozen=True)
class CudaError:
    """One of CUDA's errors: cuda.h's name, what it means for a trial, and its description."""

    name: str
    status: Status
    description: str
    """As ``cuGetErrorString`` and ``cudaGetErrorString`` give it."""


_CRASHED, _INFEASIBLE, _MEMORY, _LOST = (
    Status.CRASHED,
    Status.INFEASIBLE,
    Status.OUT_OF_MEMORY,
    Status.LOST,
)

ERRORS: Mapping[int, CudaError] = {
    1: CudaError("CUDA_ERROR_INVALID_VALUE", _INFEASIBLE, "invalid argument"),
    2: CudaError("CUDA_ERROR_OUT_OF_MEMORY", _MEMORY, "out of memory"),
    9: CudaError("cudaErrorInvalidConfiguration", _INFEASIBLE, "invalid configuration argument"),
    46: CudaError(
        "CUDA_ERROR_DEVICE_UNAVAILABLE", _LOST, "CUDA-capable device(s) is/are busy or unavailable"
    ),
    98: CudaError("cudaErrorInvalidDeviceFunction", _INFEASIBLE, "invalid device function"),
    200: CudaError("CUDA_ERROR_INVALID_IMAGE", _INFEASIBLE, "device kernel image is invalid"),
    209: CudaError(
        "CUDA_ERROR_NO_BINARY_FOR_GPU",
        _INFEASIBLE,
        "no kernel image is available for execution on the device",
    ),
    214: CudaError("CUDA_ERROR_ECC_UNCORRECTABLE", _LOST, "uncorrectable ECC error encountered"),
    218: CudaError("CUDA_ERROR_INVALID_PTX", _INFEASIBLE, "a PTX JIT compilation failed"),
    220: CudaError(
        "CUDA_ERROR_NVLINK_UNCORRECTABLE", _LOST, "uncorrectable NVLink error detected during the execution"
    ),
    700: CudaError("CUDA_ERROR_ILLEGAL_ADDRESS", _CRASHED, "an illegal memory access was encountered"),
    701: CudaError(
        "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", _INFEASIBLE, "too many resources requested for launch"
    ),
    702: CudaError("CUDA_ERROR_LAUNCH_TIMEOUT", _CRASHED, "the launch timed out and was terminated"),
    709: CudaError("CUDA_ERROR_CONTEXT_IS_DESTROYED", _CRASHED, "context is destroyed"),
    710: CudaError("CUDA_ERROR_ASSERT", _CRASHED, "device-side assert triggered"),
    714: CudaError("CUDA_ERROR_HARDWARE_STACK_ERROR", _CRASHED, "hardware stack error"),
    715: CudaError("CUDA_ERROR_ILLEGAL_INSTRUCTION", _CRASHED, "an illegal instruction was encountered"),
    716: CudaError("CUDA_ERROR_MISALIGNED_ADDRESS", _CRASHED, "misaligned address"),
    717: CudaError(
        "CUDA_ERROR_INVALID_ADDRESS_SPACE",
        _CRASHED,
        "operation not supported on global/shared address space",
    ),
    718: CudaError("CUDA_ERROR_INVALID_PC", _CRASHED, "invalid program counter"),
    719: CudaError("CUDA_ERROR_LAUNCH_FAILED", _CRASHED, "unspecified launch failure"),
    720: CudaError(
        "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", _INFEASIBLE, "too many blocks in cooperative launch"
    ),
    999: CudaError("CUDA_ERROR_UNKNOWN", _CRASHED, "unknown error"),
}
"""CUDA's errors by number. The status is ``crashed`` where the configuration is at fault and the context is
spoilt, ``infeasible`` where the device refuses before it begins, and ``lost`` (to be tried again) where the
machine is at fault."""

TYPES: Mapping[tuple[str, str], Status] = {
    ("torch", "OutOfMemoryError"): _MEMORY,
    ("triton", "OutOfResources"): _INFEASIBLE,
    ("triton", "PTXASError"): _INFEASIBLE,
    ("triton", "CompilationError"): _INFEASIBLE,
    ("cupy", "OutOfMemoryError"): _MEMORY,
    ("cupy", "CompileException"): _INFEASIBLE,
}
"""The status for a type of exception, or one derived from it, by package and name."""

_NUMBERED: Mapping[str, str] = {
    "torch": "error_code",
    "cupy_backends.cuda.api": "status",
    "autotune.measure.gpu": "code",
}
"""The attribute with CUDA's number, for exceptions of a module or of modules inside it. CuPy's exceptions for
cuBLAS and the like have numbers as well, but those are not CUDA's."""

_PREFIXES = ("CUDA error: ", "Triton Error [CUDA]: ", "CUDA driver error: ")
"""What precedes CUDA's description in exceptions that have no number."""


@dataclass(frozen=True)
class Failure:
    """The status of a trial in which such an exception was raised."""

    status: Status
    name: str
    """The name of CUDA's error, or of the type of the exception."""


def classify(error: BaseException) -> Failure | None:
    """What ``error`` means; ``None`` where it does not come from a device."""
    kinds = type(error).__mro__
    for kind in kinds:
        status = TYPES.get((kind.__module__.partition(".")[0], kind.__name__))
        if status is not None:
            return Failure(status, type(error).__name__)
    number = _number(error)
    if number is None:
        return None
    known = ERRORS.get(number)
    if known is None:
        return Failure(_CRASHED, f"CUDA error {number}")
    return Failure(known.status, known.name)


def _number(error: BaseException) -> int | None:
    for module, attribute in _NUMBERED.items():
        number = getattr(error, attribute, None)
        if f"{type(error).__module__}.".startswith(f"{module}.") and isinstance(number, int) and number > 0:
            return number
    if not isinstance(error, RuntimeError):
        return None
    first = text_of(error).partition("\n")[0].strip()
    for prefix in _PREFIXES:
        if first.startswith(prefix):
            said = first.removeprefix(prefix)
            return next((n for n, known in ERRORS.items() if said.startswith(known.description)), None)
    return None
