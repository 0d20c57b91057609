"""Writing a study as an archive: self-contained, and hashed from its lines to the whole.

With the study go those that it learned from, so that its proposals can still be derived, and all that they
refer to: environments, sources, diffs. The same study gives the same bytes, whichever store it lies in.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from autotune import __version__
from autotune.errors import AutotuneError, InputError
from autotune.interop.archives.crate import CrateFile, CrateStudy, crate
from autotune.interop.archives.format import (
    CRATE,
    ENVIRONMENTS,
    FILES,
    FOLDER,
    FORMAT,
    LINES,
    MANIFEST,
    MARK,
    README,
    STUDIES,
    encode,
    part_name,
)
from autotune.interop.archives.hashed import HashedZip
from autotune.paths import written_whole
from autotune.store.documents import content_hash
from autotune.store.portable import PARTS
from autotune.store.records import StudyRecord
from autotune.store.statements.pruning import WRITTEN
from autotune.store.store import Store


@dataclass(frozen=True)
class Written:
    """An archive that was written."""

    digest: str
    """SHA-256 of its manifest, and so of everything in it."""
    studies: tuple[str, ...]
    trials: int
    """Of the search."""
    repeats: int
    """How often one was measured again, or a baseline was: for a verdict, a replay or to verify it."""
    size: int
    """Bytes of the file."""
    manifest: bytes


def write_archive(store: Store, study: StudyRecord, file: Path, licence: str = "") -> Written:
    """Write ``study`` to ``file``, which is replaced at once or stays as it is. Raises ``OSError``."""
    family = _with_sources(store, study)
    with written_whole(file) as draft:
        with HashedZip(draft) as writer:
            manifest, told = _write(store, family, writer, licence)
        size = draft.stat().st_size
    return Written(
        digest=content_hash(manifest),
        studies=tuple(one.label for one in family),
        trials=told.trials,
        repeats=told.repeats,
        size=size,
        manifest=manifest,
    )


def write_down(url: str | None, manifest: bytes) -> str:
    """Keep the manifest in the store that the study is of, under its hash; where, or why nowhere.

    So it can be asked later whether an archive is the one that was written.
    """
    try:
        with Store.open(url) as store:
            kind = store.kind_of(store.put_artifact(manifest, WRITTEN))
            how = "written down in" if kind == WRITTEN else "known from an import in"
            return f"{how} {store.url}"
    except AutotuneError as error:
        return f"not written down: {str(error).splitlines()[0]}"


def _with_sources(store: Store, study: StudyRecord) -> list[StudyRecord]:
    """The study and all that it learned from, directly or not, the oldest first and the study last."""
    there = {one.id: one for one in store.studies()}
    found, ahead = {study.id}, [study.id]
    while ahead:
        for session in store.sessions(ahead.pop()):
            for source in session.settings.get("sources") or ():
                if source["study"] in there and source["study"] not in found:
                    found.add(source["study"])
                    ahead.append(source["study"])
    return [*(there[number] for number in sorted(found - {study.id})), study]


def _write(store: Store, family: list[StudyRecord], writer: HashedZip, licence: str) -> tuple[bytes, _Told]:
    """All members; the text of the manifest, and what was told of the study itself."""
    places = {study.id: place for place, study in enumerate(family)}
    told = [_Told(place) for place in range(len(family))]
    for study, teller in zip(family, told, strict=True):
        _write_study(store, study, places, teller, writer)
    environments = dict.fromkeys(digest for teller in told for digest in teller.environments if digest)
    machines = _write_environments(store, list(environments), writer)
    _write_files(store, {digest: role for teller in told for digest, role in teller.files.items()}, writer)
    writer.text(LINES, encode(writer.lines) + "\n")
    finished = max((teller.finished for teller in told), default=0.0)
    described = [teller.describe(study) for teller, study in zip(told, family, strict=True)]
    writer.text(README, _readme(family, told[-1]))
    files = [CrateFile(name, *known, _about(name)) for name, known in writer.members.items()]
    writer.text(CRATE, encode(crate(described, files, machines, finished, licence)) + "\n")
    manifest = {
        MARK: FORMAT,
        "autotune": __version__,
        "study": {"name": family[-1].name, "key": family[-1].key, "created_at": family[-1].created_at},
        "studies": len(family),
        "members": {name: {"bytes": size, "sha256": known} for name, (size, known) in writer.members.items()},
    }
    content = (encode(manifest) + "\n").encode()
    writer.content(MANIFEST, content)
    return content, told[-1]


@dataclass
class _Told:
    """What was told of a study, as far as others have to know it."""

    place: int
    environments: dict[str, None] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    sessions: list[Mapping[str, Any]] = field(default_factory=list)
    verdicts: list[Mapping[str, Any]] = field(default_factory=list)
    trials: int = 0
    repeats: int = 0
    finished: float = 0.0
    space: str = ""

    def hear(self, part: str, document: Mapping[str, Any]) -> None:
        if digest := document.get("environment_hash"):
            self.environments[digest] = None
        for role, digest in (document.get("artifacts") or {}).items():
            self.files.setdefault(digest, role)
        match part:
            case "study":
                self.space = document["spec_text"]
                self.finished = max(self.finished, document["created_at"])
            case "sessions":
                self.sessions.append(document)
            case "verdicts":
                self.verdicts.append(document)
            case "trials":
                self.trials += document["purpose"] == "search"
                self.repeats += document["purpose"] != "search"
                self.finished = max(self.finished, document["finished_at"] or 0.0)

    def describe(self, study: StudyRecord) -> CrateStudy:
        sources = {s["study"] for one in self.sessions for s in one["settings"].get("sources") or ()}
        return CrateStudy(
            folder=f"{STUDIES}{self.place}",
            name=study.name,
            trials=self.trials,
            searches=[
                {
                    "place": place,
                    "started": session["started_at"],
                    "finished": session["finished_at"],
                    "strategy": (session["settings"].get("search") or {}).get("strategy", ""),
                    "environment": session["environment_hash"],
                }
                for place, session in enumerate(self.sessions)
            ],
            sources=[f"{STUDIES}{place}" for place in sorted(sources - {None})],
            verdicts=[_verdict(place, verdict) for place, verdict in enumerate(self.verdicts)],
        )


def _verdict(place: int, verdict: Mapping[str, Any]) -> Mapping[str, Any]:
    document = verdict["document"]
    said = str(document.get("remark", ""))
    if speedup := document.get("speedup"):
        said = f"{_with_ends(speedup)} times as good as {speedup.get('against', 'the default')}"
    elif gain := document.get("gain"):
        said = f"better than {gain['against']} by {_with_ends(gain)}"
    label = str(document.get("label") or "nobody")
    return {"place": place, "session": verdict["session"], "label": label, "speedup": said}


def _with_ends(found: Mapping[str, float]) -> str:
    return f"{found['estimate']:.4g} [{found['low']:.4g}, {found['high']:.4g}]"


def _write_study(
    store: Store, study: StudyRecord, places: Mapping[int, int], teller: _Told, writer: HashedZip
) -> None:
    for part, rows in groupby(store.tell(study.id, places), key=lambda one: one[0]):
        writer.begin(part_name(teller.place, part))
        for _, document in rows:
            teller.hear(part, document)
            writer.line(encode(document).encode())
    for part in PARTS:
        if part_name(teller.place, part) not in writer.lines:
            writer.begin(part_name(teller.place, part))
    writer.text(f"{STUDIES}{teller.place}/space.yaml", teller.space)


def _write_environments(store: Store, digests: list[str], writer: HashedZip) -> dict[str, str]:
    """What each machine is called, by the hash of its environment."""
    from autotune.session.opening.sources import device_of

    machines = {}
    writer.begin(ENVIRONMENTS)
    for digest in sorted(digests):
        machines[digest] = "a machine of which the description did not arrive"
        if document := store.environment(digest):
            machines[digest] = device_of(document) or "a machine without a name"
            writer.line(encode({"hash": digest, "document": document}).encode())
    return machines


def _write_files(store: Store, roles: Mapping[str, str], writer: HashedZip) -> None:
    kept = []
    writer.begin(FILES)
    for digest in sorted(roles):
        with suppress(InputError):  # it was pruned by other hands
            size = len(store.artifact(digest))
            kind = store.kind_of(digest) or roles[digest]
            writer.line(encode({"sha256": digest, "kind": kind, "bytes": size}).encode())
            kept.append(digest)
    for digest in kept:
        writer.content(FOLDER + digest, store.artifact(digest))


def _about(name: str) -> str:
    part = name.rpartition("/")[2].removesuffix(".jsonl")
    known = {
        "study": "the study: its space, workload and goal",
        "space_revisions": "the spaces that it had before",
        "trials": "every trial: its configuration, why it was tried, and what came of it",
        "pauses": "where trials were paused, to be gone on with",
        "readings": "every raw reading of each trial",
        "reports": "what trials reported before they ended",
        "segments": "the source that was measured, by hash, with its commit and its changes",
        "sessions": "the searches, with their settings",
        "asks": "what the strategy knew whenever it was asked",
        "verdicts": "the final comparisons",
        "environments": "machines and software",
        "files": "which stored files there are",
        "space.yaml": "the space file",
        LINES: "a short hash of every line",
        README: "what this is, and how to check it",
    }
    return known.get(part, "a source, a diff or a compiler's output" if name.startswith(FOLDER) else "")


def _readme(family: list[StudyRecord], told: _Told) -> str:
    earlier = len(family) - 1
    others = f"\nEarlier studies that it learned from, which are in it: {earlier}." if earlier else ""
    return f"""# Tuning study {family[-1].name.encode("ascii", "replace").decode()}

Its trials ({told.trials}) and repeated measurements ({told.repeats}) with every reading, the space, the
source, the environments and why each was tried.{others}
`ro-crate-metadata.json` describes it in JSON-LD; the rows are JSON, one a line.

    autotune verify THIS.zip          # was anything altered?
    autotune import THIS.zip          # the same study in a store of yours

`manifest.json` has the SHA-256 of every file. Its own SHA-256 is the digest of the archive. Whoever alters a
file must alter the manifest, and then the digest is another one: compare it with the one that you were told.
"""
