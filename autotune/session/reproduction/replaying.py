"""Measuring a trial again, here and now: does it give what was stored, and if not, why?

The readings become trials of the study, deliberate replicates in a session of their own: no strategy is
told of them, and no budget counts them. They are not used for the spread of runs either: otherwise a
machine that was slow for a while would widen it, and the next difference would be excused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autotune.errors import InputError, Problem
from autotune.measure.facts import SAME_CODE_AS, STEP
from autotune.measure.loading.sources import source_files
from autotune.measure.outcome import Reading
from autotune.provenance.code.frozen import snapshot
from autotune.provenance.document import part_of
from autotune.provenance.environment import capture
from autotune.session.opening.frozen import laid_out
from autotune.session.opening.identity import CALLABLE
from autotune.session.reproduction.agreement import UNMEASURABLE, Claim, Verification
from autotune.session.reproduction.causes import common_shift, environments, pressures, state_of
from autotune.session.reproduction.paced import Past, series_of
from autotune.session.reproduction.replicates import Interval
from autotune.session.reproduction.verification import Keeper, spec_for, verify
from autotune.session.searches import repeats_of
from autotune.space.configuration import Configuration
from autotune.space.spec import StudySpec
from autotune.status import Status
from autotune.store.records import SegmentRecord, StudyRecord, TrialRecord
from autotune.store.store import Store


@dataclass(frozen=True)
class Replay:
    """The result of measuring a trial again."""

    study: StudyRecord
    trial: TrialRecord
    result: Verification
    causes: tuple[str, ...] = ()
    """Possible causes of a difference: how the state of the machine differed."""
    changed: tuple[str, ...] = ()
    """What else has changed: the source, the environment."""
    kept: str = ""
    """Where the readings are kept, or why they are not."""

    def to_document(self) -> dict[str, Any]:
        return {
            "study": self.study.name,
            "study_id": self.study.id,
            "trial": self.trial.number,
            "id": self.trial.id,
            "status": str(self.trial.status),
            **self.result.to_document(),
            "causes": list(self.causes),
            "changed": list(self.changed),
            "kept": self.kept,
        }


def replay(
    url: str | None, trial_id: int, *, frozen: bool = False, keep: bool = True, runs: int | None = None
) -> Replay:
    """Measure the configuration of a trial and the default again, and compare with what was stored.

    ``frozen`` uses the objective's source that the store has kept, instead of the present one. ``keep`` is
    whether the readings are written to the store. ``runs``: see
    :func:`autotune.session.reproduction.verification.verify`.

    Raises :class:`InputError` for a trial that does not exist or has no result.
    """
    with ExitStack() as stack:
        store = stack.enter_context(Store.open(url, readonly=True))
        trial = store.trial(trial_id)
        study = store.study(trial.study_id)
        reason = unmeasurable(study, trial)
        if reason:
            return Replay(study, trial, Verification(UNMEASURABLE, reason))
        segment = store.segment(trial.segment_id)
        try:
            path = stack.enter_context(laid_out(store, study, segment)) if frozen else space_file(study)
            spec = spec_for(study.spec_text, path, study.workload)
        except InputError as error:
            return Replay(study, trial, Verification(UNMEASURABLE, str(error)))
        code = "" if frozen else _changed_source(spec, segment)
        if code == MISSING:
            return Replay(study, trial, Verification(UNMEASURABLE, f"{MISSING}; --frozen {FROZEN}"))
        claim = claim_of(store, study, trial, spec)
        now = capture(None if frozen else path.parent)
        environment, here = environment_of(store, trial), now.to_document()
        if comparable_paces(environment, here):
            claim = replace(claim, past=past_of(store, trial, spec.goals[0].name))
        # A measurement of another source is no replicate of this trial.
        keeper = None if code or not keep else Keeper(url, study, segment, now, {"of": trial.number})
        with nullcontext() if keeper is None else closing(keeper):
            result = verify(spec, claim, keeper, runs)
        changed = (*([code] if code else []), *environments(environment, here))
        causes = causes_of(store.readings(trial.id), result, spec, edited=bool(code))
    why = "not kept: they are of another source" if code else "not kept"
    return Replay(study, trial, result, causes, changed, why if keeper is None else keeper.kept)


MISSING = "the files of its objective are no longer where they were"
FROZEN = "uses those that the store has kept"


def unmeasurable(study: StudyRecord, trial: TrialRecord) -> str:
    """Why a trial cannot be measured again on any machine; empty if it can.

    Raises :class:`InputError` if it has no result.
    """
    if study.replayed:
        return "its readings come from a recording"
    if from_python(study):
        return from_python(study)
    if not trial.status.finished:
        raise InputError(
            Problem(f"trial {trial.number} of {study.label} has no result: it is {trial.status}")
        )
    if trial.purpose == "baseline":
        return "it is of a baseline, not of a configuration"
    if trial.status is Status.PRUNED and trial.facts.get(STEP) is not None:
        return f"it was stopped after step {trial.facts['step']}, so its final value is not known"
    return ""


def from_python(study: StudyRecord) -> str:
    """Why no space file says how to measure a study again; empty if one does."""
    if study.objective.startswith(CALLABLE):
        return f"study {study.label} was searched from Python: only the program that did so can measure it"
    if not study.spec_text.strip():
        return f"study {study.label} was searched from Python: no space file describes it"
    return ""


def space_file(study: StudyRecord) -> Path:
    """The path of a study's space file, which may no longer exist."""
    return Path(study.space_file or "space.yaml")


def claim_of(store: Store, study: StudyRecord, trial: TrialRecord, spec: StudySpec) -> Claim:
    """The stored result of a trial, with that of the default and those of repeated runs.

    Repeated runs of the trial's own configuration are left out, since its result is in question.
    """
    goal = study.goals[0]
    repeats = own_results(store, study.id)
    estimate = trial.metrics.get(goal.name)
    return Claim(
        Configuration(dict(trial.configuration)),
        metric=None if estimate is None else estimate.interval,
        label=f"trial {trial.number}",
        by="metric",
        status=trial.status if trial.status.failed else Status.OK,
        default=_default(repeats, trial, spec, goal.name),
        replicates=replicates([t for t in repeats if t.hash != trial.hash], goal.name),
        state=state_of(store.readings(trial.id)),
    )


def comparable_paces(then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether the fixed piece of work is comparable in two environments: same processor, Python and NumPy."""

    def work(environment: Mapping[str, Any]) -> list[Any]:
        processor = part_of(environment, "machine").get("processor")
        return [processor, environment.get("python"), part_of(environment, "packages").get("numpy")]

    return None not in work(then) and work(then) == work(now)


def past_of(store: Store, trial: TrialRecord, metric: str) -> Past | None:
    """The readings of a trial and of repeated runs of other configurations, with the pace of the machine.

    ``None`` if the pace was not recorded beside each reading of the trial.
    """
    then = series_of(store.readings(trial.id), metric)
    if then is None:
        return None
    others = [t for t in own_results(store, trial.study_id) if t.hash != trial.hash]
    again = [[t.id for t in group] for group in runs_of_each(others)]
    found = store.readings_in([number for group in again for number in group])
    known = {number: series for number, readings in found if (series := series_of(readings, metric))}
    return Past(then, [[known[number] for number in group if number in known] for group in again])


def own_results(store: Store, study_id: int) -> list[TrialRecord]:
    """The trials that a study's searches measured, without baselines, replays and shared code."""
    again = repeats_of(store, study_id)
    return [
        trial
        for trial in store.trials(study_id, status=Status.OK)
        if trial.purpose != "baseline" and trial.session_id not in again and SAME_CODE_AS not in trial.facts
    ]


def replicates(trials: Sequence[TrialRecord], metric: str) -> list[list[float]]:
    """For each configuration with several runs, the metric in each run."""
    measured = [trial for trial in trials if metric in trial.metrics]
    return [[trial.metrics[metric].value for trial in group] for group in runs_of_each(measured)]


def runs_of_each(trials: Sequence[TrialRecord]) -> list[list[TrialRecord]]:
    """For each configuration with several trials of the same source, these trials."""
    groups: defaultdict[tuple[str, int], list[TrialRecord]] = defaultdict(list)
    for trial in trials:
        groups[trial.hash, trial.segment_id].append(trial)
    return [group for group in groups.values() if len(group) > 1]


def _default(
    trials: Sequence[TrialRecord], trial: TrialRecord, spec: StudySpec, metric: str
) -> Interval | None:
    """The value of the default in the run that is nearest in time to ``trial``."""
    default = spec.space.feasible_default()
    if default is None:
        return None
    digest = default.hash
    own = [t for t in trials if t.hash == digest and metric in t.metrics]
    at = trial.finished_at or 0.0
    nearest = min(own, key=lambda t: abs((t.finished_at or 0.0) - at), default=None)
    if nearest is None or digest == trial.hash:
        return None
    return nearest.metrics[metric].interval


def environment_of(store: Store, trial: TrialRecord) -> Mapping[str, Any]:
    """The environment of a trial, or else of its session."""
    session = next((s for s in store.sessions(trial.study_id) if s.id == trial.session_id), None)
    return store.environment(trial.environment_hash or (session.environment_hash if session else ""))


def _changed_source(spec: StudySpec, segment: SegmentRecord) -> str:
    """A sentence if the objective's files are missing or differ from the segment's; else empty."""
    recorded = str(segment.document.get("source_hash", ""))
    now = snapshot(source_files(spec.objective))
    if now.source_hash == recorded:
        return ""
    if not now.files or any(file.sha256 is None for file in now.files):
        return MISSING
    return f"the objective's source has changed: {recorded} -> {now.source_hash}"


def causes_of(
    then: Sequence[Reading], result: Verification, spec: StudySpec, *, edited: bool
) -> tuple[str, ...]:
    """How the state of the machine differs from that of the readings ``then``; none if the results agree."""
    if result.verdict not in ("differs", "cannot be told"):
        return ()
    moved = common_shift(result.then, result.now, spec.measure.precision, edited=edited)
    return (*moved, *pressures(state_of(then), state_of(result.taken)))
