"""The differences between two studies of a store."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from autotune.measure.rules.significance import paired_shift
from autotune.report.differences.difference import (
    Contrast,
    Differences,
    by_runs,
    in_unit_of,
    incomparable,
    pairs_of,
    say_other_units,
    scaled,
)
from autotune.report.differences.trials import code_pairs, environment_pairs, study_pairs
from autotune.report.numbers import say_count
from autotune.report.words.story import differing
from autotune.session.answers import default_in, load_result
from autotune.session.reproduction.replaying import own_results, replicates
from autotune.session.reproduction.replicates import Interval, spread_of
from autotune.session.result import Result
from autotune.space.configuration import Configuration, plain
from autotune.space.spec import MetricSpec, ratio_title
from autotune.store.records import StudyRecord, TrialRecord
from autotune.store.store import Store

FEWEST = 6
"""How many configurations both must have measured: fewer cannot decide with 95 % confidence."""


def diff_studies(store: Store, one: StudyRecord, other: StudyRecord) -> Differences:
    """What differs between two studies, and how their winners and the configurations in common compare."""
    results = (load_result(store, one), load_result(store, other))
    best = (result.best or Configuration({}) for result in results)
    remarks = []
    mine, its = one.goals[0], other.goals[0]
    if mine.name != its.name:
        remarks.append(f"they measure different things: {mine.name} and {its.name}")
    elif mine.goal != its.goal:
        remarks.append(
            f"they have different goals: one is to {mine.goal} {mine.name}, the other to {its.goal} it"
        )
    if one.replayed != other.replayed:
        remarks.append("one was measured, the other comes from a recording")
    return Differences(
        kind="studies",
        one=one.label,
        other=other.label,
        parts={
            "study": study_pairs(one, other),
            "workload": pairs_of(one.workload, other.workload),
            "space": pairs_of(_space(one), _space(other)),
            "settings": pairs_of(_settings(one), _settings(other)),
            "trials": pairs_of(one.counts, other.counts),
            "winner": differing(*best),
            "code": code_pairs(store, store.latest_segment(one.id), store.latest_segment(other.id)),
            "environment": environment_pairs(
                store.environment(one.environment_hash), store.environment(other.environment_hash)
            ),
        },
        contrasts=() if remarks else tuple(_contrasts(store, *results)),
        remarks=remarks,
    )


def _space(study: StudyRecord) -> dict[str, Any]:
    """The knobs by name, and each constraint as a name of its own."""
    space = study.document.get("space") or {}
    rules = {f"constraint {rule}": True for rule in space.get("constraints") or ()}
    return {**(space.get("knobs") or {}), **rules}


def _settings(study: StudyRecord) -> dict[str, Any]:
    parts = ("search", "measure", "budget")
    return {
        f"{part}.{name}": value for part in parts for name, value in (study.document.get(part) or {}).items()
    }


def _contrasts(store: Store, one: Result, other: Result) -> Iterator[Contrast]:
    """Contrasts of the speed-ups, of the winners, and of the configurations that both have tried."""
    goal = one.metric
    winners = f"{goal.name} of the winners"
    factor = in_unit_of(goal.unit, other.metric.unit)
    yield _over_defaults(one, other, factor)
    if factor is None:
        yield incomparable(winners, goal.unit, say_other_units(goal.unit, other.metric.unit))
        return
    first, second = _best(one), _best(other, factor)
    if pairs_of(one.study.workload, other.study.workload):
        yield incomparable(winners, goal.unit, "they had different workloads", first, second)
        return
    own, its = (own_results(store, result.study.id) for result in (one, other))
    if first is None or second is None:
        yield incomparable(winners, goal.unit, "one of them has no winner", first, second)
    else:
        theirs = [[value * factor for value in group] for group in replicates(its, goal.name)]
        spread = spread_of([*replicates(own, goal.name), *theirs])
        yield by_runs(winners, goal.unit, goal.direction, first, second, spread, one.study)
    yield _shared(own, its, goal, factor)


def _best(result: Result, factor: float = 1.0) -> Interval | None:
    estimate = result.metrics.get(result.metric.name)
    return None if estimate is None else scaled(estimate.interval, factor)


def _over_defaults(one: Result, other: Result, factor: float | None) -> Contrast:
    """The speed-ups over the default, or by how much both are better than it, if neither has a ratio.

    Each is from one finale, so the spread of runs is not added.
    """
    name, unit = f"{ratio_title(one.metric.goal, one.metric.unit)} over the default", ""
    first, second = (result.speedup.interval if result.speedup else None for result in (one, other))
    if one.gain is not None and other.gain is not None:
        name, unit = "better than the default by", one.metric.unit
        if factor is None:
            return incomparable(name, unit, say_other_units(unit, other.metric.unit))
        first, second = one.gain.interval, scaled(other.gain.interval, factor)
    if first is None or second is None:
        why = "one of them was not measured again"
        if one.defended and other.defended:
            why = "one of them has no ratio: its default failed, or a value is not above 0"
        return incomparable(name, unit, why, first, second)
    if _default(one) != _default(other):
        return incomparable(name, unit, "their defaults are not the same", first, second)
    return by_runs(name, unit, "maximize", first, second)


def _default(result: Result) -> object:
    """The default of a study by its space, or else the configuration first tried as the default."""
    if (default := default_in(result.study)) is not None:
        return plain(default)
    own = next((t for t in result.trials if t.reason.get("kind") == "default"), None)
    return None if own is None else plain(own.configuration)


def _shared(
    own: Sequence[TrialRecord], its: Sequence[TrialRecord], goal: MetricSpec, factor: float
) -> Contrast:
    """Compare all configurations that both have measured, by signed ranks of the logarithms of ratios.

    ``factor`` turns ``its`` values into the unit of ``goal``.
    """
    name = f"{goal.name} of what both have tried"
    first, second = (
        {t.hash: t.metrics[goal.name].value for t in trials if goal.name in t.metrics}
        for trials in (own, its)
    )
    common = [(first[digest], second[digest]) for digest in first if digest in second]
    if len(common) < FEWEST:
        were = "was" if len(common) == 1 else "were"
        both = f"{say_count(len(common), 'configuration')} {were} measured in both"
        return incomparable(name, goal.unit, f"{both}, and {FEWEST} are needed")
    if min(map(min, common)) <= 0:
        return incomparable(name, goal.unit, f"there is no ratio to a {goal.name} of 0 or less")
    shift = paired_shift([goal.sign * math.log(a / (b * factor)) for a, b in common], 0.95)
    ratio = (math.exp(shift[0]), math.exp(shift[1]), math.exp(shift[2]))
    answer: Any = "better" if ratio[1] > 1.0 else "worse" if ratio[2] < 1.0 else "no difference shown"
    how = f"{len(common)} configurations that both have measured; signed ranks of their ratios, 95%"
    return Contrast(name, goal.unit, None, None, answer, how, ratio)
