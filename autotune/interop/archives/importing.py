"""Bringing an archive into a store: the same studies, trial by trial and reading by reading, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from autotune.errors import InputError, Problem
from autotune.interop.archives.documents import ENVIRONMENT
from autotune.interop.archives.format import (
    ENVIRONMENTS,
    FILES,
    FOLDER,
    decode,
    encode,
    part_name,
)
from autotune.interop.archives.kinds import WrongRowError, key
from autotune.interop.archives.rows import check_row
from autotune.interop.archives.verifying import Manifest, altered_members, read_manifest
from autotune.interop.archives.zipped import Archive
from autotune.store.documents import content_hash
from autotune.store.portable import PARTS, Document, Told
from autotune.store.statements.pruning import TAKEN_IN, WRITTEN
from autotune.store.store import Store


@dataclass(frozen=True)
class Imported:
    """What an archive brought."""

    study: str
    """Label of the study in this store."""
    others: tuple[str, ...]
    """Of those that it learned from."""
    digest: str
    trials: int
    """Of the search."""
    repeats: int
    """How often one was measured again, or a baseline was measured."""
    new: bool
    """Whether anything was written; else all was here already."""


def import_archive(file: Path, url: str | None) -> Imported:
    """Bring all studies of an archive into the store at ``url``.

    What is here already stays, so that an archive can be imported again. Raises :class:`InputError`, and
    writes nothing, where the archive was altered, is not as it should be, or has a study that is here and not
    the same.
    """
    with Archive(file) as archive:
        manifest = read_manifest(archive)
        altered = list(altered_members(archive, manifest))
        if altered:
            said = "; ".join(altered[:5]) + (f"; and {len(altered) - 5} more" if len(altered) > 5 else "")
            raise archive.wrong(f"it was altered: {said}")
        reading = _Reading(archive, manifest)
        reading.check()
        with Store.open(url) as store:
            return _written(store, reading)


def _written(store: Store, reading: _Reading) -> Imported:
    manifest = reading.manifest
    here = [store.find_same(reading.study(place)) for place in range(manifest.studies)]
    for place, number in enumerate(here):
        if number is not None:
            _require_same(store, reading, place, number, here)
    new = any(number is None for number in here)
    told: list[Any] = [reading.told(place) if number is None else number for place, number in enumerate(here)]
    if new:
        files = chain(reading.files(), [(TAKEN_IN, manifest.content)])
        ids = store.load(told, reading.environments(), files)
    else:
        ids = [number for number in here if number is not None]
    labels = [store.study(number).label for number in ids]
    return Imported(labels[-1], tuple(labels[:-1]), manifest.digest, reading.trials, reading.repeats, new)


def _require_same(store: Store, reading: _Reading, place: int, number: int, here: list[int | None]) -> None:
    """Whether the study that is here says the very same, line by line.

    But for its parent, where that is not known here: an archive with the study alone did not have it.
    """
    places = {known: at for at, known in enumerate(here) if known is not None}
    rows = reading.told(place)
    for part, document in store.tell(number, places):
        other = next(rows, None)
        if other is None or other[0] != part:
            break
        if part == "study" and document["parent"] is None:
            document = document | {"parent": other[1]["parent"]}
        if encode(other[1]) != encode(document):
            break
    else:
        if next(rows, None) is None:
            return
    label = store.study(number).label
    raise InputError(
        Problem(
            f"study {label} is here already and is not the same as in {reading.archive.file}",
            hint="it has gone on since, here or there: import into another store",
        )
    )


class _Reading:
    """The documents of an archive, checked whenever they are read."""

    def __init__(self, archive: Archive, manifest: Manifest) -> None:
        self.archive = archive
        self.manifest = manifest
        self.trials = self.repeats = 0

    def check(self) -> None:
        """Read all of it once. Raises :class:`InputError` for the first thing that is not as it should be."""
        kept = {str(row.get("sha256")) for row in self._rows(FILES)}
        for digest in kept:
            self._check_file(digest)
        if any(row.get("kind") in (WRITTEN, TAKEN_IN) for row in self._rows(FILES)):
            raise self.archive.wrong("a file in it claims to be the manifest of an archive")
        self.environments()
        for place in range(self.manifest.studies):
            _Study(self, place, kept).check()
        self._check_parents()
        purposes = [row["purpose"] for row in self._rows(part_name(self.manifest.studies - 1, "trials"))]
        self.trials = purposes.count("search")
        self.repeats = len(purposes) - self.trials

    def _check_parents(self) -> None:
        """No study is its own ancestor."""
        parents = [self.study(place)["parent"] for place in range(self.manifest.studies)]
        for place, parent in enumerate(parents):
            for _ in parents:
                parent = None if parent is None else parents[parent]
            if parent is not None:
                raise self.archive.wrong(f"{part_name(place, 'study')}, line 1: its parents go in a circle")

    def _check_file(self, digest: str) -> None:
        name = FOLDER + digest
        if content_hash(self.archive.read(name)) != digest:
            raise self.archive.wrong(f"{name} is not the file that its name stands for")

    def study(self, place: int) -> Document:
        return next(self.part(place, "study"))

    def told(self, place: int) -> Iterator[Told]:
        return ((part, document) for part in PARTS for document in self.part(place, part))

    def part(self, place: int, part: str) -> Iterator[Document]:
        name = part_name(place, part)
        for number, row in enumerate(self._rows(name), 1):
            try:
                yield check_row(part, row)
            except WrongRowError as error:
                raise self.archive.wrong(f"{name}, line {number}: {error}") from None

    def environments(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for number, row in enumerate(self._rows(ENVIRONMENTS), 1):
            try:
                key(row.get("hash"), "hash")
                ENVIRONMENT(row.get("document"), "document")
            except WrongRowError as error:
                raise self.archive.wrong(f"{ENVIRONMENTS}, line {number}: {error}") from None
            found[row["hash"]] = row["document"]
        return found

    def files(self) -> Iterator[tuple[str, bytes]]:
        for row in self._rows(FILES):
            yield str(row.get("kind", "")), self.archive.read(FOLDER + str(row["sha256"]))

    def _rows(self, name: str) -> Iterator[Document]:
        for number, line in enumerate(self.archive.lines(name), 1):
            row = decode(line, f"{self.archive.file}: {name}, line {number}")
            if not isinstance(row, dict):
                raise self.archive.wrong(f"{name}, line {number} is no object")
            yield row


class _Study:
    """One study of an archive: whether its rows belong together."""

    def __init__(self, reading: _Reading, place: int, kept: set[str]) -> None:
        self.reading, self.place, self.kept = reading, place, kept

    def check(self) -> None:
        documents = self._each("study")
        if len(documents) != 1:
            self._wrong("study", 1, f"there are {len(documents)} studies, and one is told here")
        parent = documents[0]["parent"]
        if parent is not None and (parent == self.place or parent >= self.reading.manifest.studies):
            self._wrong("study", 1, f"its parent is no other study of the archive: {parent}")
        self._each("space_revisions")
        segments = [document["number"] for document in self._each("segments")]
        if segments != list(range(len(segments))):
            self._wrong("segments", 1, "the segments are not numbered 0, 1, 2 ...")
        sessions = len(self._each("sessions"))
        self._in_session("asks", sessions)
        numbers = self._trials(documents[0], sessions, len(segments))
        self._of_trials("pauses", numbers, once=False)
        self._of_trials("readings", numbers)
        self._of_trials("reports", numbers, once=False)
        self._in_session("verdicts", sessions)

    def _each(self, part: str) -> list[Document]:
        return list(self.reading.part(self.place, part))

    def _in_session(self, part: str, sessions: int) -> None:
        for line, document in enumerate(self._each(part), 1):
            if document["session"] >= sessions:
                self._wrong(part, line, f"there is no session {document['session']}")

    def _trials(self, study: Document, sessions: int, segments: int) -> dict[int, int]:
        """How many readings each trial should have."""
        numbers: dict[int, int] = {}
        searched: set[str] = set()
        told = self._paused()
        last = -1
        for line, row in enumerate(self.reading.part(self.place, "trials"), 1):
            if row["session"] >= sessions or row["segment"] >= segments:
                self._wrong("trials", line, "it is of a session or segment that is not there")
            if row["number"] <= last:
                self._wrong("trials", line, "the trials are not in the order of their numbers")
            if row["purpose"] == "search" and row["hash"] in searched:
                self._wrong("trials", line, "the search has tried its configuration before")
            if row["told"] is not None and row["told"] in told:
                self._wrong("trials", line, "another trial has its place in the order of results")
            if missing := set(row["artifacts"].values()) - self.kept:
                self._wrong("trials", line, f"the file {sorted(missing)[0]} is not in the archive")
            searched |= {row["hash"]} if row["purpose"] == "search" else set()
            told |= {row["told"]} - {None}
            last = row["number"]
            numbers[last] = row["reading_count"]
        # As in an archive that was written in parts, while the study went on.
        if (following := study["next_number"]) <= last:
            self._wrong("study", 1, f"its next trial is to be number {following}, and it has a trial {last}")
        if (following := study["next_told"]) <= (latest := max(told, default=-1)):
            self._wrong(
                "study", 1, f"its next result is to be number {following}, and it has a result {latest}"
            )
        return numbers

    def _paused(self) -> set[int]:
        """The places that pauses have in the order of results."""
        told: set[int] = set()
        for line, document in enumerate(self._each("pauses"), 1):
            if document["told"] in told:
                self._wrong("pauses", line, "another pause has its place in the order of results")
            told.add(document["told"])
        return told

    def _of_trials(self, part: str, numbers: dict[int, int], *, once: bool = True) -> None:
        seen: dict[int, int] = {}
        for line, row in enumerate(self.reading.part(self.place, part), 1):
            trial = row["trial"]
            if trial not in numbers:
                self._wrong(part, line, f"there is no trial {trial}")
            if once and trial in seen:
                self._wrong(part, line, f"trial {trial} is told twice")
            seen[trial] = len(row["readings"]) if once else 0
        if once:
            for trial, count in numbers.items():
                if seen.get(trial, 0) != count:
                    self._wrong(
                        part, 1, f"trial {trial} should have {count} readings and has {seen.get(trial, 0)}"
                    )

    def _wrong(self, part: str, line: int, message: str) -> None:
        raise self.reading.archive.wrong(f"{part_name(self.place, part)}, line {line}: {message}")
