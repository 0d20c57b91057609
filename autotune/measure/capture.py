"""The last lines of what an objective prints, however much that is."""

from __future__ import annotations

import os

KEPT = 8192
"""How many bytes of its output are kept with a trial."""

_BLOCK = 1 << 16
_MOST_AT_ONCE = 1 << 24
_MARK = "[... earlier output left out ...]\n"


class Tail:
    """Keeps the last :data:`KEPT` bytes that come through a pipe; the rest is read and forgotten.

    So an objective that prints megabytes neither blocks on a full pipe nor fills a disk.
    """

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self.open = True
        self._kept = bytearray()
        self._dropped = False

    def fileno(self) -> int:
        return self.descriptor

    def drain(self) -> None:
        """Read what is in the pipe: up to 16 MiB, since somebody may write without end."""
        taken = 0
        while self.open and taken < _MOST_AT_ONCE:
            try:
                data = os.read(self.descriptor, _BLOCK)
            except BlockingIOError:
                return
            self.open = bool(data)
            taken += len(data)
            self._kept += data
            if len(self._kept) > KEPT:
                self._dropped = True
                del self._kept[:-KEPT]

    def take(self) -> str:
        """What was kept since the last call, as text; a cut is marked."""
        text = tail_text(bytes(self._kept), self._dropped)
        self._kept.clear()
        self._dropped = False
        return text


def tail_text(data: bytes, cut: bool = False) -> str:
    """The last :data:`KEPT` bytes as text that begins with a whole line where it was cut."""
    cut = cut or len(data) > KEPT
    if not cut:
        return data.decode(errors="replace")
    kept = data[-(KEPT - len(_MARK)) :]
    first = kept.find(b"\n") + 1
    # A single endless line has no beginning to look for.
    return _MARK + kept[first if first < len(kept) else 0 :].decode(errors="ignore")
