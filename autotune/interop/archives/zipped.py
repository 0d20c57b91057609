"""Reading a ZIP file that anybody may have made: nothing is unpacked, and nothing is believed.

Members are read as streams, each up to the size that it declares and all up to a limit, and never written to
a disk. Names that lead elsewhere, links, encrypted members and names that come twice are refused.
"""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from autotune.errors import InputError, Location, Problem
from autotune.interop.archives.format import is_member_name

GIB = 1 << 30


@dataclass(frozen=True)
class Limits:
    """How much of an archive is read before it is refused."""

    members: int = 100_000
    total: int = 8 * GIB
    """Bytes of all members, unpacked."""
    member: int = 4 * GIB
    line: int = 64 << 20
    ratio: int = 250
    """Unpacked to packed size; past it, an archive of more than :attr:`small` bytes is a bomb."""
    small: int = 256 << 20


class Archive:
    """A ZIP file that is there to be read. Use it in a ``with`` block.

    Raises :class:`InputError`, which names the file and the member, for whatever is wrong with it.
    """

    def __init__(self, file: Path, limits: Limits = Limits()) -> None:
        self.file = file
        self.limits = limits
        try:
            self._zip = zipfile.ZipFile(file)
        except FileNotFoundError:
            raise InputError(Problem(f"there is no file {file}")) from None
        except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError, EOFError) as error:
            raise self.wrong(f"it cannot be read as a ZIP file: {error}") from None
        try:
            self._members = self._checked()
        except BaseException:
            self._zip.close()
            raise
        self._read = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._members)

    def size(self, name: str) -> int:
        """The bytes that a member declares to have."""
        return self._members[name].file_size

    def chunks(self, name: str) -> Iterator[bytes]:
        """The content of a member, piece by piece."""
        info = self._members.get(name)
        if info is None:
            raise self.wrong(f"{name} is missing")
        left = info.file_size
        try:
            with self._zip.open(info) as stream:
                while chunk := stream.read(1 << 20):
                    left -= len(chunk)
                    self._read += len(chunk)
                    if left < 0 or self._read > 4 * self.limits.total:
                        raise self.wrong(f"{name} is larger than it declares")
                    yield chunk
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            OSError,
            NotImplementedError,
            RuntimeError,
        ) as error:
            raise self.wrong(f"{name} is damaged: {error}") from None

    def read(self, name: str, most: int = 256 << 20) -> bytes:
        """The content of a small member."""
        if name in self._members and self.size(name) > most:
            raise self.wrong(f"{name} is too large: {self.size(name):,} bytes")
        return b"".join(self.chunks(name))

    def lines(self, name: str) -> Iterator[bytes]:
        """The lines of a member without their ends."""
        rest = b""
        for chunk in self.chunks(name):
            rest += chunk
            if len(rest) > self.limits.line and b"\n" not in rest:
                raise self.wrong(f"{name} has a line of more than {self.limits.line:,} bytes")
            if b"\n" in chunk:
                *whole, rest = rest.split(b"\n")
                yield from whole
        if rest:
            yield rest

    def wrong(self, message: str) -> InputError:
        return InputError(Problem(message, Location(str(self.file))))

    # -- what it is made of

    def _checked(self) -> dict[str, zipfile.ZipInfo]:
        infos = self._zip.infolist()
        if len(infos) > self.limits.members:
            raise self.wrong(f"it has {len(infos):,} members, and {self.limits.members:,} are the most")
        members: dict[str, zipfile.ZipInfo] = {}
        for info in infos:
            self._check_member(info)
            if info.filename in members:
                raise self.wrong(f"the member {info.filename} is there twice")
            members[info.filename] = info
        total = sum(info.file_size for info in infos)
        packed = sum(info.compress_size for info in infos)
        if total > self.limits.total:
            raise self.wrong(f"it unpacks to {total:,} bytes, and {self.limits.total:,} are the most")
        if total > self.limits.small and total > self.limits.ratio * max(packed, 1):
            raise self.wrong(f"it unpacks from {packed:,} to {total:,} bytes: no study is so repetitive")
        return members

    def _check_member(self, info: zipfile.ZipInfo) -> None:
        name = info.orig_filename
        if not is_member_name(name) or name != info.filename:
            raise self.wrong(f"a member has a name that it must not have: {name[:200]!r}")
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
            raise self.wrong(f"the member {name} is a link or something else than a file")
        if info.flag_bits & 0x1:
            raise self.wrong(f"the member {name} is encrypted")
        if info.file_size > self.limits.member:
            raise self.wrong(f"the member {name} unpacks to {info.file_size:,} bytes")
