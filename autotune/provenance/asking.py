"""Running a program for its output, with a time limit that holds for everything it starts as well."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

_GRACE = 1.0
"""Seconds to wait for the rest of the output of a program that was killed."""


def start(
    command: Sequence[str], *, errors_too: bool = False, env: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start a program in a group of its own; ``errors_too``: its standard error goes into its output.

    Raises ``OSError`` where it cannot be started.
    """
    return subprocess.Popen(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if errors_too else subprocess.PIPE,
        text=True,
        errors="replace",
        env=None if env is None else dict(env),
        start_new_session=True,
    )


def answer(process: subprocess.Popen[str], seconds: float) -> subprocess.CompletedProcess[str] | None:
    """What it wrote; ``None`` where it does not end within ``seconds``: then it and its children are killed.

    A program that hangs is often a shell script which waits for a child. If only the script were killed, its
    child would keep the pipe open, and reading to the end of the pipe would take until the child ends.
    """
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        _end(process)
        return None
    except BaseException:  # Ctrl-C, which does not reach a group of its own
        _end(process)
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):  # something left the group, and holds the pipe
        process.communicate(timeout=_GRACE)
