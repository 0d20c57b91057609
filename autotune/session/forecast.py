"""How long a search will take, judged by what the trials of earlier searches took."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from autotune.measure.cores.pinning import this_machine
from autotune.measure.loading.sources import source_files
from autotune.measure.rules.statistics import student_quantile
from autotune.provenance.code.frozen import source_hash
from autotune.provenance.environment import capture
from autotune.session.execution.crew import MOST_PREPARERS
from autotune.session.finale.fresh_processes import seconds_for
from autotune.session.finale.rounds import Rounds
from autotune.session.opening.identity import describe_objective, identify
from autotune.space.spec import Budget, CommandObjective, Family, ReplayObjective, StudySpec
from autotune.store.records import StudyRecord, TrialRecord
from autotune.store.store import Store

CONFIDENCE = 0.95
"""The confidence of the prediction interval."""
ENDLESS = 10**6
"""A space with more configurations does not bound a search: nobody waits until all of them were tried."""


@dataclass(frozen=True)
class Cost:
    """Seconds that one finished trial took, failed or not."""

    prepare: float
    """May overlap other trials."""
    measure: float
    """Everything after preparing: load, check, warm up, read. One trial at a time."""


@dataclass(frozen=True)
class Duration:
    """A time in seconds with its prediction interval, which is ``None`` if only one trial is known."""

    seconds: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Forecast:
    """How long the search that a space file describes is likely to take on this machine."""

    trials: int | None
    """How many trials are left; ``None`` if neither the budget nor the space bounds them."""
    duration: Duration | None
    """How long they take; ``None`` if ``trials`` is."""
    each: Cost
    """The mean cost of the earlier trials."""
    known: int
    """The number of earlier trials."""
    study: str
    """The study of the earlier trials, as ``name#id``."""
    differs: tuple[str, ...]
    """How that study differs from this one (``source``, ``workload``, ``machine`` ...)."""

    def to_document(self) -> dict[str, Any]:
        return asdict(self)


def foresee(spec: StudySpec, store: Store) -> Forecast | None:
    """The forecast for this machine, from the finished trials of the study that ``spec`` would go on with.

    If it has none, they are taken from the newest study with its name, or else with its objective. ``None``
    if there are no such trials. Replayed studies are left out: they say nothing about this machine.
    """
    machine = capture(spec.source.parent if spec.source else None).machine_key
    identity = identify(spec, source_hash(source_files(spec.objective)), machine)
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
    """About how many seconds the finale takes after a search with a budget of time, if readings are quick.

    With several workloads, each has a finale in its share of the time, and then the winners of all are
    measured on each. ``None`` without a budget of time, since it then depends on how long the search takes.
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
    """How many trials the budget and the space allow after ``tried``; ``None`` if neither bounds them."""
    size = None if spec.space.continuous else spec.space.feasible.size
    if size is not None and size > ENDLESS:
        size = None
    most = min((n for n in (spec.budget.trials, size) if n is not None), default=None)
    return None if most is None else max(most - tried, 0)


def _tried(spec: StudySpec, store: Store, study: StudyRecord) -> int:
    """How many trials of the study count for the budget: those that the space still contains."""
    if study.space_hash == spec.space.hash:
        return sum(study.counts.values())
    return sum(trial.configuration in spec.space for trial in store.trials(study.id, purpose="search"))


def cost_of(trial: TrialRecord) -> Cost:
    prepare = trial.phases.get("prepare", 0.0)
    return Cost(prepare, sum(trial.phases.values()) - prepare)


def mean_cost(costs: Sequence[Cost]) -> Cost:
    return Cost(statistics.fmean(c.prepare for c in costs), statistics.fmean(c.measure for c in costs))


def duration(costs: Sequence[Cost], trials: int, preparers: int) -> Duration:
    """How long ``trials`` more will take if ``preparers`` workers prepare while one trial is measured. Pure.

    With 0 preparers nothing overlaps. Otherwise the slower of the two stages sets the pace, once the first
    trial is prepared. The range is the 95 % prediction interval of Student's t for a sum of further trials:
    trials vary, and their mean is only estimated from ``costs``. Raises ``ValueError`` without costs.
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
    """How many workers of a session prepare on cores that are not measured on."""
    cores = this_machine(spec.measure.cores)
    return min(len(set(cores.preparing) - set(cores.measuring)), MOST_PREPARERS)


def _sum_of(values: Sequence[float], more: int) -> tuple[float, float]:
    """The expected sum of ``more`` values like these, and half of its prediction interval."""
    n, mean = len(values), statistics.fmean(values)
    if n == 1:
        return more * mean, 0.0
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    spread = math.sqrt(variance * (more + more**2 / n))
    return more * mean, student_quantile((1 + CONFIDENCE) / 2, n - 1) * spread
