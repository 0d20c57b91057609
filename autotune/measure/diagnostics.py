"""The output of a program, a compiler or an exception: which line of it says why it failed."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable
from itertools import zip_longest

from autotune.measure.torchrun import without_torchrun

MOST_MESSAGE = 2000
"""How many characters of a message are kept with a trial."""
_CUT = " ..."

MOST_TEXT = 1 << 20
"""How many characters of an exception's text are looked at; as many are kept of a program's output."""

_PLACE = r".+[:(]\d+\)?|[\w+./-]+"
"""``bench.c:6:15``, ``kernel.cu(12)``, or a program such as ``cc1``."""
_COMPILER_ERROR = re.compile(rf"({_PLACE}): (fatal )?error: |error(\[\w+\])?: ")
"""After the first error GCC and Clang print its source, carets and notes, and errors that follow from it."""

_ONLY_THAT_IT_FAILED = re.compile(
    r"""(g?make|ninja)(\[\d+\])?:\ (\*\*\*|build\ stopped|Target\ .*\ not\ remade)
        |collect2:\ error:\ ld\ returned
        |(clang[\w+.-]*:\ )?error:\ (linker\ command\ failed|aborting\ due\ to|could\ not\ compile)
        |BEGIN\ failed--compilation\ aborted|Execution\ of\ .*\ aborted\ due\ to\ compilation
        |Error:\ (Could\ not\ create\ the\ Java\ Virtual\ Machine|A\ fatal\ exception\ has\ occurred)
        |\s*$""",
    re.VERBOSE,
)
"""What make, a linker's driver, cargo, Perl and Java print last; the lines before say what was wrong."""

_CALL = re.compile(r"\s+at\s+\S")
"""A line of a stack as Java, JavaScript, C# and Rust write it: below what was thrown."""
_BELOW_THE_REASON = re.compile(
    rf"""{_CALL.pattern}
        |\s+\.\.\.\ \d+\ (more|common\ frames\ omitted)
        |\s+\S.*\ called\ at\ \S+\ line\ \d+|\s+from\ \S+:\d+:in\b
        |Node\.js\ v\d|\(Use\ `node\ |\W+$
        |note:\ |Examine\ the\ log\ output\.$|stack\ backtrace:$|\s+\d+:\ |exit\ status\ \d+$
        |.*\bAborted\b(\ \(core\ dumped\)|\ {{10,}}\S.*|$)""",
    re.VERBOSE,
)
"""What Java, Node, Perl, Ruby, Rust, Go, pg_ctl and a shell print after the reason; brackets, rulings."""

_THROWN = re.compile(
    r"Exception in thread |Caused by: |Unhandled exception"
    r"|([\w$]+\.)*\w*(Error|Exception|Rejection)\b( \[\w+\])?(: |$)"
)
"""The head of a stack. Of several in Java the last says most: it is the cause of the others."""
_PANIC = re.compile(r"thread '.*' (\(\d+\) )?panicked at (.*:\d+:\d+:$)?|panic: |fatal error: ")
"""A panic of Rust or Go. The first one says most, since others follow from it. Newer versions of Rust print
only the place there, and what was wrong on the next line."""
_FRAME = re.compile(r'  File ".*", line \d+, in ')
"""A frame in a Python traceback. The exception follows the last frame and its source, which is indented."""
_LAST_WORDS = re.compile(
    r"  what\(\):  |terminate called after |libc\+\+abi: |memory allocation of \d+ bytes failed"
    r"|(?!\*\*\* )(.*\s)?FATAL\b|# There is insufficient memory for the Java "
)
"""Lines that state the reason, whatever follows them. ``*** FATAL CONFIG FILE ERROR ***`` is a heading."""

_NO_MEMORY = re.compile(
    r"""MemoryError\b|OutOfMemoryException\b|\bstd::bad_alloc\b|heap\ out\ of\ memory$
        |memory\ allocation\ of\ \d+\ bytes\ failed|runtime:\ (cannot\ allocate|out\ of)\ memory
        |^(Out|.*:\ out)\ of\ memory(!|\ allocating\ \d+\ bytes|\ in\ perl\b.*|$)|CUDA\ out\ of\ memory
        |CUDA_ERROR_OUT_OF_MEMORY|RESOURCE_EXHAUSTED:.*\b[Oo]ut\ of\ memory|OOM\ when\ allocating
        |Cannot\ allocate\ memory|memory\ exhausted|insufficient\ memory\ for\ the\ Java|\(errno=12\)$""",
    re.VERBOSE,
)


def telling_line(text: str) -> str:
    """The first error that a compiler names, what a language's runtime gives as the reason, or else the last
    line that says more than that something failed. Empty where there is no line at all."""
    lines = without_torchrun(text).strip().splitlines()
    telling = [line for line in lines if not _ONLY_THAT_IT_FAILED.match(line)] or lines
    error = next((line for line in telling if _COMPILER_ERROR.match(line)), "")
    return (error or _runtimes_reason(telling) or _last(telling)).strip("│| \t")


def _runtimes_reason(lines: list[str]) -> str:
    for line, behind in zip_longest(lines, lines[1:], fillvalue=""):
        if found := _PANIC.match(line):
            return behind or line if found[2] else line
    calls = [place for place, line in enumerate(lines) if _CALL.match(line)]
    heads = [line for line in lines[: calls[-1]] if _THROWN.match(line)] if calls else []
    return _last(heads or [line for line in lines if _LAST_WORDS.match(line)]) or _exception(lines)


def _exception(lines: list[str]) -> str:
    """The first line of a Python exception. Many have more lines, with hints and details, and Hydra or JAX
    print others after them: no line after the first says as much."""
    frames = [place for place, line in enumerate(lines) if _FRAME.match(line)]
    behind = lines[frames[-1] + 1 :] if frames else []
    return next((line for line in behind if not line[:1].isspace()), "")


def _last(lines: list[str]) -> str:
    """The last line that is not known to come after the reason; else the last one."""
    return next(
        (line for line in reversed(lines) if not _BELOW_THE_REASON.match(line)), lines[-1] if lines else ""
    )


def is_of_memory(line: str) -> bool:
    """Whether a line that tells why a program failed says that there was not enough memory, in the words of
    Java, .NET, Node, C++, Rust, Go, Perl, Python, CUDA, JAX, TensorFlow or the C library."""
    return _NO_MEMORY.search(line) is not None


def lacks_memory(kinds: Iterable[str], message: str) -> bool:
    """Whether an exception says that there was not enough memory: by the names of its types, or, as with
    PyTorch on a CPU and JAX, by the first line of its message."""
    return not {"MemoryError", "OutOfMemoryError"}.isdisjoint(kinds) or is_of_memory(headline(message))


def kept(message: str) -> str:
    """As much of a message as is kept with a trial: its beginning, or what begins with the line that says why
    where that would be cut off."""
    if len(message) <= MOST_MESSAGE:
        return message
    room = MOST_MESSAGE - len(_CUT)
    telling = telling_line(message)
    begins = message.find(telling)
    if begins > 0 and begins + len(telling) > room:
        message = f"{_CUT.strip()} {message[begins:]}"
    return message if len(message) <= MOST_MESSAGE else f"{message[:room]}{_CUT}"


def headline(message: str) -> str:
    """The one line of a trial's message to show: a compiler's first error, else the first line."""
    lines = message.strip().splitlines()
    return next((line.strip() for line in lines if _COMPILER_ERROR.match(line)), lines[0] if lines else "")


def text_of(error: BaseException) -> str:
    """The text of an exception. Its ``__str__`` may itself raise, which is caught."""
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
