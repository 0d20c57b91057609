"""The story of a trial: what was known when it was proposed, why it was proposed, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autotune.errors import InputError
from autotune.report.knob_views import same_value
from autotune.report.words.reasons import Expectation, expectations, say_reason
from autotune.session.observing import observe_record
from autotune.session.result import better
from autotune.space.configuration import Configuration, plain
from autotune.space.from_document import space_from_document
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status
from autotune.store.records import AskRecord, StudyRecord, TrialRecord
from autotune.store.store import Store

NEIGHBOURS = 5
"""How many of the nearest known results are shown."""
DESCENDANTS = 20
"""How many of the trials that were made from it are shown."""


@dataclass(frozen=True)
class Reasons:
    """Why a trial was proposed, in words, and how its predictions compare with the measurements."""

    because: tuple[str, ...]
    expected: tuple[Expectation, ...]
    numbers: Mapping[str, int]
    """The numbers of the trials that the reason mentions, by the hash of their configuration."""


def reasons_of(store: Store, study: StudyRecord, trial: TrialRecord) -> Reasons:
    """The reason of a trial in words."""
    metrics = [MetricSpec(**metric) for metric in study.metrics]
    hashes = [str(trial.reason[key]) for key in ("parent", "other") if trial.reason.get(key)]
    numbers = store.numbers_of(study.id, hashes)
    said = say_reason(trial.reason, metrics, numbers)
    return Reasons(tuple(said), expectations(trial.reason, metrics, _comparable(trial)), numbers)


def _comparable(trial: TrialRecord) -> Mapping[str, float]:
    """The metrics that can be compared with predictions; none of a trial that failed or was stopped early."""
    observation = observe_record(trial)
    return observation.metrics if observation.fraction == 1.0 else {}


@dataclass(frozen=True)
class Neighbour:
    """A known result near a trial."""

    trial: TrialRecord
    distance: float
    """See :meth:`autotune.Space.distance`: from 0 (the same) to 1."""
    differs: Mapping[str, tuple[object, object]]
    """``{knob: (there, here)}``; ``None`` on a side that does not have the knob."""


@dataclass(frozen=True)
class Knowledge:
    """What the strategy knew when it proposed a trial."""

    session: int
    ask: int
    proposed: int
    """How many trials of the study had been proposed."""
    results: tuple[TrialRecord, ...]
    """The finished trials that it had been told, in that order."""
    incumbent: TrialRecord | None
    """The best of ``results``."""
    paused: int
    """How many trials in flight were paused, so that it knew their value at a rung."""
    neighbours: tuple[Neighbour, ...]
    """The results nearest to the trial, the nearest first."""

    @property
    def in_flight(self) -> int:
        return self.proposed - len(self.results)


@dataclass(frozen=True)
class Story:
    """The story of a trial. ``knew`` is ``None`` for a trial that no strategy proposed."""

    study: StudyRecord
    trial: TrialRecord
    goal: MetricSpec
    reasons: Reasons
    knew: Knowledge | None
    leaned_on: tuple[TrialRecord, ...]
    """The trials that it was made from."""
    sources: Mapping[str, float]
    """Earlier studies that the proposal was based on, with their weights."""
    improved: bool | None
    """Whether it is better than all that was known; ``None`` if it has no value."""
    gain: float | None
    """How many times better than the incumbent it is; ``None`` if there is no ratio."""
    came_of_it: tuple[int, ...]
    """The numbers of the trials that were made from it."""
    again: tuple[TrialRecord, ...]
    """Re-measurements of its configuration in finales, verifications and replays."""


def tell(store: Store, trial: TrialRecord) -> Story:
    """The story of a trial, from what the store knows."""
    study = store.study(trial.study_id)
    goal = study.goals[0]
    everything = store.trials(study.id)
    searched = [other for other in everything if other.purpose == "search"]
    reasons = reasons_of(store, study, trial)
    knew = None if trial.purpose != "search" else _knowledge(store, study, trial, searched, goal)
    named = set(reasons.numbers.values())
    sources = trial.reason.get("sources")
    improved, gain = _standing(trial, knew, goal)
    return Story(
        study=study,
        trial=trial,
        goal=goal,
        reasons=reasons,
        knew=knew,
        leaned_on=tuple(other for other in searched if other.number in named),
        sources=dict(sources) if isinstance(sources, Mapping) else {},
        improved=improved,
        gain=gain,
        came_of_it=tuple(
            t.number for t in searched if trial.hash in (t.reason.get("parent"), t.reason.get("other"))
        ),
        again=tuple(
            t for t in everything if t.hash == trial.hash and t.purpose in ("final", "default") and t != trial
        ),
    )


def _knowledge(
    store: Store, study: StudyRecord, trial: TrialRecord, searched: Sequence[TrialRecord], goal: MetricSpec
) -> Knowledge:
    ask = _ask_of(store, trial)
    told = sorted((t for t in searched if t.told is not None), key=lambda t: t.told or 0)
    known = _told(told, trial, ask)
    proposed = trial.number if ask is None else sum(t.number < ask.trials_known for t in searched)
    return Knowledge(
        session=trial.session_id if ask is None else ask.session_id,
        ask=trial.ask,
        proposed=max(proposed, len(known)),
        results=known,
        incumbent=_best_trial(known, goal),
        paused=_paused(store, study, known, ask),
        neighbours=_neighbours(study, trial, known),
    )


def _told(told: Sequence[TrialRecord], trial: TrialRecord, ask: AskRecord | None) -> tuple[TrialRecord, ...]:
    """The results that were told before the ask; an older autotune only recorded how many."""
    if ask is None:
        return tuple(told[: trial.knew])
    return tuple(t for t in told if (t.told or 0) < ask.results_known)


def results_known(store: Store, trial: TrialRecord) -> int:
    """How many finished trials the strategy had been told when a trial was proposed.

    The trial's ``knew`` may be larger, since strategies are told of paused trials too.
    """
    ask = _ask_of(store, trial)
    if ask is None:
        return trial.knew
    _, results = store.results_from(trial.study_id, 0)
    return sum(result.told < ask.results_known for result in results if not result.paused)


def _ask_of(store: Store, trial: TrialRecord) -> AskRecord | None:
    """The ask that proposed the trial; ``None`` if an older autotune recorded none."""
    return next((ask for ask in store.asks(trial.study_id) if trial.number in ask.trials), None)


def _paused(store: Store, study: StudyRecord, known: Sequence[TrialRecord], ask: AskRecord | None) -> int:
    if ask is None:
        return 0
    _, results = store.results_from(study.id, 0)
    heard = {result.number for result in results if result.paused and result.told < ask.results_known}
    return len(heard - {trial.number for trial in known})


def _neighbours(
    study: StudyRecord, trial: TrialRecord, known: Sequence[TrialRecord]
) -> tuple[Neighbour, ...]:
    try:
        space = space_from_document(study.document["space"])
    except (InputError, KeyError):
        return ()
    near = sorted((_distance(space, other, trial), other.number, other) for other in known)[:NEIGHBOURS]
    return tuple(
        Neighbour(other, distance, differing(other.configuration, trial.configuration))
        for distance, _, other in near
    )


def _distance(space: Space, one: TrialRecord, other: TrialRecord) -> float:
    """The distance of two trials; 1 if one of them is not in the space, which may have changed since."""
    try:
        return space.distance(one.configuration, other.configuration)
    except (InputError, KeyError, ValueError, TypeError):
        return 1.0


def differing(one: Configuration, other: Configuration) -> dict[str, tuple[object, object]]:
    """``{knob: (of one, of other)}`` for each knob with different values; 1 and ``true`` are different."""
    names = dict.fromkeys([*one, *other])
    return {
        name: (plain(one[name]) if name in one else None, plain(other[name]) if name in other else None)
        for name in names
        if (name in one) != (name in other) or not same_value(one[name], other[name])
    }


def _standing(
    trial: TrialRecord, knew: Knowledge | None, goal: MetricSpec
) -> tuple[bool | None, float | None]:
    """Whether the trial is better than the best known then, and how many times."""
    if knew is None or trial.status is not Status.OK or goal.name not in trial.metrics:
        return None, None
    if knew.incumbent is None:
        return True, None
    own, best = (t.metrics[goal.name].value for t in (trial, knew.incumbent))
    gain = (best / own if goal.goal == "minimize" else own / best) if min(own, best) > 0 else None
    return better(goal.direction, own, best), gain


def _best_trial(trials: Sequence[TrialRecord], metric: MetricSpec) -> TrialRecord | None:
    """The trial with the best value of ``metric``, of equal ones the earliest; ``None`` if none has one."""
    usable = [t for t in trials if t.status is Status.OK and metric.name in t.metrics]
    return min(usable, key=lambda t: (metric.sign * t.metrics[metric.name].value, t.number), default=None)
