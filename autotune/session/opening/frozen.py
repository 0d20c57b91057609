"""The objective's source as it was frozen in a store, laid out in a folder where it can be run again."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from autotune.errors import InputError, Problem
from autotune.store.records import SegmentRecord, StudyRecord
from autotune.store.store import Store

SOURCE = "source/"
"""Among the artefacts of a segment, the roles of the objective's own files begin with this."""


@contextmanager
def laid_out(store: Store, study: StudyRecord, segment: SegmentRecord) -> Iterator[Path]:
    """Lay the frozen files out in a temporary folder; yields the path that the space file would have there.

    Relative to it they are where they were when the study was searched. Data that the objective only reads
    are not there. Raises :class:`InputError` if a file was not kept.
    """
    folder = Path(str(segment.document.get("folder") or "/"))
    written = study.space_file
    space = Path(written) if written.startswith("/") else folder / "space.yaml"
    common = Path(os.path.commonpath([folder, space.parent]))
    with tempfile.TemporaryDirectory(prefix="autotune-frozen-") as made:
        root = Path(made)
        for name, content in _files(store, study, segment):
            place = root / folder.relative_to(common) / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            place.chmod(0o700)  # a script that a command runs by its path; that it may be run is not kept
        path = root / space.relative_to(common)
        path.parent.mkdir(parents=True, exist_ok=True)
        yield path


def _files(store: Store, study: StudyRecord, segment: SegmentRecord) -> Iterator[tuple[str, bytes]]:
    for file in segment.document.get("files") or ():
        name = str(file["name"])
        digest = segment.artifacts.get(SOURCE + name)
        if digest is None:
            hint = "run this where the files of the objective are"
            raise InputError(Problem(f"{name} of study {study.label} is not kept in the store", hint=hint))
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise InputError(f"study {study.label} has a source file outside of its folder: {name!r}")
        yield name, store.artifact(digest)
