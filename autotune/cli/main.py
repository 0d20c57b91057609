"""The command line: what the shell calls."""

from __future__ import annotations

import sys

from autotune.cli.codes import INTERRUPTED


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with the code (:mod:`autotune.cli.codes`) that says how it ended.

    Whoever interrupts it while it is loaded gets no traceback: so this file imports next to nothing itself.
    """
    try:
        from autotune.cli.verbs import call

        call(arguments)
    except KeyboardInterrupt:
        sys.stderr.write("autotune: interrupted\n")
        sys.exit(INTERRUPTED)
