"""Where PostgreSQL's programs are, and how those that only ask a server are run."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from autotune.measure.diagnostics import telling_line
from autotune.measure.libc import dying_with_parent
from autotune.measure.objective import Infeasible
from autotune.provenance.postgres import REMEDY, NoServerError, ServerPrograms, server_programs

ACCOUNTS = ("postgres", "nobody")
"""Who runs the server where this process is root, which the server refuses."""
NAME = "postgres"
"""The user and the database of all that is asked."""


class ProgramFailed(RuntimeError):  # noqa: N818 - psql, pgbench or initdb
    """One of the programs says that it did not work, and why."""


@dataclass(frozen=True)
class Programs(ServerPrograms):
    """Those of one server."""

    def run(self, name: str, *arguments: str, stdin: str = "", account: str | None = None) -> str:
        """What one prints that is told these arguments. Raises :class:`ProgramFailed`."""
        done = subprocess.run(
            [str(self.folder / name), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            env=_environment(),
            user=account,
            group=pwd.getpwnam(account).pw_gid if account else None,
            extra_groups=() if account else None,
        )
        if done.returncode:
            raise ProgramFailed(telling_line(done.stderr) or f"{name}: exit code {done.returncode}")
        return done.stdout

    @contextmanager
    def running(self, name: str, *arguments: str) -> Iterator[None]:
        """Run one beside the block; it has to end by itself after that, however. What it prints is lost."""
        with subprocess.Popen(
            [str(self.folder / name), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            preexec_fn=dying_with_parent(),
        ) as process:
            try:
                yield
            except BaseException:
                process.kill()
                raise


def find_programs() -> Programs:
    """The newest there are, or those that a variable names. Raises :class:`Infeasible` where none are."""
    try:
        found = server_programs()
    except NoServerError as error:
        raise Infeasible(f"{error}; {REMEDY}") from None
    return Programs(found.folder, found.version)


def server_account() -> str | None:
    """Who runs the server; ``None``: who runs this process. Raises :class:`Infeasible` where nobody can."""
    if os.getuid():
        return None
    for name in ACCOUNTS:
        with suppress(KeyError):
            pwd.getpwnam(name)
            return name
    raise Infeasible(f"PostgreSQL refuses to run as root, and there is no account {' or '.join(ACCOUNTS)}")


def _environment() -> Mapping[str, str]:
    """Ours without what would send the programs to another server, and in the language of programs."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {**own, "LC_ALL": "C"}
