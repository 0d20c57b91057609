"""Prepared data, kept across trials and searches: arrays that are named by all that they were made from.

Decoding, tokenising or extracting features often takes longer than a trial that is stopped early, and is the
same for all of them. An entry is a folder of ``.npy`` files and a list of them with their hashes::

    folder/ab/abcdef.../manifest.json   {"key": ..., "arrays": {name: sha256}}
                        inputs.npy      opened as a memory map, read only, so that processes share it

An entry is written under another name and then renamed, so a process that is killed leaves none half done. Of
several processes that want the same entry, one makes it and the others wait. An entry whose files do not have
the hashes in its list is made anew. When the folder grows past its limit, the entries that were not used for
longest are removed.

The key must hold everything that the result depends on: the hash of the raw data, the parameters, and a text
that is changed whenever the code that prepares the data changes.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from autotune.measure.kernels.compile_cache import cache_key

Arrays = dict[str, NDArray[np.generic]]

MOST_BYTES = 20 * 2**30
"""Beyond that, what was not used for longest is deleted."""

_MANIFEST = "manifest.json"
_UNFINISHED = ".unfinished-"


class PreparedData:
    """A cache in ``folder``, which belongs to one user; made when something is first put into it."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self.folder = folder
        self._most_bytes = most_bytes

    def arrays(self, make: Callable[[], Mapping[str, NDArray[np.generic]]], **parts: str | bytes) -> Arrays:
        """The arrays that ``make`` makes, by name; those made earlier from the same ``parts``, if there are.

        They are memory maps that cannot be written to. Where the folder cannot be used (a full disk, no
        permission), they are what ``make`` has just made. What ``make`` raises goes to the caller, and
        nothing is kept. Raises ``ValueError`` for an array of Python objects, or a name that is no file's.
        """
        key = cache_key(**parts)
        found = self._open(key)
        if found is not None:
            return found
        with self._alone_at(key):
            found = self._open(key)  # somebody else was at it
            if found is not None:
                return found
            made = _as_arrays(make())
            with suppress(OSError):  # the folder cannot be used
                self._put(key, made)
        return self._open(key) or made

    @contextmanager
    def _alone_at(self, key: str) -> Iterator[None]:
        """Inside, no other process makes the entry. The kernel frees the lock when the process ends."""
        entry = self._path(key)
        with ExitStack() as held:
            with suppress(OSError):  # no such folder, or no locks: then several may make the same
                entry.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                lock = held.enter_context(entry.with_suffix(".lock").open("a"))
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    # -- entries -------------------------------------------------------------------------------

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key

    def _open(self, key: str) -> Arrays | None:
        """The entry; ``None`` where there is none, or a damaged one, which is removed.

        One that cannot be read now (too many open files, an error of the disk) may be whole, and stays.
        """
        entry = self._path(key)
        if not entry.exists():
            return None
        try:
            manifest = json.loads((entry / _MANIFEST).read_bytes())
            if manifest["key"] != key:
                raise ValueError("another entry")
            arrays = {name: _checked(entry / f"{name}.npy", sha) for name, sha in manifest["arrays"].items()}
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            shutil.rmtree(entry, ignore_errors=True)
            return None
        except OSError:
            return None
        with suppress(OSError):
            os.utime(entry)  # it was used just now
        return arrays

    def _put(self, key: str, arrays: Arrays) -> None:
        entry = self._path(key)
        draft = Path(tempfile.mkdtemp(prefix=f"{key[:8]}{_UNFINISHED}", dir=entry.parent))
        try:
            hashes = {}
            for name, array in arrays.items():
                np.save(draft / f"{name}.npy", array, allow_pickle=False)
                hashes[name] = _hash(draft / f"{name}.npy")
            (draft / _MANIFEST).write_text(json.dumps({"key": key, "arrays": hashes}))
            draft.replace(entry)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        self._make_room(entry)

    def _make_room(self, kept: Path) -> None:
        """Remove what was not used for the longest, but never ``kept``."""
        entries = [(_used(path), _size(path), path) for path in self.folder.glob("??/*") if path.is_dir()]
        excess = sum(size for _, size, _ in entries) - self._most_bytes
        for _, size, path in sorted(entries):
            if excess <= 0:
                return
            if path != kept:
                shutil.rmtree(path, ignore_errors=True)  # whoever has it mapped keeps what is mapped
                excess -= size


def _as_arrays(made: Mapping[str, NDArray[np.generic]]) -> Arrays:
    arrays = {name: np.asarray(array) for name, array in made.items()}
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise ValueError(f"the prepared array {name!r} holds Python objects: convert it to numbers")
        if Path(name).name != name or name.startswith("."):
            raise ValueError(f"the name of a prepared array becomes that of a file, which {name!r} cannot be")
    return arrays


def _checked(file: Path, sha256: str) -> NDArray[np.generic]:
    """The array of a file whose content is what its list says."""
    if _hash(file) != sha256:
        raise ValueError("damaged")
    array: NDArray[np.generic]
    try:
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except ValueError:  # an empty array cannot be mapped
        array = np.load(file, allow_pickle=False)
    return array


def _hash(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _used(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0


def _size(path: Path) -> int:
    with suppress(OSError):
        return sum(file.stat().st_size for file in path.iterdir())
    return 0
