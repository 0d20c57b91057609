"""``--set lr=0.1`` for a script's own argument parser."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any


def add_set(parser: argparse.ArgumentParser, told: Callable[[str, str], None]) -> None:
    """Add ``--set NAME=VALUE``; ``told`` is called with each name and text."""

    class _Set(argparse.Action):
        def __call__(
            self,
            parser: argparse.ArgumentParser,
            namespace: argparse.Namespace,
            values: str | Sequence[Any] | None,
            option_string: str | None = None,
        ) -> None:
            name, equals, text = str(values).partition("=")
            if not (equals and name.strip()):
                parser.error(f"--set {values}: expected NAME=VALUE, --set lr=0.1 for instance")
            told(name.strip(), text)

    parser.add_argument(
        "--set",
        action=_Set,
        metavar="NAME=VALUE",
        default=argparse.SUPPRESS,
        help="set a knob; may be given several times",
    )
