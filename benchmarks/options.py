"""The options of a benchmark, and the command that its page says it was made with."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any


class Options(argparse.ArgumentParser):
    """Options that decide what comes out are in the command; those that are added :meth:`aside` are not.

    It begins with ``__file__`` and ``__doc__`` of the benchmark. ``--out``, the page, comes by itself.
    """

    def __init__(self, file: str, text: str | None) -> None:
        self._said: list[argparse.Action] = []
        super().__init__(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
        self._said.clear()  # of what asks for help
        self._module = Path(file).stem

    def add_argument(self, *names: Any, **settings: Any) -> argparse.Action:
        action = super().add_argument(*names, **settings)
        self._said.append(action)
        return action

    def aside(self, *names: Any, **settings: Any) -> None:
        """Where things lie, or how many run at once: what comes out is the same."""
        super().add_argument(*names, **settings)

    def read(self) -> argparse.Namespace:
        """What was asked for, with ``out`` and ``command``."""
        self.aside("--out", type=Path, help="where to write the page, too")
        options = self.parse_args()
        options.command = shlex.join(["python", "-m", f"benchmarks.{self._module}", *self._words(options)])
        return options

    def _words(self, options: argparse.Namespace) -> list[str]:
        words: list[str] = []
        for action in self._said:
            value = getattr(options, action.dest)
            name = action.option_strings[-1:]
            if action.nargs == 0:
                words += name if value else []
            elif value not in (None, "", []):
                words += [*name, *_texts(value, action)]
        return words


def _texts(value: Any, action: argparse.Action) -> list[str]:
    """A value as it is given; a place on this machine by what it is called."""
    if isinstance(value, (list, tuple)):
        texts = [text for one in value for text in _texts(one, action)]
        return texts if action.nargs else [",".join(texts)]
    if isinstance(value, Path):
        return [str(action.metavar or "DIR")]
    return [f"{value:g}" if isinstance(value, float) else str(value)]
