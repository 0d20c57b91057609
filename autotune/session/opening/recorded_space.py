"""The space that an earlier session searched, from the store."""

from __future__ import annotations

import tempfile
from pathlib import Path

from autotune.errors import InputError
from autotune.errors import Problem as Fault
from autotune.measure.recordings.replay import limit_to_recording
from autotune.session.opening.frozen import SOURCE
from autotune.space.from_document import space_from_document
from autotune.space.space import Space
from autotune.space.spec import MetricSpec, ReplayObjective, StudySpec
from autotune.store.records import Document, SessionRecord, StudyRecord
from autotune.store.store import Store


def recorded_space(store: Store, study: StudyRecord, session: SessionRecord) -> Space:
    """The space of ``session``, exactly the same by its hash.

    Raises :class:`InputError` if it cannot be restored: the recording that a study replays may be too large
    to be kept in the store, and no longer be where it was.
    """
    digest = session.settings["space"]
    space = space_from_document(_document(store, study, digest))
    if space.hash != digest and study.replayed:
        space = _limited(store, study, space)
    if space.hash != digest:
        edited = (
            "the store has been edited, or another version of autotune wrote it, which read spaces otherwise"
        )
        raise InputError(
            Fault(
                f"the space of search {session.id} of study {study.label} is not as it was",
                expected=f"a space with the hash {digest}, not {space.hash}",
                hint="the recording has changed since" if study.replayed else edited,
            )
        )
    return space


def _document(store: Store, study: StudyRecord, digest: str) -> Document:
    revisions = store.space_revisions(study.id)
    stored = [(study.space_hash, study.document), *((r.space_hash, r.document) for r in revisions)]
    for known, document in stored:
        if known == digest:
            space: Document = document["space"]
            return space
    raise InputError(f"study {study.label} has no space with the hash {digest}: its store has been edited")


def _limited(store: Store, study: StudyRecord, space: Space) -> Space:
    """``space`` with the rows of the recording that the study replays.

    The recording is the only source file of such a study. It is taken from the store if it was kept there,
    else from where it was.
    """
    segment = store.latest_segment(study.id)
    if segment is None:
        return space
    [frozen] = segment.document["files"]
    name, metrics = str(frozen["name"]), tuple(MetricSpec(**metric) for metric in study.metrics)
    with tempfile.TemporaryDirectory() as folder:
        if digest := segment.artifacts.get(SOURCE + name):
            file = Path(folder) / Path(name).name
            file.write_bytes(store.artifact(digest))
        else:
            file = Path(segment.document["folder"]) / name
        return limit_to_recording(StudySpec(study.name, space, ReplayObjective(file), metrics)).space
