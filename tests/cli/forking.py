"""``python -m autotune`` in processes that need not load it: each is forked from one that has done so before.

Loading takes longer than most verbs take. What a test runs is a process of its own all the same, which begins
where ``python -m autotune`` does and ends as that does. (Tests of how it starts, of what it loads and of
streams that are closed start it themselves.)
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

LOADED = (
    "autotune.cli.replay",
    "autotune.cli.search",
    "autotune.report.figures",
    "autotune.report.pages.html",
    "autotune.report.pages.study_page",
    "autotune.report.unstated_rules",
    "autotune.report.words.shapes",
    "autotune.search.models.hypotheses",
    "autotune.search.strategies.auto",
    "autotune.session.api",
    "autotune.session.execution.workers",
    "autotune.space.reading.reader",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "ruamel.yaml",
)
"""What takes long to load, and several tests need."""

MOST_BYTES = 1 << 17
"""Of a request, which is one packet."""


class Forking:
    """The side of the tests: asks for one process after another."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                cwd=Path(__file__).parents[2],
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # what has other threads may not fork
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def run(
        self, folder: Path, arguments: Sequence[str], to: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        """``python -m autotune`` with ``arguments`` in ``folder``, with the environment of this process.

        Where stdout goes ``to`` a descriptor, nothing of it is in what is returned.
        """
        request = json.dumps([str(folder), dict(os.environ), arguments]).encode()
        with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
            into = stdout.fileno() if to is None else to
            socket.send_fds(self._control, [request], [into, stderr.fileno()])
            code = int(self._control.recv(MOST_BYTES))
            stdout.seek(0)
            stderr.seek(0)
            return subprocess.CompletedProcess(arguments, code, stdout.read(), stderr.read())

    def close(self) -> None:
        self._control.close()
        self._process.wait()


@cache
def the_forking() -> Forking:
    """One for all tests of this process."""
    return Forking()


def serve(control: socket.socket) -> None:
    """Fork a process for each request. Returns in these, and when there will be no further request."""
    while True:
        request, streams, _, _ = socket.recv_fds(control, MOST_BYTES, 2)
        if not request:
            sys.exit()
        child = os.fork()
        if child == 0:
            control.close()
            become(*json.loads(request), streams)
            return
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(child, 0)
        control.send(str(os.waitstatus_to_exitcode(status)).encode())


def become(folder: str, environment: dict[str, str], arguments: list[str], streams: list[int]) -> None:
    """What a new process is given."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for own, stream in enumerate(streams, start=1):
        os.dup2(stream, own)
        os.close(stream)
    sys.path[0] = folder  # as `python -m` has it
    sys.argv[1:] = arguments


if __name__ == "__main__":
    for module in LOADED:
        importlib.import_module(module)
    gc.freeze()  # a collection in a process would write to all that it shares with this one, and so copy it
    serve(socket.socket(fileno=int(sys.argv[1])))
    runpy.run_module("autotune", run_name="__main__", alter_sys=True)
