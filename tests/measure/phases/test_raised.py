"""What is kept of an exception."""

from __future__ import annotations

import pytest

from autotune.measure.diagnostics import MOST_MESSAGE, MOST_TEXT
from autotune.measure.phases.raised import failed
from autotune.status import Status


def test_of_fifty_megabytes_of_compiler_output_both_ends_are_kept() -> None:
    """Each such trial had put all of it into the store, where every verb that reads the trial reads it."""
    try:
        raise RuntimeError("begins " + "x" * 50_000_000 + " ends")
    except RuntimeError as error:
        found = failed(error)
    assert len(found.message) <= len("RuntimeError: ") + MOST_MESSAGE
    assert len(found.stderr) < MOST_TEXT + 100
    assert found.stderr.startswith("Traceback") and "RuntimeError: begins x" in found.stderr
    assert found.stderr.rstrip().endswith("x ends") and "characters left out ...]" in found.stderr


def test_a_usual_traceback_is_kept_as_it_is() -> None:
    try:
        raise RuntimeError("y" * 10_000)
    except RuntimeError as error:
        assert "y" * 10_000 in failed(error).stderr


class JaxRuntimeError(RuntimeError):
    """As JAX has it: of every kind of failure of the device."""


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("DefaultCPUAllocator: can't allocate memory. Error code 12 (Cannot allocate memory)"),
        JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 140737488355328 bytes."),
        type("OutOfMemoryException", (Exception,), {})("Out of Memory Error: failed\n\nPossible solutions:"),
        type("Wrapped", (MemoryError,), {})(),
    ],
)
def test_a_lack_of_memory_is_known_by_what_a_framework_says_of_it(error: Exception) -> None:
    """PyTorch on a CPU, JAX and DuckDB have no MemoryError: their trials had crashed."""
    assert failed(error).status is Status.OUT_OF_MEMORY


def test_a_lack_of_memory_that_is_only_quoted_is_a_crash() -> None:
    error = RuntimeError("the compiler failed:\nbench.cc:3: catch (std::bad_alloc)")
    assert failed(error).status is Status.CRASHED
