"""Sections of a study's report: how to reproduce it, where it comes from, and its best trials."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from autotune.provenance.document import part_of
from autotune.report.knob_views import say_configuration
from autotune.report.numbers import as_duration, say_count, say_seconds, say_value
from autotune.report.pages.page import Commands, Paragraph, Part, Section, Table, Text
from autotune.report.pages.subject import Subject, say_time
from autotune.report.words.objective import say_objective
from autotune.report.words.what_next import workload_words
from autotune.session.answers import best_trials
from autotune.session.reproduction.replaying import from_python
from autotune.space.spec import say_workload

MOST_TRIALS = 20
"""How many of the best trials are listed."""
MOST_FACTS = 400
"""The most facts of an environment that are listed."""
MOST_IN_FLIGHT = 20
"""Of so many of the last trials one has been measured."""


# -- to do it again ----------------------------------------------------------------------------


def how_to_repeat(subject: Subject) -> Section:
    """The commands, and what has to be the same for them to give the same result."""
    study = subject.evidence.study
    store = f" --store {shlex.quote(subject.store.url)}"
    label = shlex.quote(study.label)
    lines = [*_checkout(subject)]
    python = from_python(study)
    if subject.evidence.tried and not python:
        lines.append((_search(subject), "search again, from the beginning"))
    if subject.result.best is not None and not study.replayed and not python:
        lines.append((f"autotune verify --study {label}{store}", "measure the winner and the default again"))
    lines.append((f"autotune derive --study {label}{store}", "derive every proposal again from the record"))
    if subject.result.trial is not None:
        trial = f"autotune trial {subject.result.trial} --study {label}{store}"
        lines.append((trial, "every reading of the winner, and why it was tried"))
    parts: list[Part] = [Commands(lines), Table("As it was", ("what", "which"), list(_as_it_was(subject)))]
    if python:
        parts.insert(0, Paragraph(f"{python[0].upper()}{python[1:]}."))
    return Section("How to reproduce it", parts, short=True)


def _checkout(subject: Subject) -> Iterator[tuple[str, str]]:
    head = _head(subject)
    if commit := head.get("commit"):
        dirty = ", and apply the recorded changes" if head.get("dirty") else ""
        yield f"git checkout {shlex.quote(str(commit))}", f"the code as it was{dirty}"


def _head(subject: Subject) -> Mapping[str, Any]:
    document = subject.evidence.segment.document if subject.evidence.segment else {}
    return part_of(document, "repository", "head")


def _search(subject: Subject) -> str:
    """The command that made the study, by the settings of its last search.

    In a search of many workloads, each session has a part of the budget, and the study has all of it.
    """
    evidence = subject.evidence
    settings = evidence.tried[-1].settings
    search = settings.get("search") or {}
    budget = (evidence.study.document if settings.get("part") else settings).get("budget") or {}
    words = ["autotune", "search", _space(evidence.study.name, evidence.study.space_file)]
    words += workload_words(evidence.study)
    if "strategy" in search:
        words += ["--strategy", str(search["strategy"]), "--seed", str(search.get("seed", 0))]
    if budget.get("trials"):
        words += ["--trials", str(budget["trials"])]
    if budget.get("time"):
        words += ["--time", as_duration(budget["time"])]
    if budget.get("patience"):
        words += ["--patience", str(budget["patience"])]
    if budget.get("target") is not None:
        words += [f"--target={budget['target']:g}"]
    return shlex.join([*words, "--fresh"])


def _space(name: str, source: str) -> str:
    """The name of a ready space, or the path of another space file."""
    from autotune.ready import ready_spaces

    path = Path(source)
    if not source or (path.parent.name == "searchspaces" and path.stem in ready_spaces()):
        return path.stem or name
    return source


def _as_it_was(subject: Subject) -> Iterator[tuple[str, str]]:
    """What was searched, with which code and on which machine."""
    study = subject.evidence.study
    yield from _code(subject)
    yield from _cores(subject)
    yield from _machine(subject.evidence.environment)
    yield "machine's key", study.machine_key
    yield "environment", study.environment_hash or "not recorded"
    yield "study's key", study.key


def _code(subject: Subject) -> Iterator[tuple[str, str]]:
    evidence = subject.evidence
    study = evidence.study
    settings = evidence.sessions[-1].settings if evidence.sessions else {}
    engine = part_of(settings, "engine")
    yield from say_objective(study).items()
    if study.workload:
        yield "workload", say_workload(study.workload)
    if engine.get("version"):
        yield "autotune", f"{engine['version']} (code {engine.get('code', 'unknown')})"
    head = _head(subject)
    if head.get("commit"):
        state = "with changes that are stored with the study" if head.get("dirty") else "clean"
        yield "commit", f"{head['commit']} on {head.get('branch') or 'no branch'}, {state}"
    if evidence.segment and (source := evidence.segment.document.get("source_hash")):
        yield "objective's source", str(source)


def _cores(subject: Subject) -> Iterator[tuple[str, str]]:
    """How many cores a measurement was pinned to in the last search, as in its final measurement.

    On more of them the same programs may compare otherwise.
    """
    evidence = subject.evidence
    last = evidence.trials["trial"].tail(MOST_IN_FLIGHT).tolist()
    known = [trial.facts.get("cores") for trial in subject.store.numbered(evidence.study.id, last)]
    pinned = [cores for cores in known if isinstance(cores, list) and cores]
    if pinned:
        yield "measured on", f"{say_count(len(pinned[-1]), 'core')} of the processor, pinned"


def _machine(environment: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if processor := part_of(environment, "machine", "processor"):
        cores = f"{processor.get('cores', '?')} cores, {processor.get('threads', '?')} threads"
        yield "processor", f"{processor.get('name')}, {cores}"
    for device in part_of(environment, "gpus").get("devices") or []:
        yield "GPU", str(device.get("name")) if isinstance(device, Mapping) else str(device)
    if memory := part_of(environment, "machine").get("memory_bytes"):
        yield "memory", f"{memory / 2**30:.1f} GiB"
    if system := part_of(environment, "system"):
        yield "system", f"{system.get('distribution')}, Linux {system.get('kernel')}"
    if python := part_of(environment, "python"):
        yield "Python", f"{python.get('implementation')} {python.get('version')}"
    compilers = part_of(environment, "compilers")
    for name in ("gcc", "clang", "nvcc"):
        if compilers.get(name):
            yield name, str(compilers[name])
    pressure = part_of(environment, "state", "pressure")
    if "load1" in pressure:
        yield "load when it began", f"{pressure['load1']:g} over the last minute"


# -- where it comes from -----------------------------------------------------------------------


def origin(subject: Subject) -> Section:
    """Sessions, the study it follows, the studies it learned from, files, the space, the environment."""
    evidence = subject.evidence
    study = evidence.study
    parts: list[Part] = []
    if study.parent_id is not None:
        changed = ", ".join(study.differs) or "nothing that is recorded"
        parts.append(Paragraph(f"It follows study #{study.parent_id}; what differs: {changed}."))
    rows = [
        (
            f"{session.id}",
            say_time(session.started_at),
            say_seconds(evidence.end_of(session) - session.started_at)
            if session.finished_at
            else "not ended",
            session.host,
            session.reason or "-",
            _sources(session.settings),
        )
        for session in evidence.sessions
    ]
    if rows:
        headings = ("session", "began", "took", "on", "ended by", "learned from")
        parts.append(Table("Sessions", headings, rows))
    if evidence.segment:
        files = [
            (str(one.get("name")), f"{one.get('bytes', 0):,}", str(one.get("sha256", "")))
            for one in evidence.segment.document.get("files") or []
            if isinstance(one, Mapping)
        ]
        if files:
            parts.append(Table("The objective's files", ("file", "bytes", "SHA-256"), files, folded=True))
    parts.append(Text("The space", study.spec_text))
    facts = list(flat(evidence.environment))
    if facts:
        cut = len(facts) - MOST_FACTS
        rows_ = [*facts[:MOST_FACTS], *([(f"{cut} more", "")] if cut > 0 else [])]
        parts.append(Table("The environment", ("what", "which"), rows_, folded=True))
    return Section("Where it comes from", parts)


def _sources(settings: Mapping[str, Any]) -> str:
    sources = settings.get("sources")
    if not isinstance(sources, list) or not sources:
        return "-"
    return ", ".join(
        f"{_named(one.get('study'))} ({one.get('trials')} trials)"
        for one in sources
        if isinstance(one, Mapping)
    )


def _named(source: object) -> str:
    return "a deleted study" if source is None else f"#{source}"


def flat(document: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The leaves of a document, each with its path: names joined by dots."""
    if isinstance(document, Mapping):
        for name, value in document.items():
            yield from flat(value, f"{path}.{name}" if path else str(name))
    elif isinstance(document, list) and any(isinstance(one, Mapping) for one in document):
        for place, value in enumerate(document):
            yield from flat(value, f"{path}.{place}")
    elif document not in (None, "", [], {}):
        yield path, str(document)


def trials_table(subject: Subject) -> Section:
    """The best trials, and a command that exports all."""
    evidence = subject.evidence
    metric = evidence.metric
    rows = []
    for trial in best_trials(subject.store, evidence.study, metric, MOST_TRIALS):
        value = say_value(trial.metrics[metric.name].value, metric.unit)
        rows.append((f"{trial.number}", value, say_configuration(trial.configuration)))
    if not rows:
        return Section("Trials", ())
    headings = ("trial", metric.name, "configuration")
    table = Table(f"The best {len(rows)}", headings, rows, folded=True)
    which = f"--study {shlex.quote(evidence.study.label)} --store {shlex.quote(subject.store.url)}"
    command = f"autotune export --format csv --to trials.csv {which}"
    return Section("Trials", (table, Commands([(command, f"all {len(evidence.trials):,} of them")])))
