"""The process that runs an objective's code. :mod:`autotune.measure.workers.process` starts and ends it.

Its guardian loads only what is imported here, so that it starts quickly.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from autotune.measure.cores.pinning import pin
from autotune.measure.workers.channel import BlockingChannel
from autotune.measure.workers.guardian import Guardian
from autotune.measure.workers.streams import line_buffered


@dataclass(frozen=True)
class Birth:
    """What a worker's two processes know before they have loaded anything."""

    session: int
    """The session's process."""
    control: int
    """Descriptor of the connection between guardian and session."""
    channel: int
    """Descriptor of the connection between worker and session."""
    notes: int
    """Descriptor of the shared memory that the worker notes its progress in."""
    cores: tuple[int, ...] = ()
    guardian_cores: tuple[int, ...] = ()
    group: str = ""
    """Folder of the control group to remove if the session dies; empty: none."""
    grace: float = 0.0
    """Seconds that programs which the worker runs get after SIGTERM, before all is killed."""
    unset: tuple[str, ...] = ()
    """Variables that were set for this Python process only, and not for what it starts."""


def main(birth: Birth) -> None:
    """Become the guardian, and let the worker serve in a process below it."""
    for name in birth.unset:
        os.environ.pop(name, None)
    pin(birth.guardian_cores)
    control = socket.socket(fileno=birth.control)
    guardian = Guardian(control, birth.session, Path(birth.group) if birth.group else None, birth.grace)
    guardian.run(lambda: serve(birth))


def serve(birth: Birth) -> None:
    """In the worker: serve requests about the objective until the session closes."""
    pin(birth.cores)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # writing a core takes longer than a trial
    faulthandler.enable(2)
    sys.stdout, sys.stderr = line_buffered(1), line_buffered(2)

    # Only now that it is pinned: numpy, which this loads, starts as many threads as it finds cores.
    from autotune.measure.workers.notes import SharedNotes
    from autotune.measure.workers.server import answer_requests

    notes = SharedNotes(birth.notes)
    os.close(birth.notes)
    answer_requests(BlockingChannel(birth.channel), notes)
