"""What is kept of an exception."""

from __future__ import annotations

from autotune.measure.diagnostics import MOST_MESSAGE, MOST_TEXT
from autotune.measure.phases.raised import failed


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
