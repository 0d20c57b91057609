"""The text of a space file, or a clear reason why there is none."""

from __future__ import annotations

from pathlib import Path

from autotune.errors import InputError, Location, Problem, nearest
from autotune.ready import ready_spaces

MAX_BYTES = 1 << 20
"""The largest file that is read: far beyond any that a person writes, small enough to be read in seconds."""


def load_text(path: Path) -> str:
    """The file's text, decoded from UTF-8. Raises :class:`InputError` for anything but a small text file."""
    try:
        if path.is_dir():
            raise _error(path, "this is a folder", "a space file", _candidate(path))
        if not path.exists():
            raise _error(path, "there is no such file", "", _instead(path))
        if not path.is_file():
            raise _error(path, "this is not a regular file", "a space file")
        if path.stat().st_size > MAX_BYTES:
            size = path.stat().st_size / MAX_BYTES
            raise _error(
                path, f"the file has {size:,.1f} MiB", f"a space file of at most {MAX_BYTES >> 20} MiB"
            )
        data = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise _error(path, f"the file cannot be read: {reason}") from None
    return decode(data, str(path))


def load_space(path: Path) -> str:
    """As :func:`load_text`, for a space file: a program in its place is told as such."""
    text = load_text(path)
    if path.suffix == ".py":
        names = f"command: [python, {path.name}], or objective: {path.name}:NAME"
        raise _error(path, "this is a program", f"a space file, which names it as {names}")
    return text


def decode(data: bytes, file: str) -> str:
    """UTF-8, with or without a byte order mark; an error names the place of the first byte that is not."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line_start = before.rfind(b"\n") + 1
        column = len(before[line_start:].decode("utf-8")) + 1
        where = Location(file, before.count(b"\n") + 1, column)
        found = f"the byte 0x{data[error.start]:02x} is not UTF-8"
        raise InputError(Problem(found, where, "a text file in UTF-8", _encoding_hint(data))) from None


def _encoding_hint(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "this looks like UTF-16; save it as UTF-8"
    if b"\x00" in data:
        return "this looks like a binary file"
    return "save it as UTF-8"


def _error(path: Path, message: str, expected: str = "", hint: str = "") -> InputError:
    return InputError(Problem(message, Location(str(path)), expected, hint))


def _candidate(folder: Path) -> str:
    """The one space file in ``folder``, as a hint."""
    found = sorted(folder.glob("*.yaml"))
    return f"did you mean {str(found[0])!r}?" if len(found) == 1 else ""


def _instead(path: Path) -> str:
    """What may be meant by a file that does not exist: a ready space, or the nearest name beside it."""
    if path.is_symlink():
        return f"it is a link to {str(path.readlink())!r}"
    if (ready := ready_spaces().get(str(path))) is not None:
        return f"the ready space of this name is {str(ready)!r}"
    if not path.parent.is_dir():
        return f"there is no folder {str(path.parent)!r} either"
    return nearest(path.name, [file.name for file in path.parent.glob("*.y*ml")])
