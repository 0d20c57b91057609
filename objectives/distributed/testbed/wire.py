"""The switch of a test bed as a process: ``wire.c``, compiled where it is first needed."""

from __future__ import annotations

import hashlib
import json
import os
import select
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autotune.provenance.compiler import NoCompilerError, c_compiler

SOURCE = Path(__file__).with_name("wire.c")
SLOTS = 16384
"""Packets that can be under way. What none has used takes no memory."""

_SECONDS = 5.0


class WireError(RuntimeError):
    """The switch could not be made, or does not answer."""


@dataclass(frozen=True)
class Traffic:
    """What went over the wire since it was last asked."""

    packets: int
    lost: int
    """Over a link that was cut."""
    late_mean: float
    """Seconds between when packets were handed over and when their links would have, on the average."""
    late_most: float
    bytes: tuple[tuple[int, ...], ...]
    """From each device (row) to each (column), with the headers of TCP and IP."""

    @property
    def total(self) -> int:
        return sum(map(sum, self.bytes))


class Wire:
    """The running switch. It ends with its standard input, that is with this process."""

    def __init__(
        self,
        program: Path,
        descriptors: Sequence[int],
        bandwidths: Sequence[float],
        latencies: Sequence[Sequence[float]],
    ) -> None:
        """``bandwidths`` in bits a second, by device; ``latencies`` in seconds, from row to column."""
        links = [str(x) for pair in zip(descriptors, bandwidths, strict=True) for x in pair]
        delays = [str(round(1e9 * latency)) for row in latencies for latency in row]
        self._process = subprocess.Popen(
            [str(program), str(SLOTS), str(len(descriptors)), *links, *delays],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=tuple(descriptors),
            start_new_session=True,
        )
        self.pid = self._process.pid
        self.real_time = bool(json.loads(self._line())["real_time"])
        """Whether it runs as soon as there is something to do, whatever else runs."""

    def cut(self, device: int) -> None:
        """Lose whatever goes from or to a device from now on."""
        self._say(f"cut {device}")

    def traffic(self) -> Traffic:
        """What went over it since the last call."""
        self._say("stats")
        found = json.loads(self._line())
        return Traffic(**{**found, "bytes": tuple(map(tuple, found["bytes"]))})

    @property
    def ended(self) -> int | None:
        return self._process.poll()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _say(self, text: str) -> None:
        assert self._process.stdin is not None
        try:
            os.write(self._process.stdin.fileno(), f"{text}\n".encode())
        except OSError as error:
            raise WireError(f"the wire is gone: {error}") from error

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], _SECONDS)[0]:
            raise WireError("the wire does not answer")
        line = self._process.stdout.readline()
        if not line:
            raise WireError(f"the wire ended with code {self._process.wait()}")
        return line


def compile_wire() -> Path:
    """The program in a folder of this user, compiled where it is not there yet."""
    folder = Path(tempfile.gettempdir()) / f"autotune-wire-{os.getuid()}"
    try:
        compiler = c_compiler()
    except NoCompilerError as error:
        raise WireError(str(error)) from error
    name = hashlib.sha256(SOURCE.read_bytes() + shlex.join(compiler).encode()).hexdigest()[:16]
    program = folder / f"wire-{name}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise WireError(f"{folder} belongs to somebody else, and so would what is run from it")
    if not program.exists():
        unfinished = program.with_suffix(f".{os.getpid()}")
        done = subprocess.run(
            [*compiler, "-O2", str(SOURCE), "-o", str(unfinished)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise WireError(f"{shlex.join(compiler)} refuses it: {done.stderr.strip()[-500:]}")
        unfinished.replace(program)
    return program
