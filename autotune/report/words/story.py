"""The story of a trial: what was known when it was proposed, why it was proposed, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from heapq import nsmallest

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
from autotune.store.records import AskRecord, Purpose, StudyRecord, TrialRecord
from autotune.store.store import Store

NEIGHBOURS = 5
"""How many of the nearest known results are shown."""
DESCENDANTS = 20
"""How many of the trials that were made from it are shown."""

_AGAIN: tuple[Purpose, ...] = ("final", "default")


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
    results: int
    """How many finished trials it had been told."""
    incumbent: TrialRecord | None
    """The best of them."""
    paused: int
    """How many trials in flight were paused, so that it knew their value at a rung."""
    neighbours: tuple[Neighbour, ...]
    """The results nearest to the trial, the nearest first."""

    @property
    def in_flight(self) -> int:
        return self.proposed - self.results


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
    reasons = reasons_of(store, study, trial)
    knew = None if trial.purpose != "search" else _knowledge(store, study, trial, goal)
    named = store.numbered(study.id, sorted(set(reasons.numbers.values())))
    again = [t for purpose in _AGAIN for t in store.trials(study.id, purpose) if t.hash == trial.hash]
    sources = trial.reason.get("sources")
    improved, gain = _standing(trial, knew, goal)
    return Story(
        study=study,
        trial=trial,
        goal=goal,
        reasons=reasons,
        knew=knew,
        leaned_on=tuple(named),
        sources=dict(sources) if isinstance(sources, Mapping) else {},
        improved=improved,
        gain=gain,
        came_of_it=tuple(store.made_from(study.id, trial.hash)),
        again=tuple(sorted((t for t in again if t.id != trial.id), key=lambda t: t.number)),
    )


def _knowledge(store: Store, study: StudyRecord, trial: TrialRecord, goal: MetricSpec) -> Knowledge:
    ask = _ask_of(store, trial)
    known, paused = _known(store, trial, ask)
    proposed = dict(store.proposed_from(study.id, 0)[1])
    before = trial.number if ask is None else sum(number < ask.trials_known for number in proposed)
    tried = {number: proposed[number] for number in known if number in proposed}
    return Knowledge(
        session=trial.session_id if ask is None else ask.session_id,
        ask=trial.ask,
        proposed=max(before, len(known)),
        results=len(known),
        incumbent=_best_trial(store, study, tried, goal),
        paused=len(paused),
        neighbours=_neighbours(store, study, trial, tried),
    )


def _known(store: Store, trial: TrialRecord, ask: AskRecord | None) -> tuple[list[int], set[int]]:
    """The numbers of the trials whose results had been told before the ask, and of those paused then.

    If no ask was recorded, it is only known how many results had been told.
    """
    if ask is None:
        return store.heard_before(trial.study_id, None)[0][: trial.knew], set()
    return store.heard_before(trial.study_id, ask.results_known)


def results_known(store: Store, trial: TrialRecord) -> int:
    """How many finished trials the strategy had been told when a trial was proposed.

    The trial's ``knew`` may be larger, since strategies are told of paused trials too.
    """
    ask = _ask_of(store, trial)
    return trial.knew if ask is None else len(_known(store, trial, ask)[0])


def _ask_of(store: Store, trial: TrialRecord) -> AskRecord | None:
    """The ask that proposed the trial; ``None`` if none is recorded."""
    asks = store.asks(trial.study_id, trial.ask)
    return next((ask for ask in asks if trial.number in ask.trials), None)


def _neighbours(
    store: Store, study: StudyRecord, trial: TrialRecord, tried: Mapping[int, Configuration]
) -> tuple[Neighbour, ...]:
    try:
        space = space_from_document(study.document["space"])
    except (InputError, KeyError):
        return ()
    distance = _distances(space, trial)
    nearest = nsmallest(NEIGHBOURS, ((distance(other), number) for number, other in tried.items()))
    found = {other.number: other for other in store.numbered(study.id, [number for _, number in nearest])}
    return tuple(
        Neighbour(found[number], far, differing(found[number].configuration, trial.configuration))
        for far, number in nearest
    )


def _distances(space: Space, trial: TrialRecord) -> Callable[[Configuration], float]:
    """The distance of a configuration to the trial's: 1 where the space cannot tell."""
    known = space.distances_to(trial.configuration)

    def distance(other: Configuration) -> float:
        try:
            return known(other)
        except (InputError, KeyError, ValueError, TypeError):
            return 1.0

    return distance


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


def _best_trial(
    store: Store, study: StudyRecord, tried: Mapping[int, Configuration], metric: MetricSpec
) -> TrialRecord | None:
    """The trial with the best value of ``metric``, of equal ones the earliest; ``None`` if none has one."""
    values = (
        (metric.sign * value, n) for n, (value,) in store.values_of(study.id, [metric.name]) if n in tried
    )
    best = min(values, default=None)
    return None if best is None else store.numbered(study.id, [best[1]])[0]
