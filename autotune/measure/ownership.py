"""Who owns a temporary thing (a control group, a scratch folder), so that what a dead owner left is swept.

The name of such a thing carries its owner: the PID namespace, the process and when it started. A process
of another namespace (another container that shares a folder with us) cannot be judged from here, and
what it owns is left alone.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from autotune.errors import AutotuneError
from autotune.measure.process_stat import stat_of

PREFIX = "autotune-"
_OWNED = re.compile(rf"{PREFIX}(\d+)-(\d+)-(\d+)-")


def owned_name(suffix: str) -> str:
    """A name that says it belongs to this process: ``autotune-NAMESPACE-PID-START-suffix``.

    Of the suffix only what any file system and any locale has.
    """
    pid, plain = os.getpid(), re.sub(r"[^\w.-]", "_", suffix, flags=re.ASCII)
    started = _started(pid)
    return f"{PREFIX}{_namespace()}-{pid}-{-1 if started is None else started}-{plain}"


def is_abandoned(name: str) -> bool:
    """Whether ``name`` is one of ours and its owner, of this namespace, is dead."""
    found = _OWNED.match(name)
    if found is None or int(found[1]) != _namespace():
        return False
    return _started(int(found[2])) not in (None, int(found[3]))


def make_scratch(suffix: str) -> Path:
    """A new temporary folder of this process; folders that dead processes left are removed first.

    Raises :class:`AutotuneError` where none can be made.
    """
    try:
        sweep_scratch()
        return Path(tempfile.mkdtemp(prefix=owned_name(f"{suffix}-")))
    except OSError as error:
        why = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        raise AutotuneError(f"no temporary folder can be made: {why}; TMPDIR names the place") from error


def sweep_scratch() -> None:
    """Remove the temporary folders that dead processes left."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if is_abandoned(left.name):
            shutil.rmtree(left, ignore_errors=True)


def _namespace() -> int:
    try:
        return Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return 0


def _started(pid: int) -> int | None:
    """When the process started, in clock ticks since boot; -1 where there is none. A zombie is dead.

    ``None`` where this cannot be told, since no more files can be opened, say: nobody is dead for that.
    """
    try:
        fields = stat_of(f"/proc/{pid}")
        return -1 if fields[0] in b"ZX" else int(fields[19])
    except (FileNotFoundError, ProcessLookupError, IndexError):
        return -1
    except OSError:
        return None
