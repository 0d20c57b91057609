"""Files that runs of a program leave in its folder, which a run that begins from nothing must not find.

A checkpoint is for the trial that was paused. With one that a complete run left, the next run of the same
configuration would begin at its end or in the middle, and its readings would not be independent.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from autotune.measure.kernels.compile_cache import write_whole


class Leftovers:
    """What runs have left in ``folder``; the file ``record``, outside of it, lists what was there before.

    So several processes may run the same configuration one after the other.
    """

    def __init__(self, folder: Path, record: Path) -> None:
        self._folder = folder
        self._record = record

    def note(self) -> None:
        """Before the first run: note what is there now, which runs have not left."""
        if not self._record.exists():
            self._write(self._names())

    def clear(self) -> None:
        """Remove what runs have left."""
        before = self._read()
        for name in sorted(self._names() - before) if before is not None else ():
            path = self._folder / name
            with suppress(OSError):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)

    @contextmanager
    def apart_from(self) -> Iterator[None]:
        """What is made inside does not count as left by runs: it stays."""
        before = self._names()
        try:
            yield
        finally:
            known = self._read()
            if known is not None and (made := self._names() - before):
                self._write(known | made)

    def _names(self) -> frozenset[str]:
        return frozenset(str(path.relative_to(self._folder)) for path in self._folder.rglob("*"))

    def _read(self) -> frozenset[str] | None:
        try:
            return frozenset(json.loads(self._record.read_text()))
        except FileNotFoundError:
            return None

    def _write(self, names: frozenset[str]) -> None:
        self._record.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._record, json.dumps(sorted(names)).encode())
