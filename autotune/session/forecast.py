"""How long a search will take, judged by what the trials of earlier searches took."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from autotune.measure.cores.pinning import this_machine
from autotune.measure.loading.sources import source_files
from autotune.measure.rules.statistics import student_quantile
from autotune.provenance.code.frozen import snapshot
from autotune.provenance.environment import capture
from autotune.session.execution.crew import MOST_PREPARERS
from autotune.session.finale.fresh_processes import seconds_for
from autotune.session.finale.rounds import Rounds
from autotune.session.opening.identity import describe_objective, identify
from autotune.space.spec import Budget, CommandObjective, Family, ReplayObjective, StudySpec
from autotune.store.records import StudyRecord, TrialRecord
from autotune.store.store import Store

CONFIDENCE = 0.95
"""Of the prediction interval."""
ENDLESS = 10**6
"""Configurations beyond which a space ends no search: nobody waits until all of them were tried."""


@dataclass(frozen=True)
class Cost:
    """Seconds that one finished trial took, failed or not."""

    prepare: float
    """These may overlap other trials."""
    measure: float
    """Everything after preparing: load, check, warm up, read. One trial at a time."""


@dataclass(frozen=True)
class Duration:
    """Seconds. ``low`` and ``high`` are ``None`` where one trial alone is known."""

    seconds: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Forecast:
    """What the search that a space file describes is likely to take here."""

    trials: int | None
    """How many are to go; ``None`` where neither the budget nor the space bounds them."""
    duration: Duration | None
    """Of those; ``None`` likewise."""
    each: Cost
    """The mean of the earlier trials."""
    known: int
    """How many earlier trials that is."""
    study: str
    """Whose they are, as ``name#id``."""
    differs: tuple[str, ...]
    """In what that study is not this one (``source``, ``workload``, ``machine`` ...)."""

    def to_document(self) -> dict[str, Any]:
        return asdict(self)


def foresee(spec: StudySpec, store: Store) -> Forecast | None:
    """The forecast for this machine from the finished trials of the study that ``spec`` would go on with.

    Where it has none: from those of the newest study that shares its name, else its objective. ``None``
    where there are no such trials. Replayed studies say nothing of this machine.
    """
    machine = capture(spec.source.parent if spec.source else None).machine_key
    identity = identify(spec, snapshot(source_files(spec.objective)).source_hash, machine)
    same = store.find_study(spec.name, identity.key)
    trials = trials_to_go(spec, 0 if same is None else _tried(spec, store, same))
    for study in _relatives(spec, same, store):
        costs = [cost_of(t) for t in store.trials(study.id, purpose="search") if t.status.finished]
        if costs:
            lasts = None if trials is None else duration(costs, trials, _preparers(spec))
            differs = identity.differences(study.document.get("identity", {}))
            return Forecast(trials, lasts, mean_cost(costs), len(costs), study.label, tuple(differs))
    return None


def seconds_of_finale(family: Family) -> float | None:
    """About how long it takes to measure again behind a budget of time, where readings are quick.

    Of several workloads each has a finale in its share of the time, and all their winners are measured on
    each. ``None`` without such a budget: then it depends on how long the search takes.
    """
    spec = family.specs[0]
    if not spec.measure.finalists or isinstance(spec.objective, ReplayObjective):
        return 0.0
    if spec.budget.time is None:
        return None
    searched = family.held_out.count(False)
    rounds = Rounds.of(replace(spec, budget=Budget(time=spec.budget.time / searched))).seconds
    fresh = 0.0 if isinstance(spec.objective, CommandObjective) else seconds_for(rounds)
    if not family.several:
        return rounds + fresh
    return searched * rounds + len(family.specs) * (rounds + fresh)


def trials_to_go(spec: StudySpec, tried: int = 0) -> int | None:
    """How many more the budget and the space allow after ``tried``; ``None`` where neither bounds them."""
    size = None if spec.space.continuous else spec.space.feasible.size
    if size is not None and size > ENDLESS:
        size = None
    most = min((n for n in (spec.budget.trials, size) if n is not None), default=None)
    return None if most is None else max(most - tried, 0)


def _tried(spec: StudySpec, store: Store, study: StudyRecord) -> int:
    """How many trials of the study count for the budget: those that the space still has."""
    if study.space_hash == spec.space.hash:
        return sum(study.counts.values())
    return sum(trial.configuration in spec.space for trial in store.trials(study.id, purpose="search"))


def cost_of(trial: TrialRecord) -> Cost:
    prepare = trial.phases.get("prepare", 0.0)
    return Cost(prepare, sum(trial.phases.values()) - prepare)


def mean_cost(costs: Sequence[Cost]) -> Cost:
    return Cost(_mean([c.prepare for c in costs]), _mean([c.measure for c in costs]))


def duration(costs: Sequence[Cost], trials: int, preparers: int) -> Duration:
    """How long ``trials`` more will take where ``preparers`` prepare while one is measured. Pure.

    With 0 preparers nothing overlaps; else the slower of the two stages sets the pace, after the first
    trial was prepared. The range is the 95 % prediction interval of Student's t for a sum of further
    trials: they vary, and their mean is known from ``costs`` alone. Raises ``ValueError`` without costs.
    """
    if not costs:
        raise ValueError("a forecast needs at least one earlier trial")
    first = 0.0
    if preparers == 0:
        stages = [[c.prepare + c.measure for c in costs]]
    else:
        stages = [[c.prepare / preparers for c in costs], [c.measure for c in costs]]
        first = mean_cost(costs).prepare if trials else 0.0
    sums = [_sum_of(stage, trials) for stage in stages]
    seconds = first + max(middle for middle, _ in sums)
    if len(costs) == 1:
        return Duration(seconds, None, None)
    low = first + max(max(middle - half, 0.0) for middle, half in sums)
    return Duration(seconds, low, first + max(middle + half for middle, half in sums))


def _relatives(spec: StudySpec, same: StudyRecord | None, store: Store) -> list[StudyRecord]:
    """The study itself, then those of its name, then those of its objective, the newest first."""
    others = [s for s in reversed(store.studies()) if not s.replayed]
    objective = describe_objective(spec.objective)
    return [
        *([same] if same else []),
        *(s for s in others if s.name == spec.name),
        *(s for s in others if s.objective == objective),
    ]


def _preparers(spec: StudySpec) -> int:
    """How many workers of a session prepare on cores that measure nothing."""
    cores = this_machine(spec.measure.cores)
    return min(len(set(cores.preparing) - set(cores.measuring)), MOST_PREPARERS)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _sum_of(values: Sequence[float], more: int) -> tuple[float, float]:
    """The expected sum of ``more`` values like these, and half of its prediction interval."""
    n, mean = len(values), _mean(values)
    if n == 1:
        return more * mean, 0.0
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    spread = math.sqrt(variance * (more + more**2 / n))
    return more * mean, student_quantile((1 + CONFIDENCE) / 2, n - 1) * spread
