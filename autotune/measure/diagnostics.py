"""What a program, a compiler or an exception has said, and which line of it tells why it failed."""

from __future__ import annotations

import re
import signal

MOST_MESSAGE = 2000
"""Characters of a message that a trial keeps."""
_CUT = " ..."

MOST_TEXT = 1 << 20
"""Characters of what an objective raised that are looked at; as much is kept of what a program prints."""

_PLACE = r".+[:(]\d+\)?|[\w+./-]+"
"""``bench.c:6:15``, ``kernel.cu(12)``, or a program such as ``cc1``."""
_COMPILER_ERROR = re.compile(rf"({_PLACE}): (fatal )?error: |error(\[\w+\])?: ")
"""GCC and Clang follow an error with its source, carets and notes, and with errors that come of it."""

_ONLY_THAT_IT_FAILED = re.compile(
    r"""(g?make|ninja)(\[\d+\])?:\ (\*\*\*|build\ stopped|Target\ .*\ not\ remade)
        |collect2:\ error:\ ld\ returned
        |(clang[\w+.-]*:\ )?error:\ (linker\ command\ failed|aborting\ due\ to|could\ not\ compile)
        |\s*$""",
    re.VERBOSE,
)
"""What make, a linker's driver and cargo say in the end: the lines before say what."""


def telling_line(text: str) -> str:
    """The first error that a compiler names, else the last line that says more than that something failed.

    Empty where there is no line at all.
    """
    lines = text.strip().splitlines()
    telling = [line for line in lines if not _ONLY_THAT_IT_FAILED.match(line)] or lines
    errors = (line for line in telling if _COMPILER_ERROR.match(line))
    return next(errors, telling[-1] if telling else "").strip()


def kept(message: str) -> str:
    """As much of a message as a trial keeps: its beginning, or from the line that tells why, where that lies
    beyond."""
    if len(message) <= MOST_MESSAGE:
        return message
    room = MOST_MESSAGE - len(_CUT)
    telling = telling_line(message)
    if message.find(telling) + len(telling) > room:
        message = f"{_CUT.strip()} {message[message.find(telling) :]}"
    return message if len(message) <= MOST_MESSAGE else f"{message[:room]}{_CUT}"


def headline(message: str) -> str:
    """The line of a trial's message that stands for it: a compiler's first error, else the first line."""
    lines = message.strip().splitlines()
    return next((line.strip() for line in lines if _COMPILER_ERROR.match(line)), lines[0] if lines else "")


def text_of(error: BaseException) -> str:
    """What an exception says. Its ``__str__``, or that of what it holds, may raise in its turn."""
    try:
        return writable(str(error).strip()[:MOST_TEXT])
    except (Exception, SystemExit) as second:  # noqa: BLE001 - whatever an objective's __str__ raises
        return f"(its text cannot be shown: {type(second).__name__})"


def writable(text: str) -> str:
    """``text`` with halves of surrogate pairs written out (``\\udcff``), which no encoding takes.

    Python makes them of bytes that are not UTF-8: the name of a file, what a program prints.
    """
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def signal_name(number: int) -> str:
    """``SIGSEGV``; ``signal 40`` for one that has no name, a real-time signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
