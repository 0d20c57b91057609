"""The code behind a number: an objective's source frozen by content, with the state of its repository.

There are two hashes. ``source_hash`` covers the objective's own files: where it differs, it is another study.
``tree_hash`` covers the commit, the diff and the untracked code around them as well: where only that differs,
a new segment of the same study begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from autotune.provenance.code.files import FrozenFile, freeze, named
from autotune.provenance.code.repository import Repository, read_repository
from autotune.provenance.document import Document, Documented, Json, digest


@dataclass(frozen=True)
class SourceSnapshot(Documented):
    """An objective's source as it was at one moment."""

    folder: str
    """The folder that the files' names are relative to; in neither hash."""
    files: tuple[FrozenFile, ...]
    """The objective's own files, by name."""
    repository: Repository | None
    problem: str
    """Why there is no repository; empty where there is one."""
    contents: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """The contents of the objective's own files, by name."""

    @cached_property
    def source_hash(self) -> str:
        """Over names and contents of the objective's own files, wherever they lie: 16 hexadecimal digits."""
        return digest(_by_name(self.files))

    @cached_property
    def tree_hash(self) -> str:
        """Over the objective's own files, the commit, the diff and the untracked code around them."""
        return digest(self._comparable()) if self.repository else self.source_hash

    @property
    def artifacts(self) -> Mapping[str, bytes]:
        """What to store by content, by role: ``source/NAME``, ``diff``, ``untracked/NAME``."""
        own = {f"source/{name}": content for name, content in self.contents.items()}
        return {**own, **(self.repository.artifacts if self.repository else {})}

    def changed_since(self, before: Mapping[str, Any]) -> tuple[str, ...]:
        """The names of the objective's own files that were others in an earlier snapshot's JSON form."""
        was = {str(file["name"]): file["sha256"] for file in before.get("files") or ()}
        now = _by_name(self.files)
        return tuple(name for name in sorted({*was, *now}) if was.get(name) != now.get(name))

    def to_document(self) -> Document:
        """The JSON form, with both hashes."""
        return {"source_hash": self.source_hash, "tree_hash": self.tree_hash, **super().to_document()}

    def _comparable(self) -> Document:
        """What counts as a change, under names that a reader understands."""
        repository = self.repository
        if repository is None:
            return {"source": _by_name(self.files), "commit": None, "diff": None, "untracked": {}}
        return {
            "source": _by_name(self.files),
            "commit": repository.head.commit,
            "diff": repository.diff.sha256 if repository.diff else None,
            "untracked": {file.name: file.sha256 for file in repository.untracked if file.sha256},
        }


def snapshot(paths: Iterable[Path | str]) -> SourceSnapshot:
    """Freeze the files of an objective (folders: all files in them) and the state of their repository.

    A missing file is part of the answer, as one without a hash. Works without git and outside a repository.
    """
    files = named(paths)
    frozen, contents = [], {}
    for name, path in files.items():
        file, content = freeze(path, name)
        frozen.append(file)
        if content is not None:
            contents[name] = content
    repository, problem = read_repository(list(files.values()))
    name, path = next(iter(files.items()), ("", Path()))
    folder = str(path)[: -len(name)].rstrip("/") if name else ""
    return SourceSnapshot(folder, tuple(frozen), repository, problem, contents)


def source_hash(paths: Iterable[Path | str]) -> str:
    """The ``source_hash`` that a snapshot of ``paths`` has, without asking git about the rest."""
    return digest(_by_name(freeze(path, name)[0] for name, path in named(paths).items()))


def hash_of(folder: Path, names: Iterable[str]) -> str | None:
    """The ``source_hash`` that a snapshot of these files has now; ``None`` where one of them is not there."""
    frozen = [freeze(folder / name, name)[0] for name in names]
    return digest(_by_name(frozen)) if frozen and all(file.sha256 for file in frozen) else None


def _by_name(files: Iterable[FrozenFile]) -> dict[str, Json]:
    return {file.name: file.sha256 for file in files}
