"""A ZIP file in the making, which hashes what goes through it, member by member and line by line."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from autotune.interop.archives.format import MANIFEST, line_hash
from autotune.store.documents import content_hash

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every member: when an archive was written says nothing of the study."""


class HashedZip:
    """Writes ``file``. Use it in a ``with`` block; lines belong to the member that was begun last."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("wb")
        self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_DEFLATED, compresslevel=6)
        self.members: dict[str, tuple[int, str]] = {}
        """Bytes and SHA-256 of each, but for the manifest, which tells of them."""
        self.lines: dict[str, list[str]] = {}
        """A short hash of each line of those that are made of lines."""
        self._name = ""
        self._stream: IO[bytes] | None = None
        self._hash = hashlib.sha256()
        self._size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file, self._zip:  # on a full disk each of them fails to close, and is closed then
            if self._stream is not None:
                self._stream.close()

    def begin(self, name: str) -> None:
        self._end()
        self._name, self._hash, self._size = name, hashlib.sha256(), 0
        self._stream = self._zip.open(_info(name), "w", force_zip64=True)
        self.lines[name] = []

    def line(self, line: bytes) -> None:
        assert self._stream is not None
        self._stream.write(line + b"\n")
        self._hash.update(line + b"\n")
        self._size += len(line) + 1
        self.lines[self._name].append(line_hash(line))

    def _end(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None
            self.members[self._name] = (self._size, self._hash.hexdigest())

    def content(self, name: str, content: bytes) -> None:
        self._end()
        self._zip.writestr(_info(name), content)
        if name != MANIFEST:
            self.members[name] = (len(content), content_hash(content))

    def text(self, name: str, text: str) -> None:
        self.content(name, text.encode("utf-8", "replace"))


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    return info
