"""Was anything altered in an archive? What differs from its manifest is named, down to the trial.

What this shows, and what not: the hashes hold all members against the manifest, so that no part can be
altered by itself. Whoever alters a part *and* makes a new manifest has a whole archive again, but with
another digest. So the digest has to come from elsewhere: from whoever wrote the archive, or from the store
that it was written from. A hash is no signature: it does not say who wrote the archive, nor that what was
measured was true.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.errors import InputError
from autotune.interop.archives.format import (
    FOLDER,
    FORMAT,
    LINES,
    MANIFEST,
    MARK,
    decode,
    line_hash,
)
from autotune.interop.archives.zipped import Archive
from autotune.store.documents import content_hash

MOST = 50
"""Alterations of one kind that are named one by one."""


@dataclass(frozen=True)
class Manifest:
    """What the members of an archive are, by its own word."""

    digest: str
    studies: int
    name: str
    members: Mapping[str, tuple[int, str]]
    """Bytes and SHA-256, by name."""
    content: bytes


@dataclass(frozen=True)
class Integrity:
    """What came of verifying an archive."""

    file: str
    digest: str
    """Of this archive, as it is."""
    study: str
    members: int
    altered: tuple[str, ...]
    """What is not as it was written, each in words; empty where nothing was altered."""
    known: str
    """What is known of the digest from elsewhere."""
    vouched: bool
    """Whether the digest is one that somebody else has named."""

    @property
    def whole(self) -> bool:
        return not self.altered

    def to_document(self) -> dict[str, Any]:
        return {**vars(self), "altered": list(self.altered), "whole": self.whole}


def read_manifest(archive: Archive) -> Manifest:
    """The manifest, checked for itself. Raises :class:`InputError` where it is none."""
    if MANIFEST not in archive.names:
        raise archive.wrong(f"it is no archive of autotune: it has no {MANIFEST}")
    content = archive.read(MANIFEST)
    document = decode(content, f"{archive.file}: {MANIFEST}")
    if not isinstance(document, dict) or MARK not in document:
        raise archive.wrong(f"it is no archive of autotune: {MANIFEST} is of something else")
    if document[MARK] != FORMAT:
        raise archive.wrong(f"it is of format {document[MARK]!r}, and this autotune reads {FORMAT}")
    members, study, count = (document.get(name) for name in ("members", "study", "studies"))
    if not isinstance(members, dict) or not isinstance(study, dict) or not isinstance(count, int):
        raise archive.wrong(f"{MANIFEST} is not as it should be")
    if not 1 <= count <= 1000:
        raise archive.wrong(f"{MANIFEST} speaks of {count} studies")
    known = {}
    for name, member in members.items():
        size, sha256 = (
            (member.get(part) for part in ("bytes", "sha256")) if isinstance(member, dict) else (0, 0)
        )
        if not isinstance(size, int) or not isinstance(sha256, str):
            raise archive.wrong(f"{MANIFEST} does not say what {name[:100]!r} is")
        known[name] = (size, sha256)
    return Manifest(content_hash(content), count, str(study.get("name", "")), known, content)


def verify_archive(
    file: Path, digest: str | None = None, ask: Callable[[str], str] = lambda digest: ""
) -> Integrity:
    """Hold an archive against its manifest, and its digest against ``digest``, the one that it should have.

    ``ask`` says who knows a digest, in words, or nothing. Raises :class:`InputError` for what is no archive,
    or would do harm.
    """
    with Archive(file) as archive:
        manifest = read_manifest(archive)
        altered = list(altered_members(archive, manifest))
    known = ask(manifest.digest) if digest is None else "it is the digest that was named"
    if digest is not None and digest.strip().lower() != manifest.digest:
        altered.append(f"its digest is {manifest.digest}, and another one was named")
        known = ""
    nobody = "nobody has named this digest: who makes all of it anew is not noticed"
    return Integrity(
        file=str(file),
        digest=manifest.digest,
        study=manifest.name,
        members=len(manifest.members),
        altered=tuple(altered),
        known=known or nobody,
        vouched=bool(known) and not altered,
    )


def altered_members(archive: Archive, manifest: Manifest) -> Iterator[str]:
    """What is not as the manifest says, in words."""
    there = set(archive.names) - {MANIFEST}
    missing, extra = sorted(set(manifest.members) - there), sorted(there - set(manifest.members))
    renamed = {}
    hashes = {name: _hash(archive, name) for name in sorted(there)}
    for name in missing:
        twin = next((other for other in extra if hashes[other] == manifest.members[name]), None)
        if twin is not None:
            renamed[name] = twin
            extra.remove(twin)
            yield f"{name} was renamed to {twin}"
        else:
            yield f"{name} is missing"
    for name in extra:
        yield f"{name} was added"
    lines = _lines(archive, manifest, hashes)
    for name in sorted(there & set(manifest.members)):
        if hashes[name] == manifest.members[name]:
            continue
        if name.startswith(FOLDER) or name not in lines:
            yield f"{name} was altered"
        else:
            yield from _altered_lines(archive, name, lines[name])


def _hash(archive: Archive, name: str) -> tuple[int, str]:
    size, digest = 0, hashlib.sha256()
    for chunk in archive.chunks(name):
        size += len(chunk)
        digest.update(chunk)
    return size, digest.hexdigest()


def _lines(
    archive: Archive, manifest: Manifest, hashes: Mapping[str, tuple[int, str]]
) -> Mapping[str, list[str]]:
    """The hashes of lines; none where they were altered themselves."""
    if LINES not in manifest.members or hashes.get(LINES) != manifest.members[LINES]:
        return {}
    try:
        known = decode(archive.read(LINES), LINES)
    except InputError:
        return {}
    named = known.items() if isinstance(known, dict) else ()
    return {
        name: lines
        for name, lines in named
        if isinstance(lines, list) and all(isinstance(line, str) for line in lines)
    }


def _altered_lines(archive: Archive, name: str, known: list[str]) -> Iterator[str]:
    """The lines that are not as they were. A line that moved is where it was, for all that counts."""
    left = Counter(known)
    found, strangers = [], []
    for number, line in enumerate(archive.lines(name), 1):
        digest = line_hash(line)
        found.append(digest)
        if left[digest]:
            left[digest] -= 1
        else:
            strangers.append((number, _said(line)))
    for number, said in strangers[:MOST]:
        yield f"{name}, line {number}{said}: altered or added"
    if len(strangers) > MOST:
        yield f"{name}: {len(strangers) - MOST} more lines were altered or added"
    lost = left.total() - len(strangers)
    if lost > 0:
        yield f"{name}: {lost} of {len(known)} lines are missing"
    if found == known:
        yield f"{name}: the end of its last line is missing"
    elif not strangers and not lost:
        yield f"{name}: its lines were put into another order"


def _said(line: bytes) -> str:
    """Of which trial a line is, by its own word."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(document, dict):
        return ""
    number = document.get("trial", document.get("number") if "configuration" in document else None)
    return f" (trial {number})" if isinstance(number, int) else ""
