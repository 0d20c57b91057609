"""What exceptions of CUDA's libraries mean, with PyTorch's and Triton's own types where they are there."""

from __future__ import annotations

import ast

import pytest

from autotune.measure.gpu.driver import DriverError
from autotune.measure.gpu.failures import ERRORS, classify
from autotune.status import Status


def made(name: str, module: str, base: type[Exception] = Exception, **attributes: object) -> Exception:
    """An exception of a library that is not installed here."""
    error = type(name, (base,), {"__module__": module})("its text does not matter")
    for attribute, value in attributes.items():
        setattr(error, attribute, value)
    return error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (made("OutOfResources", "triton.runtime.errors"), Status.INFEASIBLE),
        (made("CompileTimeAssertionFailure", "triton.compiler.errors", type(
            "CompilationError", (Exception,), {"__module__": "triton.compiler.errors"}
        )), Status.INFEASIBLE),
        (made("OutOfMemoryError", "cupy.cuda.memory", MemoryError), Status.OUT_OF_MEMORY),
        (made("CUDADriverError", "cupy_backends.cuda.api.driver", RuntimeError, status=716), Status.CRASHED),
        (made("CUDARuntimeError", "cupy_backends.cuda.api", RuntimeError, status=9), Status.INFEASIBLE),
        (made("AcceleratorError", "torch", RuntimeError, error_code=214), Status.LOST),
        (DriverError("cuLaunchKernel", 701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", ""), Status.INFEASIBLE),
        (DriverError("cuMemAlloc", 2, "CUDA_ERROR_OUT_OF_MEMORY", ""), Status.OUT_OF_MEMORY),
        (DriverError("cuLaunchKernel", 12345, "CUDA_ERROR_TO_COME", ""), Status.CRASHED),
    ],
)  # fmt: skip
def test_types_and_numbers(error: Exception, status: Status) -> None:
    found = classify(error)
    assert found is not None and found.status is status


@pytest.mark.parametrize("number", sorted(ERRORS))
@pytest.mark.parametrize("prefix", ["CUDA error: ", "Triton Error [CUDA]: "])
def test_cudas_own_descriptions(number: int, prefix: str) -> None:
    known = ERRORS[number]
    found = classify(RuntimeError(f"{prefix}{known.description}\nCUDA kernel errors might be reported later"))
    assert found is not None
    assert (found.name, found.status) == (known.name, known.status)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("CUDA error: misaligned address"),
        RuntimeError("the misaligned address of a letter"),
        RuntimeError("CUDA error: CUBLAS_STATUS_NOT_SUPPORTED"),
        made("OutOfResources", "somebody.elses"),
        made("CUBLASError", "cupy_backends.cuda.libs.cublas", RuntimeError, status=1),
        made("HTTPError", "requests", status=404),
        OSError(2, "no such file"),
    ],
)
def test_what_is_not_cudas_is_left_alone(error: Exception) -> None:
    assert classify(error) is None


def test_what_spoils_the_context_is_never_called_infeasible() -> None:
    sticky = (214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999)
    """After these, every further call in the process fails: it has to end, as after a crash."""
    assert all(ERRORS[number].status in (Status.CRASHED, Status.LOST) for number in sticky)


@pytest.mark.torch
def test_pytorchs_own_types() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch installs it")
    found = classify(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 TiB"))
    assert found is not None and found.status is Status.OUT_OF_MEMORY
    if hasattr(torch, "AcceleratorError"):
        error = torch.AcceleratorError("CUDA error: an illegal memory access was encountered")
        found = classify(error)
        assert found is not None and found.name == "CUDA_ERROR_ILLEGAL_ADDRESS"
        error.error_code = 716
        found = classify(error)
        assert found is not None and found.name == "CUDA_ERROR_MISALIGNED_ADDRESS"


@pytest.mark.torch
def test_tritons_own_types() -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    from triton.compiler.errors import CompileTimeAssertionFailure
    from triton.runtime.errors import OutOfResources, PTXASError

    for error in (
        OutOfResources(300_000, 232_448, "shared memory"),
        PTXASError("ptxas refuses"),
        CompileTimeAssertionFailure("x = 1", ast.parse("x = 1").body[0], "no such block"),
    ):
        found = classify(error)
        assert found is not None and found.status is Status.INFEASIBLE
