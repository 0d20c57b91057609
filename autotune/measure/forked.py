"""An objective may fork. A child that comes back to us from its code must not go on as a second one of us."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def forks_end_here() -> Iterator[None]:
    """A process that is forked inside the block ends with it, as one does whose script has ended.

    It would take readings beside its parent, fork again at each, and send the session answers that nobody
    has asked for: the next trial would be given them.
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
