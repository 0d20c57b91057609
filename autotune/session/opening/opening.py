"""Opening a study: go on with an earlier one, perhaps in a changed space, or begin a new one and say why.

A study is one space + objective + workload + goal on one machine. Its *key* is a hash of all of
these except the space: a study goes on in a changed space; any other difference begins a new one. So does
another number of cores to measure on, as if the machine were another one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from autotune.errors import InputError, Location, NothingFeasibleError, shorten
from autotune.errors import Problem as Fault
from autotune.measure.loading.sources import require_sources, source_files, unread_sources
from autotune.provenance.code.frozen import SourceSnapshot, snapshot, source_hash
from autotune.provenance.environment import Environment
from autotune.search.contract import Problem
from autotune.search.registry import strategy_class
from autotune.session.opening.changed_space import say_changed_space
from autotune.session.opening.identity import (
    Identity,
    command_of,
    describe_objective,
    identify,
    say_difference,
)
from autotune.session.same_failure import only_mistake
from autotune.space.configuration import plain
from autotune.space.reading.places import place_of
from autotune.space.spec import ReplayObjective, StudySpec
from autotune.store.records import NewStudy, SegmentRecord, StudyRecord
from autotune.store.store import Store


@dataclass(frozen=True)
class OpenedStudy:
    """A study in the store, with the segment that new trials belong to."""

    record: StudyRecord
    segment: SegmentRecord
    notes: tuple[str, ...]
    """What the user should be told: that and why the study is new, that its space or its code has changed."""
    edited: bool = False
    """Whether the record's key is of a source of which nothing is measured; the store has the one before."""


def open_study(
    spec: StudySpec,
    store: Store,
    environment: Environment,
    *,
    fresh: bool = False,
    goes_on: bool = False,
) -> OpenedStudy:
    """Find the study that ``spec`` goes on with, or begin a new one; ``fresh`` always begins a new one.

    A study whose trials have all failed because of a mistake in the code is not gone on with, since they say
    nothing about their configurations; except by a search that has begun already and ``goes_on``.
    """
    try_strategy(spec)
    require_sources(spec.objective)
    source = snapshot(source_files(spec.objective))
    identity = identify(spec, source.source_hash, environment.machine_key)
    record, notes = _find_or_begin(spec, store, environment, identity, source, fresh, goes_on)
    document = _document(spec, identity)
    if record.space_hash != spec.space.hash:
        notes.append(say_changed_space(store, record, spec.space))
    if _written(record) != (spec.space.hash, spec.text, document["source"]):
        store.update_space(record.id, spec.text, document, spec.space.hash)
        record = replace(record, space_hash=spec.space.hash, spec_text=spec.text, document=document)
    if unread := unread_sources(spec.objective):
        notes.append(unread)
    segment, changed = _segment(store, record, source)
    return OpenedStudy(record, segment, (*notes, *changed))


def is_begun(spec: StudySpec, store: Store, environment: Environment) -> bool:
    """Whether :func:`open_study` would go on with an earlier study."""
    found = study_of_source(spec, store, environment)
    return found is not None and not only_mistake(store, found)


def study_of_source(spec: StudySpec, store: Store, environment: Environment) -> StudyRecord | None:
    """The study of the objective's source as it is now; ``None`` if there is none."""
    identity = identify(spec, source_hash(source_files(spec.objective)), environment.machine_key)
    return store.find_study(spec.name, identity.key)


def try_strategy(spec: StudySpec) -> None:
    """Raises :class:`~autotune.errors.InputError` if its strategy, or an option of that, cannot be used.

    To be called before a study begins: a study without trials would be the latest one in its store, and be
    what other commands then speak of.
    """
    problem = Problem(
        spec.space,
        spec.metrics,
        spec.budget.trials,
        spec.search.options,
        seconds=spec.budget.time,
    )
    strategy = strategy_class(spec.search.strategy)
    try:
        strategy(problem, spec.search.seed)
    except InputError as error:
        if not spec.search.options or not spec.text:
            raise
        place = place_of(spec.text, str(spec.source or ""), ("search", "options"))
        raise InputError([replace(fault, where=place) for fault in error.problems]) from None


def check_feasible(spec: StudySpec) -> None:
    """Raises :class:`NothingFeasibleError` if no configuration satisfies the constraints.

    To be called before a study begins, like :func:`try_strategy`. With several workloads, one may have no
    feasible configuration; the others go on.
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
    """What it takes to measure a study again: its space, the text of its file and where that file is."""
    return record.space_hash, record.spec_text, record.space_file


def next_segment(spec: StudySpec, store: Store, opened: OpenedStudy) -> OpenedStudy:
    """Freeze the objective's files again, which changed while the search runs, and begin a new segment.

    Once something of it is measured, :func:`take_source` makes the study's key that of the new files, so that
    the same command goes on with it.
    """
    source = snapshot(source_files(spec.objective))  # it may import other files now
    segment, notes = _segment(store, opened.record, source)
    before = Identity(**opened.record.document["identity"])
    now = replace(before, source=source.source_hash)
    document = {**opened.record.document, "identity": asdict(now)}
    record = replace(opened.record, key=now.key, document=document)
    return OpenedStudy(record, segment, notes, edited=opened.edited or now != before)


def take_source(store: Store, opened: OpenedStudy) -> OpenedStudy:
    """Write down that the study's key is that of its latest segment, of which something was measured.

    Not before: where the files are gone or broken nothing will be, and once they are restored, the same
    command has to go on with the study.
    """
    if not opened.edited:
        return opened
    store.update_key(opened.record.id, opened.record.key, opened.record.document["identity"])
    return replace(opened, edited=False)


def _find_or_begin(
    spec: StudySpec,
    store: Store,
    environment: Environment,
    identity: Identity,
    source: SourceSnapshot,
    fresh: bool,
    goes_on: bool,
) -> tuple[StudyRecord, list[str]]:
    """The study, and what the user should be told about it."""
    earlier = store.studies(spec.name)
    # With several workloads, each is compared with its own earlier study, not with the one begun last.
    workload = {fact: plain(value) for fact, value in spec.workload.items()}
    same = [study for study in earlier if dict(study.workload) == workload]
    followed = same or earlier
    before = followed[-1] if followed else None
    described = environment.to_document()
    new = NewStudy(
        name=spec.name,
        key=identity.key,
        spec_text=spec.text,
        document=_document(spec, identity),
        space_hash=spec.space.hash,
        objective=describe_objective(spec.objective),
        workload=workload,
        metrics=[asdict(metric) for metric in spec.metrics],
        machine_key=environment.machine_key,
        environment_hash=environment.hash,
        replayed=isinstance(spec.objective, ReplayObjective),
        parent_id=before.id if before else None,
    )
    if fresh:
        return store.create_study(new, described), []
    differs = identity.differences(before.document.get("identity", {})) if before else {}
    record, is_new = store.find_or_create_study(replace(new, differs=differs), described)
    if is_new and differs and before:
        files = _which_changed(store.latest_segment(before.id), source)
        said = "; ".join(say_difference(part, was, now, files) for part, (was, now) in differs.items())
        return record, [f"a new study, because not all is as in study {before.label}: {said}"]
    if is_new or goes_on or not (mistake := only_mistake(store, record)):
        return record, []
    reason = (
        f"a new study, because all trials of {record.label} failed by a mistake, which says nothing of"
        f" their configurations: {mistake}"
    )
    after, _ = store.find_or_create_study(replace(new, parent_id=record.id), described, newer_than=record.id)
    return after, [reason]


def _document(spec: StudySpec, identity: Identity) -> dict[str, object]:
    return {
        "identity": asdict(identity),
        "space": spec.space.to_document(),
        "source": str(spec.source.absolute()) if spec.source else "",
        "search": asdict(spec.search),
        "measure": asdict(spec.measure),
        "budget": asdict(spec.budget),
    }


WRITTEN_BY_ITSELF = (
    "if the command itself writes a file that is named there, let it write into {folder}, or give it as"
    " --output FILE: else it is taken for a source, and trials are lost"
)


def _which_changed(segment: SegmentRecord | None, source: SourceSnapshot) -> str:
    """The names of the files, in parentheses; empty where none of them did."""
    names = source.changed_since(segment.document) if segment is not None else ()
    return f" ({shorten(', '.join(names))})" if names else ""


def _segment(
    store: Store, record: StudyRecord, source: SourceSnapshot
) -> tuple[SegmentRecord, tuple[str, ...]]:
    """The latest segment if its sources are these, else a new one; and what the user should be told."""

    def is_of_these(segment: SegmentRecord) -> bool:
        frozen = (segment.document.get("source_hash"), segment.document.get("tree_hash"))
        return frozen == (source.source_hash, source.tree_hash)

    latest = store.latest_segment(record.id)
    reason, notes = "the study begins", tuple[str, ...]()
    if latest is not None:
        if is_of_these(latest):
            return latest, ()
        same_source = latest.document.get("source_hash") == source.source_hash
        what = "the code around it" if same_source else "the objective's source"
        reason = f"{what} changed since segment {latest.number}{_which_changed(latest, source)}"
        notes = (f"{reason}: a new segment of study {record.label} begins, its trials are marked",)
        if latest.number == 1 and command_of(record) is not None:  # it is said once
            notes = (*notes, WRITTEN_BY_ITSELF)
    document, files = source.to_document(), source.artifacts
    return store.open_segment(record.id, document, files, reason, unless=is_of_these), notes
