"""Where another tool fails in the midst of an export: nothing is left, or the error says what."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from autotune.errors import OutputError, Problem


@contextmanager
def undone_on_failure(
    undo: Callable[[], object], failures: tuple[type[Exception], ...], left: str
) -> Iterator[None]:
    """Call ``undo`` where the block fails; where that ends in one of ``failures``, the error has a note that
    what was written is ``left``."""
    try:
        yield
    except BaseException as error:
        try:
            undo()
        except failures:
            error.add_note(f"what was written is left in {left}: delete it")
        raise


def cannot_write(tool: str, where: str, error: Exception) -> OutputError:
    """What ``tool`` said, with what :func:`undone_on_failure` noted."""
    said = str(error).strip().splitlines()[0]
    hint = "; ".join(getattr(error, "__notes__", ()))
    return OutputError(str(Problem(f"{tool} cannot write to {where}: {said}", hint=hint)))
