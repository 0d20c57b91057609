"""A server and the one who asks it, each a process of its own, that live no longer than a ``with`` block."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from load_generator import Heard, Load
from perceptron import Shape

from autotune.measure.diagnostics import telling_line
from autotune.measure.kernels.compiled_c import SINGLE_THREAD
from autotune.measure.libc import dying_with_parent

HERE = Path(__file__).parent

_ENDING = 1.0
"""Seconds that a process takes to end at most, once it has closed what it had open."""


class EndedByItself(RuntimeError):  # noqa: N818 - the server or the one who asks it
    """A process that was to live on has ended."""


class Program:
    """A process that says a line for each line it is told, or at first. It dies with this process."""

    def __init__(self, script: str, given: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        self._script = script
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - a pipe that nobody reads fills up
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / script), json.dumps(given)],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            preexec_fn=dying_with_parent(),
        )

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        with self._process, self._complaints:  # closes its pipes and waits for it
            pass

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def line(self) -> str:
        """What it says next. Raises :class:`EndedByItself` where it has ended."""
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        if not said:
            self.require_alive()
        return said

    def require_alive(self) -> None:
        """Raise :class:`EndedByItself`, with what it said, where it has ended or is about to."""
        with suppress(subprocess.TimeoutExpired):
            code = self._process.wait(_ENDING)
            self._complaints.seek(0)
            why = telling_line(self._complaints.read().decode(errors="replace")) or f"exit code {code}"
            raise EndedByItself(f"{self._script} has ended by itself: {why}")


class Served:
    """A server that is up, and what asks it."""

    def __init__(self, server: Program, generator: Program) -> None:
        self._server, self._generator = server, generator

    def ask(self, load: Load) -> Heard:
        self._generator.tell(json.dumps(asdict(load)))
        try:
            return Heard(**json.loads(self._generator.line()))
        except EndedByItself:
            self._server.require_alive()  # the one who asks does not know why it is gone
            raise


@contextmanager
def served(shape: Shape, answers: Path, knobs: Mapping[str, Any]) -> Iterator[Served]:
    """A server with these knobs, warm, until the block ends. ``answers``: the file of the right ones."""
    own = dict(knobs)
    threads = dict.fromkeys(SINGLE_THREAD, str(own.pop("blas_threads")))
    sizes = asdict(shape)
    with Program("batch_server.py", {"shape": sizes, "knobs": own}, threads) as server:
        asker = {"shape": sizes, "port": int(server.line()), "answers": str(answers)}
        with Program("load_generator.py", asker, SINGLE_THREAD) as generator:
            yield Served(server, generator)
