"""Programs that are asked a question: bounded in time, with all that they started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

_GRACE = 1.0
"""Seconds for what a killed program has written to arrive."""


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
    """What it wrote; ``None`` where it does not end in time: then it is killed, and its children with it.

    A wrapper in shell that hangs is a shell that waits. Killed alone it would leave its child, which holds
    the pipe, and whoever reads to the end of that would wait as long.
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
