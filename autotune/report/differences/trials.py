"""The differences between two trials of a store."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from autotune.errors import InputError
from autotune.measure.facts import STEP
from autotune.measure.rules.repetition import Goal
from autotune.measure.rules.significance import Gain, Ratio, over_runs, speedup
from autotune.provenance.document import part_of
from autotune.provenance.environment import compare
from autotune.report.differences.difference import (
    Contrast,
    Differences,
    Pair,
    by_runs,
    in_unit_of,
    incomparable,
    pairs_of,
    say_other_units,
    scaled,
)
from autotune.report.numbers import say_count
from autotune.report.words.objective import say_objective
from autotune.report.words.story import differing
from autotune.session.finale.fresh_processes import FEWEST
from autotune.session.opening.frozen import SOURCE
from autotune.session.reproduction.replaying import environment_of, own_results, replicates
from autotune.session.reproduction.replicates import Interval, spread_of
from autotune.space.spec import MetricSpec
from autotune.status import Status
from autotune.store.records import SegmentRecord, StudyRecord, TrialRecord
from autotune.store.store import Store

ROUND = "round"
"""The key for the round in the context of a finale's reading."""

Round = tuple[float, float]
"""The run of fresh processes (0 for none), and the number of the round."""
Read = Mapping[Round, tuple[float, float]]
"""The values of two trials in each round in which both were read."""


def diff_trials(store: Store, one: TrialRecord, other: TrialRecord) -> Differences:
    """What differs between two trials, and how their outcomes compare."""
    studies = (store.study(one.study_id), store.study(other.study_id))
    segments = (store.segment(one.segment_id), store.segment(other.segment_id))
    remarks = list(_remarks(*studies))
    contrasts = [_contrast(store, one, other, goal, studies, remarks) for goal in _shared_goals(*studies)]
    return Differences(
        kind="trials",
        one=f"trial {one.number} of {studies[0].label} (id {one.id})",
        other=f"trial {other.number} of {studies[1].label} (id {other.id})",
        parts={
            "configuration": differing(one.configuration, other.configuration),
            "outcome": pairs_of(_ending(one), _ending(other)),
            "study": study_pairs(*studies),
            "workload": pairs_of(studies[0].workload, studies[1].workload),
            "code": code_pairs(store, *segments),
            "environment": environment_pairs(environment_of(store, one), environment_of(store, other)),
        },
        contrasts=contrasts,
        remarks=remarks,
    )


def _ending(trial: TrialRecord) -> Mapping[str, Any]:
    return {"status": str(trial.status), "why": trial.message.strip() or None}


def _remarks(one: StudyRecord, other: StudyRecord) -> Iterator[str]:
    """Why a comparison of trials of these studies means nothing."""
    if one.id == other.id:
        return
    if one.objective != other.objective:
        yield "they are of different objectives"
    if pairs_of(one.workload, other.workload):
        yield "they had different workloads"
    if one.replayed != other.replayed:
        yield "one was measured, the other comes from a recording"


def _shared_goals(one: StudyRecord, other: StudyRecord) -> list[MetricSpec]:
    theirs = {(goal.name, goal.goal) for goal in other.goals}
    return [goal for goal in one.goals if (goal.name, goal.goal) in theirs]


def _contrast(
    store: Store,
    one: TrialRecord,
    other: TrialRecord,
    goal: MetricSpec,
    studies: tuple[StudyRecord, StudyRecord],
    remarks: Sequence[str],
) -> Contrast:
    theirs = next(its for its in studies[1].goals if its.name == goal.name)
    factor = in_unit_of(goal.unit, theirs.unit)
    if factor is None:
        return incomparable(goal.name, goal.unit, say_other_units(goal.unit, theirs.unit))
    sides = (_interval(one, goal.name), _interval(other, goal.name, factor))
    for trial, side in zip((one, other), sides, strict=True):
        if side is None:
            why = f"trial {trial.number} ended as {trial.status}"
            return incomparable(goal.name, goal.unit, why, *sides)
        if trial.status is Status.PRUNED and trial.facts.get(STEP) is not None:
            why = f"trial {trial.number} was stopped after step {trial.facts[STEP]}"
            return incomparable(goal.name, goal.unit, why, *sides)
    if remarks:
        return incomparable(goal.name, goal.unit, "; ".join(remarks), *sides)
    if one.hash != other.hash and one.study_id == other.study_id:
        paired = _side_by_side(store, one, other, goal, studies[0])
        if paired is not None:
            return paired
    first, second = sides
    assert first is not None and second is not None
    groups = [
        [value * scale for value in group]
        for study, scale in {studies[1].id: factor, studies[0].id: 1.0}.items()
        for group in replicates(own_results(store, study), goal.name)
    ]
    return by_runs(goal.name, goal.unit, goal.direction, first, second, spread_of(groups), studies[0])


def _interval(trial: TrialRecord, metric: str, factor: float = 1.0) -> Interval | None:
    if trial.status.failed or metric not in trial.metrics:
        return None
    return scaled(trial.metrics[metric].interval, factor)


def _side_by_side(
    store: Store, one: TrialRecord, other: TrialRecord, goal: MetricSpec, study: StudyRecord
) -> Contrast | None:
    """Compare by the rounds in which both were read, in the newest session that has any; else ``None``."""
    again = [t for t in store.trials(study.id, status=Status.OK) if t.purpose in ("final", "default")]
    for session in sorted({t.session_id for t in again}, reverse=True):
        own, its = (
            [t for t in again if t.session_id == session and t.hash == trial.hash] for trial in (one, other)
        )
        pairs = [(a, b) for a in own for b in its if a.reason.get("run") == b.reason.get("run")]
        rounds = [(_rounds(store, a, goal.name), _rounds(store, b, goal.name)) for a, b in pairs]
        both = {key: (a[key], b[key]) for a, b in rounds for key in a if key in b}
        if len(both) > 1 and min(min(pair) for pair in both.values()) > 0:
            return _by_rounds(own[-1], its[-1], goal, both, session)
    return None


def _by_rounds(one: TrialRecord, other: TrialRecord, goal: MetricSpec, read: Read, session: int) -> Contrast:
    gain, of = _gain(read, goal.direction)
    ratio = gain.estimate, gain.low, gain.high
    answer: Any = "better" if gain.low > 1.0 else "worse" if gain.high < 1.0 else "no difference shown"
    how = f"read side by side in {of} of session {session}; signed ranks of their ratios, 95%"
    sides = (_interval(one, goal.name), _interval(other, goal.name))
    return Contrast(goal.name, goal.unit, *sides, answer=answer, how=how, ratio=ratio)


def _gain(read: Read, goal: Goal) -> tuple[Ratio | Gain, str]:
    """The gain by the runs of fresh processes, or if these are too few by all rounds; and which, in words."""
    runs = {run for run, _ in read if run}
    if len(runs) < FEWEST:
        one, other = zip(*read.values(), strict=True)
        return speedup(one, other, goal=goal), f"{len(read)} rounds"
    of = [[pair for (own, _), pair in read.items() if own == run] for run in runs]
    gain = over_runs([[a for a, _ in run] for run in of], [[b for _, b in run] for run in of], goal=goal)
    return gain, f"{len(runs)} runs of fresh processes"


def _rounds(store: Store, trial: TrialRecord, metric: str) -> dict[Round, float]:
    """The value of a trial in each round of a finale."""
    return {
        (r.context.get("process", 0), r.context[ROUND]): r.value
        for r in store.readings(trial.id)
        if r.metric == metric and not r.discarded and ROUND in r.context
    }


# -- study, code and environment ------------------------------------------------------------------------


def study_pairs(one: StudyRecord, other: StudyRecord) -> dict[str, Pair]:
    """Objective, machine and metrics, as far as they differ."""
    return pairs_of(_facts(one), _facts(other))


def _facts(study: StudyRecord) -> dict[str, Any]:
    return {
        **say_objective(study),
        "machine": study.machine_key,
        **{f"metric {metric['name']}": _said_of(metric) for metric in study.metrics},
        "replayed": study.replayed,
    }


def _said_of(metric: Mapping[str, Any]) -> dict[str, Any]:
    """The goal, unit and bounds of a metric, as far as it has them."""
    return {part: value for part, value in metric.items() if part != "name" and value not in (None, "")}


def code_pairs(store: Store, one: SegmentRecord | None, other: SegmentRecord | None) -> dict[str, Pair]:
    """Source, files, commit and local changes, as far as they differ."""
    if one is None or other is None or one.id == other.id:
        return {}
    found = pairs_of(_code(one), _code(other))
    for name, (before, after) in pairs_of(_files(one), _files(other)).items():
        found[name] = _change(store, before, after)
    return found


def _files(segment: SegmentRecord) -> dict[str, str]:
    return {r.removeprefix(SOURCE): h for r, h in segment.artifacts.items() if r.startswith(SOURCE)}


def _code(segment: SegmentRecord) -> dict[str, Any]:
    document = segment.document
    return {
        "source": document.get("source_hash"),
        "commit": part_of(document, "repository", "head").get("commit"),
        "local changes": part_of(document, "repository", "diff").get("sha256"),
    }


def _change(store: Store, before: object, after: object) -> Pair:
    """How many lines a file has on each side, and how many were added and removed."""
    try:
        lines = [
            [] if digest is None else store.artifact(str(digest)).decode(errors="replace").splitlines()
            for digest in (before, after)
        ]
    except InputError:
        return before, after
    counts = [say_count(len(side), "line") for side in lines]
    if before is None or after is None:
        return (None, counts[1]) if before is None else (counts[0], None)
    delta = [line[:1] for line in difflib.unified_diff(lines[0], lines[1], n=0, lineterm="")][2:]
    return counts[0], f"{counts[1]}, +{delta.count('+')} -{delta.count('-')}"


def environment_pairs(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Pair]:
    """The places where two environments differ; their states are not compared."""
    if not one or not other:
        return {} if not one and not other else {"environment": (_known(one), _known(other))}
    return {difference.path: (difference.before, difference.after) for difference in compare(one, other)}


def _known(environment: Mapping[str, Any]) -> str:
    return "known" if environment else "not known"
