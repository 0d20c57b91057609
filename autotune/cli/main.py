"""The command line: what the shell calls."""

from __future__ import annotations

import signal
import sys

from autotune.cli.codes import INTERRUPTED


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with the code (:mod:`autotune.cli.codes`) that says how it ended.

    Whoever interrupts it while it is loaded, or while the process ends, gets no traceback. So this file
    imports next to nothing itself. What a service manager sends (SIGTERM) is taken as an interrupt, so that
    processes and folders are cleared away.
    """
    if arguments is None and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        from autotune.cli.verbs import call

        call(arguments)
    except KeyboardInterrupt:
        sys.stderr.write("autotune: interrupted\n")
        sys.exit(INTERRUPTED)
    finally:
        if arguments is None:  # the process ends, and all is said
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
