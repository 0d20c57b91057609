"""Which earlier studies a search learns from: found in the store once, then written down.

A study learns from the same sources, and the same trials of them, in all its sessions: what the first of
them chose is kept in its settings. So a resumed search proposes what an unbroken one would, whatever has
been added to the store meanwhile, and its proposals can be derived again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from autotune.likeness import distance
from autotune.provenance.document import part_of
from autotune.search.contract import Source
from autotune.search.registry import strategy_class
from autotune.session.observing import observe_record
from autotune.session.opening.identity import CALLABLE, are_kin
from autotune.space.spec import MetricSpec, StudySpec
from autotune.status import Status
from autotune.store.records import StudyRecord
from autotune.store.store import Store

MOST_STUDIES = 8
"""A search learns from so many studies at most, the newest ones; each costs a model."""
MOST_RESULTS = 2000
"""Of each study the first so many results count. A trial that was paused has several."""
LEAST_TRIALS = 8
"""A study with fewer successes has nothing to teach."""
SETTING = "sources"
"""The name under which a session's settings hold what was chosen."""


@dataclass(frozen=True)
class Chosen:
    """A study to learn from, and how many of its results count (fewer, if it has fewer)."""

    study: StudyRecord
    results: int
    apart: float | None = None
    """See :attr:`autotune.search.contract.Source.apart`."""

    @property
    def document(self) -> dict[str, float]:
        document: dict[str, float] = {"study": self.study.id, "trials": self.results}
        return document if self.apart is None else document | {"apart": self.apart}


@dataclass(frozen=True)
class Lessons:
    """What a search learns from."""

    sources: tuple[Source, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    """What to add to the session's settings."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should be told."""
        return tuple(_say(source) for source in self.sources)


def lessons(spec: StudySpec, store: Store, study: StudyRecord) -> Lessons:
    """The sources of ``study``: those that an earlier session of it wrote down, else the newest that fit.

    There are none if the space file says ``transfer: false`` or names a strategy that has no use for them, or
    if there are several goals.
    """
    uses = strategy_class(spec.search.strategy).learns_from_sources
    if not (uses and spec.search.transfer) or len(spec.goals) != 1:
        return Lessons()
    recorded = _recorded(store, study.id)
    chosen = list(_fitting(spec, store, study)) if recorded is None else recorded
    sources = tuple(_source(store, one) for one in chosen)
    taken = [replace(one, results=len(s.observations)) for one, s in zip(chosen, sources, strict=True)]
    return Lessons(sources, {SETTING: [one.document for one in taken]})


def _recorded(store: Store, study_id: int) -> list[Chosen] | None:
    """What an earlier session chose; ``None`` if none has chosen yet."""
    for session in store.sessions(study_id):
        if session.settings.get(SETTING) is not None:
            return list(_chosen(store, session.settings))
    return None


def _chosen(store: Store, settings: Mapping[str, Any]) -> Iterator[Chosen]:
    documents: Sequence[Mapping[str, Any]] = settings.get(SETTING) or ()
    there = {study.id: study for study in store.studies()} if documents else {}
    for document in documents:
        if document["study"] in there:  # it may have been removed by ``autotune prune``
            yield Chosen(there[document["study"]], document["trials"], document.get("apart"))


def recorded_sources(store: Store, settings: Mapping[str, Any]) -> tuple[Source, ...]:
    """The sources that a session with these ``settings`` learned from."""
    return tuple(_source(store, one) for one in _chosen(store, settings))


def _fitting(spec: StudySpec, store: Store, study: StudyRecord) -> Iterator[Chosen]:
    """The newest studies of the same thing: on another machine, of another workload or another version."""
    count = 0
    for other in reversed(store.studies()):
        successes = sum(other.counts.get(str(status), 0) for status in (Status.OK, Status.PRUNED))
        if successes < LEAST_TRIALS or not _alike(spec, study, other):
            continue
        apart = distance(study.workload, other.workload) if are_kin(study, other) else None
        yield Chosen(other, MOST_RESULTS, apart)
        count += 1
        if count == MOST_STUDIES:
            return


def _alike(spec: StudySpec, study: StudyRecord, other: StudyRecord) -> bool:
    """Whether ``other`` measured the same metric of the same thing under other conditions.

    The same thing has the same name or objective, and at least one knob in common that is of the same sort.
    Recordings all have different names: there, what has exactly the same knobs is the same thing. Under the
    same conditions (with the same key) it would be this very study.
    """
    if other.id == study.id or other.key == study.key or other.replayed != study.replayed:
        return False
    if not any(_same_goal(metric, spec.goals[0]) for metric in other.metrics):
        return False
    if _identity(other).get("resource", "") != _identity(study).get("resource", ""):
        return False
    mine = {knob.name: _sort(knob.domain) for knob in spec.space.knobs}
    theirs = {name: _sort(knob) for name, knob in part_of(other.document, "space", "knobs").items()}
    if other.name == study.name or _same_objective(other, study):
        return any(theirs.get(name) == sort for name, sort in mine.items())
    return study.replayed and mine.keys() == theirs.keys()


def _same_objective(one: StudyRecord, other: StudyRecord) -> bool:
    """Whether both have the same objective.

    Callables need the same source as well, since many have the same name: ``<lambda>``, ``objective``. What a
    caller of ``ask_tell`` runs is not known and has no source, so it is never the same.
    """
    same = one.objective == other.objective
    if same and one.objective.startswith(CALLABLE):
        source = _identity(one).get("source")
        return bool(source) and source == _identity(other).get("source")
    return same


def _same_goal(metric: Mapping[str, Any], goal: MetricSpec) -> bool:
    return (metric.get("name"), metric.get("goal")) == (goal.name, goal.goal)


def _identity(study: StudyRecord) -> Mapping[str, Any]:
    return part_of(study.document, "identity")


def _sort(domain: Mapping[str, object]) -> str:
    """The kind of a knob's domain. All ranges of numbers are one kind, whatever their bounds."""
    return next((sort for sort in ("choices", "flag", "permutation", "assign") if sort in domain), "numbers")


def _source(store: Store, chosen: Chosen) -> Source:
    _, results = store.results_from(chosen.study.id, 0)
    # A replay measured nothing on the machine that it ran on.
    environment = {} if chosen.study.replayed else store.environment(chosen.study.environment_hash)
    return Source(
        label=chosen.study.label,
        observations=tuple(observe_record(result) for result in results[: chosen.results]),
        facts={
            "device": device_of(environment),
            "workload": ", ".join(f"{name} {value}" for name, value in chosen.study.workload.items()),
        },
        apart=chosen.apart,
    )


def device_of(environment: Mapping[str, Any]) -> str:
    """The names of the GPUs of a captured environment if it has any, else that of the processor."""
    gpus = [str(gpu.get("name", "")) for gpu in part_of(environment, "gpus").get("devices", ())]
    processor = part_of(environment, "machine", "processor").get("name", "")
    return ", ".join(dict.fromkeys(filter(None, gpus))) or str(processor)


def _say(source: Source) -> str:
    where = "; ".join(filter(None, source.facts.values()))
    trials = len({observation.configuration.hash for observation in source.observations})
    return f"learning from {trials} trials of study {source.label}" + (f" ({where})" if where else "")
