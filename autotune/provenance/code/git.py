"""Questions to git, bounded in time and size.

Every answer may be ``None``: there is no git, no repository, or it takes too long.
"""

from __future__ import annotations

import hashlib
import os
import selectors
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_CONFIGURATION = (
    *("-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "-c", "color.ui=false"),
    *("-c", "diff.suppressBlankEmpty=false"),
)
"""Whatever the user has configured, the same question gets the same answer and starts no daemon."""

_MISLEADING = frozenset(
    {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_NAMESPACE"}
    | {"GIT_PREFIX", "GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS", "GIT_LITERAL_PATHSPECS", "GIT_TRACE"}
)


@dataclass(frozen=True)
class Output:
    """What a command wrote: its first bytes, and size and SHA-256 of all of it."""

    kept: bytes
    size: int
    sha256: str

    @property
    def truncated(self) -> bool:
        return self.size > len(self.kept)


NOTHING = Output(b"", 0, hashlib.sha256().hexdigest())
"""What a command wrote that wrote nothing."""


def ask(folder: Path, *arguments: str, seconds: float = 5.0) -> str | None:
    """What git writes to its standard output, as text; ``None`` where it fails or takes too long."""
    output = stream(folder, arguments, limit=64 << 20, seconds=seconds)
    return None if output is None or output.truncated else output.kept.decode(errors="surrogateescape")


def stream(folder: Path, arguments: Sequence[str], *, limit: int, seconds: float) -> Output | None:
    """Read all that git writes, keep the first ``limit`` bytes, hash the whole."""
    try:
        process = subprocess.Popen(
            ["git", *_CONFIGURATION, *arguments],
            cwd=folder,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:  # no git, no such folder
        return None
    with process:
        output = _drain(process, limit, time.monotonic() + seconds)
        if output is None:
            process.kill()
        return output if process.wait() == 0 else None


def _drain(process: subprocess.Popen[bytes], limit: int, deadline: float) -> Output | None:
    assert process.stdout is not None
    kept, size, digest = bytearray(), 0, hashlib.sha256()
    descriptor = process.stdout.fileno()
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while selector.select(max(0.0, deadline - time.monotonic())):
            block = os.read(descriptor, 1 << 16)
            if not block:
                return Output(bytes(kept), size, digest.hexdigest())
            size += len(block)
            digest.update(block)
            kept += block[: max(0, limit - len(kept))]
    return None


def _environment() -> dict[str, str]:
    """A hook's GIT_DIR would point elsewhere; optional locks would disturb a git that works beside us."""
    kept = {name: value for name, value in os.environ.items() if name not in _MISLEADING}
    return {**kept, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
