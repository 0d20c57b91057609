"""An objective may fork: a child that returns from its code must not go on as a second measuring process."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def forks_end_here() -> Iterator[None]:
    """A process that is forked inside the block ends at the end of the block, as if its script had ended.

    Otherwise it would take readings beside its parent, fork again at each of them, and send the session
    answers that would be taken for those of the next trial.
    """
    here = os.getpid()
    try:
        yield
    except BaseException as error:
        if os.getpid() != here:
            _exit(error)
        raise
    if os.getpid() != here:
        _exit(None)


def _exit(error: BaseException | None) -> None:
    code = 0 if error is None else 1
    if isinstance(error, SystemExit) and (error.code is None or isinstance(error.code, int)):
        code = error.code or 0
    elif error is not None:
        with suppress(Exception):  # it may have closed its stderr
            traceback.print_exception(error)
    with suppress(Exception):
        sys.stdout.flush()
    os._exit(code & 0xFF)
