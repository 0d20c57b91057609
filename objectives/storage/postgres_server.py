"""A PostgreSQL server of our own: without network, never longer there than this process, killed at will."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from postgres_programs import NAME, Programs, server_account

from autotune.measure.diagnostics import telling_line
from autotune.measure.libc import dying_with_parent, leave_namespace
from autotune.measure.ownership import make_scratch
from autotune.measure.workers.descendants import descendants, runs, signal_all

DURABLE = ("fsync", "synchronous_commit", "full_page_writes")
"""What is on, and no configuration can change."""

_READY = "ready"
"""The last line of a server's ``postmaster.pid`` once it can be asked."""
_NAP_SECONDS = 0.002
_ENDING_SECONDS = 5.0
_CLONE_NEWIPC = 0x08000000


class ServerRefused(RuntimeError):  # noqa: N818 - the server's own words
    """The server has ended by itself instead of getting ready."""


class Server:
    """One server and its folder, which is made here: ``data`` in it is the caller's to fill.

    The folder belongs to this process by its name, so that whoever tidies up after a dead process removes it.
    """

    def __init__(self, programs: Programs) -> None:
        self.programs, self.account = programs, server_account()
        self.home = make_scratch("postgres")
        self.data = self.home / "data"
        self._process: subprocess.Popen[bytes] | None = None
        if self.account:
            shutil.chown(self.home, self.account)

    # -- life ----------------------------------------------------------------------------------

    def initdb(self) -> None:
        """Make an empty database cluster."""
        options = ("-U", NAME, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        self.programs.run("initdb", "-D", str(self.data), *options, account=self.account)

    def start(self, settings: Mapping[str, str]) -> None:
        """Start it with these settings; over when it can be asked. Raises :class:`ServerRefused`."""
        own = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.home),
            "log_line_prefix": "",
            # Of all kinds of shared memory these vanish with the processes, however they end.
            "dynamic_shared_memory_type": "sysv" if self._has_own_memory() else "mmap",
        }
        given = [f"-c{name}={value}" for name, value in {**settings, **own}.items()]
        log = self.home / "log"
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [str(self.programs.folder / "postgres"), "-D", str(self.data), *given],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.home,
                preexec_fn=_before_server(self.account),
            )
        while not self._ready():
            if self._process.poll() is not None:
                said = log.read_text(errors="replace")
                raise ServerRefused(telling_line(said) or f"exit code {self._process.returncode}")
            time.sleep(_NAP_SECONDS)

    def _ready(self) -> bool:
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        own = self._process is not None and lines[:1] == [str(self._process.pid)]  # and no dead one's
        return own and len(lines) >= 8 and lines[7].strip() == _READY

    def _has_own_memory(self) -> bool:
        """Whether the server can be in a namespace for shared memory of its own."""
        try:
            subprocess.run(
                [str(self.programs.folder / "postgres"), "-V"],
                preexec_fn=_leave_memory,
                stdout=subprocess.DEVNULL,
            )
        except (OSError, subprocess.SubprocessError):
            return False
        return True

    def shut_down(self) -> None:
        """End it as it ends in use, with all of its work on the disk."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()
            self._process = None

    def kill(self) -> None:
        """SIGKILL for all of its processes at once; over when none is left."""
        if self._process is None:
            return
        found = self.processes()
        signal_all(found, signal.SIGSTOP)  # lest one sees another die, or starts a new one
        found |= self.processes()
        signal_all(found, signal.SIGKILL)
        self._process.wait()
        while any(map(runs, found)):
            time.sleep(_NAP_SECONDS)
        self._process = None

    def remove(self) -> None:
        """End it without any work, and delete its folder."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_ENDING_SECONDS)
                self._process = None
            self.kill()
        shutil.rmtree(self.home, ignore_errors=True)

    def processes(self) -> frozenset[int]:
        """The ids of its processes."""
        if self._process is None:
            return frozenset()
        return frozenset((self._process.pid, *descendants(self._process.pid)))

    # -- asking --------------------------------------------------------------------------------

    def ask(self, *statements: str) -> list[list[str]]:
        """The rows that statements give, each a transaction of its own, as text.

        Raises :class:`~postgres_programs.ProgramFailed`.
        """
        options = ("-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", *self._where(), "-f", "-")
        said = self.programs.run("psql", *options, stdin="".join(f"{one};\n" for one in statements))
        return [line.split("|") for line in said.splitlines()]

    def number(self, statement: str) -> int:
        """The only number that a statement gives."""
        return int(self.ask(statement)[0][0])

    def bench(self, *arguments: str) -> str:
        """What pgbench says; it leaves the tables as they are before it begins."""
        return self.programs.run("pgbench", "-n", *self._where(), *arguments)

    @contextmanager
    def benching(self, *arguments: str) -> Iterator[None]:
        """Run pgbench beside the block, which kills the server: pgbench ends once its clients see that."""
        with self.programs.running("pgbench", "-n", *self._where(), *arguments):
            yield

    def _where(self) -> tuple[str, ...]:
        return ("-h", str(self.home), "-U", NAME, "-d", NAME)


def _before_server(account: str | None) -> Callable[[], None]:
    """What the child does before it becomes the server. All that it needs is looked up before the fork."""
    dying = dying_with_parent()
    entry = pwd.getpwnam(account) if account else None

    def before_exec() -> None:
        with suppress(OSError):
            _leave_memory()
        if entry:
            os.setgroups([])
            os.setgid(entry.pw_gid)
            os.setuid(entry.pw_uid)
        dying()  # last, since another account forgets it

    return before_exec


def _leave_memory() -> None:
    leave_namespace(_CLONE_NEWIPC, "for shared memory")
