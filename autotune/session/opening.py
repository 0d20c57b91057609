"""Opening a study: go on with an earlier one, let it grow, or begin anew and say what differs.

A study is one space + objective + workload + goal on one machine. Its *key* is a hash of all of
these but the space: a changed space lives on in the same study, anything else begins a new one. So does
another number of cores to measure on, since the numbers before and after it are of different machines.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from autotune.errors import Location, NothingFeasibleError
from autotune.errors import Problem as Fault
from autotune.measure.sources import source_files
from autotune.provenance.code import SourceSnapshot, snapshot
from autotune.provenance.environment import Environment
from autotune.search.contract import Problem
from autotune.search.registry import make_strategy
from autotune.session.same_failure import only_mistake
from autotune.space.configuration import plain
from autotune.space.spec import (
    CallableObjective,
    CommandObjective,
    MeasureSettings,
    ObjectiveSpec,
    PythonObjective,
    ReplayObjective,
    StudySpec,
)
from autotune.store.records import NewStudy, SegmentRecord, StudyRecord
from autotune.store.store import Store

CALLABLE = "callable "
"""Begins the description of what a program gave to be measured: no space file says with what."""
COMMAND = "command "
"""Begins the description of a command, which goes on as JSON."""


@dataclass(frozen=True)
class Identity:
    """What makes two searches the same study, part by part, so that a difference can be named."""

    objective: str
    """How the objective is written in the space file."""
    source: str
    """Hash of the objective's own files (or of the recording)."""
    workload: str
    metrics: str
    machine: str
    resource: str = ""
    """What a complete trial uses, where trials may be stopped early."""
    cores: str = ""
    """How many cores a measurement has, where it is not one: another number measures something else."""

    @property
    def key(self) -> str:
        """16 hexadecimal digits over all parts; those that came later do not count where they say nothing."""
        parts = {k: value for k, value in asdict(self).items() if value or k not in ("resource", "cores")}
        text = json.dumps(parts, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def differences(self, earlier: Mapping[str, str]) -> dict[str, list[str]]:
        """``{part: [before, after]}`` for each part that is not as in ``earlier``."""
        return {
            part: [earlier.get(part, ""), value]
            for part, value in asdict(self).items()
            if earlier.get(part, "") != value  # an older document lacks the parts that came since
        }


def identify(spec: StudySpec, source_hash: str, machine_key: str) -> Identity:
    """The identity of the study that ``spec`` describes. A replay does not depend on the machine."""
    early = spec.search.early_stopping
    replayed = isinstance(spec.objective, ReplayObjective)
    return Identity(
        objective=describe_objective(spec.objective),
        source=spec.objective.code if isinstance(spec.objective, CallableObjective) else source_hash,
        workload=json.dumps(plain(spec.workload), sort_keys=True),
        metrics=json.dumps([asdict(metric) for metric in spec.metrics], sort_keys=True),
        machine="" if replayed else machine_key,
        resource="" if early is None else f"{early.max} {early.resource}",
        cores="" if replayed else _say_cores(spec.measure.cores),
    )


def are_kin(one: StudyRecord, other: StudyRecord) -> bool:
    """Whether two studies of the same name differ in the workload alone, and have the same keys in it."""
    if one.name != other.name or set(one.workload) != set(other.workload):
        return False
    mine, theirs = (study.document.get("identity", {}) for study in (one, other))
    parts = [part for part in Identity.__dataclass_fields__ if part != "workload"]
    return all(mine.get(part, "") == theirs.get(part, "") for part in parts)


def describe_objective(objective: ObjectiveSpec) -> str:
    """How the objective is written, without the folder that it was written in."""
    match objective:
        case PythonObjective():
            return f"python {objective.target}"
        case CommandObjective():
            document = asdict(objective)
            document.pop("base")
            return COMMAND + json.dumps(document, sort_keys=True, default=list)
        case ReplayObjective():
            return f"replay {objective.file.name}"
        case CallableObjective():
            return CALLABLE + objective.name


@dataclass(frozen=True)
class OpenedStudy:
    """A study that stands in the store, with the segment that new trials belong to."""

    record: StudyRecord
    segment: SegmentRecord
    sources: tuple[Path, ...]
    """What would be loaded anew if it changed."""
    source: SourceSnapshot
    notes: tuple[str, ...]
    """What the user should be told: a new study and why, a changed space, a changed tree."""


def open_study(
    spec: StudySpec,
    store: Store,
    environment: Environment,
    *,
    fresh: bool = False,
    goes_on: bool = False,
) -> OpenedStudy:
    """Find the study that ``spec`` goes on with, or begin a new one; ``fresh`` always begins anew.

    One whose trials have all failed by a mistake is left for a new one, since they say nothing of their
    configurations; not by a search that has begun and ``goes_on``.
    """
    try_strategy(spec)
    sources = source_files(spec.objective)
    source = snapshot(sources)
    identity = identify(spec, source.source_hash, environment.machine_key)
    notes: list[str] = []
    record = _find_or_begin(spec, store, environment, identity, notes, fresh=fresh, goes_on=goes_on)
    document = _document(spec, identity)
    if record.space_hash != spec.space.hash:
        notes.append(
            f"the space of study {spec.name!r} has changed: every earlier trial that is still in it counts"
        )
    if _written(record) != (spec.space.hash, spec.text, document["source"]):
        store.update_space(record.id, spec.text, document, spec.space.hash)
        record = replace(record, space_hash=spec.space.hash, spec_text=spec.text, document=document)
    segment = _segment(store, record, source, notes)
    watched = () if isinstance(spec.objective, CallableObjective) else sources  # that is loaded already
    return OpenedStudy(record, segment, watched, source, tuple(notes))


def is_begun(spec: StudySpec, store: Store, environment: Environment) -> bool:
    """Whether :func:`open_study` would go on with an earlier study."""
    source_hash = snapshot(source_files(spec.objective)).source_hash
    found = store.find_study(spec.name, identify(spec, source_hash, environment.machine_key).key)
    return found is not None and not only_mistake(store, found)


def try_strategy(spec: StudySpec) -> None:
    """Raises :class:`~autotune.errors.InputError` where its strategy, or an option of it, cannot be had.

    Before a study begins: one without a trial would be the latest of its store, and answer for it.
    """
    problem = Problem(
        spec.space,
        spec.metrics,
        spec.budget.trials,
        spec.search.options,
        seconds=spec.budget.time,
    )
    make_strategy(spec.search.strategy, problem, spec.search.seed)


def check_feasible(spec: StudySpec) -> None:
    """Raises :class:`NothingFeasibleError` where no configuration satisfies the constraints.

    Before a study begins, as :func:`try_strategy`. Of several workloads one may have none: the others go on.
    """
    if spec.space.feasible:
        return
    file = str(spec.source) if spec.source else ""
    hint = f"autotune check {file} says what each constraint removes" if file else "loosen the constraints"
    raise NothingFeasibleError(
        Fault(
            "no configuration satisfies the constraints, so there is nothing to search",
            Location(file) if file else None,
            hint=hint,
        )
    )


def _written(record: StudyRecord) -> tuple[str, str, object]:
    """What a study is measured again by: its space, the text of its file and where that lies."""
    return record.space_hash, record.spec_text, record.document.get("source", "")


def next_segment(store: Store, opened: OpenedStudy) -> OpenedStudy:
    """The objective's files changed while the search runs: freeze them again and begin a new segment."""
    source = snapshot(opened.sources)
    notes: list[str] = []
    segment = _segment(store, opened.record, source, notes)
    return replace(opened, segment=segment, source=source, notes=tuple(notes))


def _find_or_begin(
    spec: StudySpec,
    store: Store,
    environment: Environment,
    identity: Identity,
    notes: list[str],
    *,
    fresh: bool,
    goes_on: bool,
) -> StudyRecord:
    earlier = [_with_cores(study, store) for study in store.studies(spec.name)]
    differs = {} if fresh or not earlier else identity.differences(earlier[-1].document.get("identity", {}))
    new = NewStudy(
        name=spec.name,
        key=identity.key,
        spec_text=spec.text,
        document=_document(spec, identity),
        space_hash=spec.space.hash,
        objective=describe_objective(spec.objective),
        workload=dict(spec.workload),
        metrics=[asdict(metric) for metric in spec.metrics],
        machine_key=environment.machine_key,
        environment_hash=environment.hash,
        replayed=isinstance(spec.objective, ReplayObjective),
        parent_id=earlier[-1].id if earlier else None,
        differs=differs,
    )
    described = environment.to_document()
    record, is_new = (
        (store.create_study(new, described), True) if fresh else store.find_or_create_study(new, described)
    )
    if is_new and differs:
        notes.append(
            f"a new study, because not all is as in study {earlier[-1].label}: "
            + "; ".join(_say(part, before, after) for part, (before, after) in differs.items())
        )
    if not is_new and not goes_on and (mistake := only_mistake(store, record)):
        notes.append(
            f"a new study, because all trials of {record.label} failed by a mistake, which says nothing of"
            f" their configurations: {mistake}"
        )
        record = store.create_study(replace(new, parent_id=record.id), described)
    return record


def _with_cores(study: StudyRecord, store: Store) -> StudyRecord:
    """A study that was begun before cores were part of what it is, now by those that it is measured on."""
    identity = study.document.get("identity", {})
    if study.replayed or not identity or "cores" in identity:
        return study
    known = replace(Identity(**identity), cores=_say_cores(study.document.get("measure", {}).get("cores")))
    if not known.cores:
        return study  # its key is the same
    changed = replace(study, key=known.key, document={**study.document, "identity": asdict(known)})
    store.update_key(changed)
    return changed


def _say_cores(cores: int | None) -> str:
    """Empty for the usual number."""
    return "" if cores in (None, MeasureSettings().cores) else str(cores)


def _document(spec: StudySpec, identity: Identity) -> dict[str, object]:
    return {
        "identity": asdict(identity),
        "space": spec.space.to_document(),
        "source": str(spec.source.absolute()) if spec.source else "",
        "search": asdict(spec.search),
        "measure": asdict(spec.measure),
        "budget": asdict(spec.budget),
    }


def _say(part: str, before: str, after: str) -> str:
    if part == "source":
        return "the objective's source has changed"
    if part == "machine":
        return "the machine is another one"
    if part == "cores":
        return f"a measurement has another number of cores, {after or MeasureSettings().cores}"
    if before.startswith(COMMAND) and after.startswith(COMMAND):
        was, now = (json.loads(text.removeprefix(COMMAND)) for text in (before, after))
        return "; ".join(
            f"the command's {name} were {_words(was.get(name))} and are {_words(now.get(name))}"
            for name in now
            if was.get(name) != now[name]
        )
    if part == "metrics":
        return f"the metrics were {_say_metrics(before)} and are {_say_metrics(after)}"
    return f"{part} was {before or 'nothing'} and is {after or 'nothing'}"


def _say_metrics(text: str) -> str:
    """``time (goal: minimize, unit: s), memory (at_most: 1000)``."""
    return ", ".join(
        f"{metric.pop('name')} ({', '.join(f'{k}: {v}' for k, v in metric.items() if v not in (None, ''))})"
        for metric in json.loads(text)
    )


def _words(value: Any) -> str:
    words = [f"{k}={v}" for k, v in value.items()] if isinstance(value, dict) else value
    return (" ".join(map(str, words)) if isinstance(words, list) else str(words)) or "nothing"


def _segment(store: Store, record: StudyRecord, source: SourceSnapshot, notes: list[str]) -> SegmentRecord:
    latest = store.latest_segment(record.id)
    document = source.to_document()
    if latest is not None:
        before = latest.document
        if (before.get("source_hash"), before.get("tree_hash")) == (source.source_hash, source.tree_hash):
            return latest
        what = (
            "the objective's source"
            if before.get("source_hash") != source.source_hash
            else "the code around it"
        )
        reason = f"{what} changed since segment {latest.number}"
        notes.append(f"{reason}: a new segment of study {record.label} begins, its trials are marked")
    else:
        reason = "the study begins"
    return store.open_segment(record.id, document, source.artifacts, reason)
