"""The command line: what the shell calls."""

from __future__ import annotations

import signal
import sys

from autotune.cli.codes import INTERRUPTED


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with the code (:mod:`autotune.cli.codes`) that says how it ended.

    Whoever interrupts it while it is loaded, or while the process ends, gets no traceback. So this file
    imports next to nothing itself.
    """
    try:
        from autotune.cli.verbs import call

        call(arguments)
    except KeyboardInterrupt:
        sys.stderr.write("autotune: interrupted\n")
        sys.exit(INTERRUPTED)
    finally:
        if arguments is None:  # the process ends, and all is said
            signal.signal(signal.SIGINT, signal.SIG_DFL)
