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


class SecretiveError(Exception):
    """Raises where Python looks for notes to print with it."""

    @property
    def __notes__(self) -> list[str]:  # type: ignore[override]
        raise RuntimeError("no notes")


@pytest.mark.parametrize(
    "error",
    [
        SyntaxError("bad kernel", ("kernel.dsl", 3, 1, 4)),  # type: ignore[arg-type]  # the line's text
        type("Nameless", (ValueError,), {"__module__": None})("bad kernel"),
        SecretiveError("bad kernel"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_exception_that_python_itself_cannot_print_is_a_crash(error: Exception) -> None:
    """It had ended the whole search."""
    try:
        raise error
    except Exception as caught:  # noqa: BLE001
        found = failed(caught)
    assert found.status is Status.CRASHED
    assert found.message == f"{type(error).__name__}: {error}"
    assert "test_raised.py" in found.stderr
    # From 3.13 on Python itself says that it could not get at the notes.
    assert "cannot be shown: " in found.stderr or "Ignored error getting __notes__" in found.stderr
