"""What an archive is, as an RO-Crate: JSON-LD that other tools read, with the terms of W3C PROV. Pure.

RO-Crate 1.1 (https://w3id.org/ro/crate/1.1) asks for a metadata descriptor, a root dataset with name,
description, date and licence, and an entity for each file. Who made what with what is said twice, for two
kinds of readers: as schema.org's ``CreateAction``, as RO-Crate advises, and in the terms of PROV-O
(https://www.w3.org/TR/prov-o/): a search is an activity that used the source, the space and earlier studies,
was associated with autotune, and generated the trials and the verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from autotune import __version__

ENCODINGS = {
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".md": "text/markdown",
    ".yaml": "application/yaml",
}
CONTEXT: Sequence[object] = (
    "https://w3id.org/ro/crate/1.1/context",
    {"prov": "http://www.w3.org/ns/prov#", "sha256": "https://schema.org/sha256"},
)
NO_LICENCE = "none was stated by whoever exported it: ask before you pass it on"


@dataclass(frozen=True)
class CrateStudy:
    """What the description says of a study. Times are UTC POSIX seconds."""

    folder: str
    name: str
    trials: int
    searches: Sequence[Mapping[str, Any]]
    """``{"place", "started", "finished", "strategy", "environment"}`` each."""
    sources: Sequence[str] = ()
    """The folders of the studies that it learned from."""
    verdicts: Sequence[Mapping[str, Any]] = ()
    """``{"place", "session", "label", "speedup"}`` each."""


@dataclass(frozen=True)
class CrateFile:
    """A member of the archive."""

    name: str
    bytes: int
    sha256: str
    about: str = ""


def crate(
    studies: Sequence[CrateStudy],
    files: Sequence[CrateFile],
    machines: Mapping[str, str],
    finished: float,
    licence: str,
) -> dict[str, Any]:
    """The JSON-LD document. The last study is what the archive is of; ``machines`` by environment hash."""
    main = studies[-1]
    graph: list[dict[str, Any]] = [
        {
            "@id": "ro-crate-metadata.json",
            "@type": "CreativeWork",
            "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
            "about": {"@id": "./"},
        },
        {
            "@id": "./",
            "@type": ["Dataset", "prov:Entity"],
            "name": f"Tuning study {main.name}",
            "description": f"The trials ({main.trials}) of the tuning study {main.name}: every configuration"
            " that was tried, why, every reading, the source and the machine that it was measured on.",
            "datePublished": _time(finished),
            "license": {"@id": licence} if licence.startswith("http") else licence or NO_LICENCE,
            "hasPart": [{"@id": file.name} for file in files],
            "mentions": [{"@id": f"#{_id(study, s)}"} for study in studies for s in study.searches],
            "prov:wasGeneratedBy": [{"@id": f"#{_id(main, search)}"} for search in main.searches],
        },
        {
            "@id": "#autotune",
            "@type": ["SoftwareApplication", "prov:SoftwareAgent"],
            "name": "autotune",
            "softwareVersion": __version__,
        },
    ]
    graph += [_file(file) for file in files]
    graph += [
        {"@id": f"#environment-{digest}", "@type": ["Thing", "prov:Entity"], "name": machine}
        for digest, machine in machines.items()
    ]
    for study in studies:
        graph += _activities(study)
    return {"@context": list(CONTEXT), "@graph": graph}


def _file(file: CrateFile) -> dict[str, Any]:
    encoding = ENCODINGS.get(PurePosixPath(file.name).suffix)
    entity: dict[str, Any] = {
        "@id": file.name,
        "@type": ["File", "prov:Entity"],
        "name": file.about or file.name,
        "contentSize": str(file.bytes),
        "sha256": file.sha256,
    }
    return entity | ({"encodingFormat": encoding} if encoding else {})


def _activities(study: CrateStudy) -> Iterator[dict[str, Any]]:
    """Each search of a study, and each verdict."""
    used = [{"@id": f"{study.folder}/space.yaml"}, {"@id": f"{study.folder}/segments.jsonl"}]
    used += [{"@id": f"{source}/trials.jsonl"} for source in study.sources]
    made = [{"@id": f"{study.folder}/{part}.jsonl"} for part in ("trials", "readings")]
    for search in study.searches:
        environment = {"@id": f"#environment-{search['environment']}"}
        activity: dict[str, Any] = {
            "@id": f"#{_id(study, search)}",
            "@type": ["CreateAction", "prov:Activity"],
            "name": f"search {search['place']} of {study.name} by {search['strategy'] or 'measuring again'}",
            "agent": {"@id": "#autotune"},
            "instrument": environment,
            "object": used,
            "result": made,
            "startTime": _time(search["started"]),
            "prov:startedAtTime": _time(search["started"]),
            "prov:wasAssociatedWith": {"@id": "#autotune"},
            "prov:used": [*used, environment],
            "prov:generated": made,
        }
        if search["finished"] is not None:
            finished = _time(search["finished"])
            activity |= {"endTime": finished, "prov:endedAtTime": finished}
        yield activity
    for verdict in study.verdicts:
        yield {
            "@id": f"#verdict-{study.folder.replace('/', '-')}-{verdict['place']}",
            "@type": ["Claim", "prov:Entity"],
            "name": f"{verdict['label']} won {study.name}",
            "text": verdict["speedup"],
            "prov:wasGeneratedBy": {"@id": f"#{_id(study, {'place': verdict['session']})}"},
            "prov:wasDerivedFrom": {"@id": f"{study.folder}/readings.jsonl"},
        }


def _id(study: CrateStudy, search: Mapping[str, Any]) -> str:
    return f"search-{study.folder.replace('/', '-')}-{search['place']}"


def _time(at: float) -> str:
    """ISO 8601; the year 1970 where the number is none of this era."""
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC).isoformat(timespec="seconds")
