"""The answer of a study, read back from the store: the latest verdict, or else the best trial."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from autotune.errors import InputError
from autotune.measure.facts import NETWORK, READY_THREADS
from autotune.measure.outcome import Estimate
from autotune.session.caveats import (
    commonest_failure,
    doubtful,
    fallen,
    fell,
    noiseless,
    nothing_found,
    say_further_finales,
    unchecked,
)
from autotune.session.finale.disturbed import say_busy
from autotune.session.finale.drift import say_drift, say_shift
from autotune.session.front import front_numbers, front_of
from autotune.session.remarks.oversubscribed import say_oversubscribed
from autotune.session.remarks.substituted import say_substituted
from autotune.session.result import Comparison, Result, better
from autotune.space.configuration import Configuration
from autotune.space.from_document import space_from_document
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status
from autotune.store.records import StudyRecord, TrialRecord, VerdictRecord
from autotune.store.store import Store


def load_result(store: Store, study: StudyRecord, reason: str = "", session: int | None = None) -> Result:
    """The result of ``study`` by ``store``, with every trial.

    It is the verdict of ``session`` if that has one (another search may have stored its own since), or else
    the latest verdict, or else the best trial. ``reason`` is why the search ended.
    """
    trials, space = store.trials(study.id, purpose="search"), changed_space(store, study)
    outside = 0 if space is None else sum(trial.configuration not in space for trial in trials)
    answer = load_answer(store, study, reason, session)
    whole = replace(answer, trials=trials, outside=outside)
    facts = {trial.number: trial.facts for trial in trials}
    surroundings = say_oversubscribed(facts), say_substituted(facts)
    if answer.best is None:
        return replace(whole, why_nothing=_joined(commonest_failure(trials), *surroundings))
    return replace(whole, remark=_joined(answer.remark, *surroundings))


def load_best(store: Store, study: StudyRecord, *, front: bool) -> Result:
    """The result without its trials, except those on the front if ``front``.

    In a long study the other trials are not read, unless nothing succeeded and the commonest failure has to
    be found.
    """
    answer = load_answer(store, study)
    if answer.best is None:
        return load_result(store, study)
    oversubscribed = say_oversubscribed(dict(store.facts_with(study.id, READY_THREADS)))
    substituted = say_substituted(dict(store.facts_with(study.id, NETWORK)))
    return replace(
        answer,
        remark=_joined(answer.remark, oversubscribed, substituted),
        trials=load_front(store, study) if front else (),
    )


def load_front(store: Store, study: StudyRecord) -> tuple[TrialRecord, ...]:
    """The front of a study; no other trials are read in full, unless its space was changed."""
    space = changed_space(store, study)
    if space is not None:
        own = store.trials(study.id, purpose="search")
        return front_of([trial for trial in own if trial.configuration in space], study.goals)
    numbers = front_numbers(store.values_of(study.id, [goal.name for goal in study.goals]), study.goals)
    return front_of(store.numbered(study.id, numbers), study.goals)


def load_answer(store: Store, study: StudyRecord, reason: str = "", session: int | None = None) -> Result:
    """As :func:`load_result`, without the trials, which take seconds to read in a long study."""
    metric = study.goals[0]
    statuses = dict(sorted(store.study(study.id).counts.items()))
    verdicts = store.verdicts(study.id)
    own = [place for place, verdict in enumerate(verdicts) if verdict.session_id == session]
    verdicts = verdicts[: own[-1] + 1] if own else verdicts
    if verdicts and stands(store, study, verdicts[-1]):
        return _defended(store, study, metric, statuses, verdicts, reason)
    found = next(iter(best_trials(store, study, metric, 1)), None)
    why_fallen = fallen(verdicts)
    read_once = bool(verdicts and verdicts[-1].document.get("read_once"))
    return Result(
        study=study,
        store=store.url,
        metric=metric,
        best=found.configuration if found else None,
        metrics=found.metrics if found else {},
        trial=found.number if found else None,
        defended=False,
        is_default=bool(found and _is_default(store, study, found)),
        default=_default(metric, _searched_default(store, study)) if found else None,
        statuses=statuses,
        confidence=study.confidence,
        reason=reason,
        remark=_joined(unchecked(study, found.metrics), doubtful(study, found.metrics), why_fallen)
        if found
        else nothing_found(statuses, reason, bool(store.space_revisions(study.id))),
        nobody_stood=bool(why_fallen) and not read_once,
        read_once=read_once,
    )


def _default(metric: MetricSpec, runs: Sequence[TrialRecord]) -> Estimate | None:
    """The value of ``metric`` in the last of ``runs`` that succeeded."""
    values = [
        run.metrics[metric.name] for run in runs if run.status is Status.OK and metric.name in run.metrics
    ]
    return values[-1] if values else None


def _searched_default(store: Store, study: StudyRecord) -> list[TrialRecord]:
    """The search trial of the default, if there is one."""
    default = default_in(study)
    if default is None:
        return []
    return store.numbered(study.id, [*store.numbers_of(study.id, [default.hash]).values()])


def _is_default(store: Store, study: StudyRecord, trial: TrialRecord) -> bool:
    """Whether ``trial`` is of the present default of the space, which may have had another one before."""
    default = default_in(study) if store.space_revisions(study.id) else None
    return trial.reason.get("kind") == "default" if default is None else trial.configuration == default


def default_in(study: StudyRecord) -> Configuration | None:
    """The default of the study's space; ``None`` if it is not feasible or the space cannot be read."""
    try:
        return space_from_document(study.document["space"]).feasible_default()
    except (InputError, KeyError):
        return None


def _defaults_of(store: Store, verdict: VerdictRecord) -> list[TrialRecord]:
    """The runs of the default in the finale of a verdict, without those of replays and verifications."""
    runs = store.trials(verdict.study_id, "default", Status.OK)
    return [run for run in runs if run.session_id == verdict.session_id]


def stands(store: Store, study: StudyRecord, verdict: VerdictRecord) -> bool:
    """Whether ``verdict`` names a winner that the study's present space still contains."""
    won = verdict.document.get("configuration")
    if won is None:
        return False
    space = changed_space(store, study)
    return space is None or Configuration(won) in space


def best_trials(store: Store, study: StudyRecord, metric: MetricSpec, most: int) -> list[TrialRecord]:
    """The ``most`` best trials that succeeded, the best by ``metric`` first, of equal ones the earlier.

    Trials that the study's present space does not contain are left out.
    """
    values = [one for one in store.values_of(study.id, [metric.name]) if not math.isnan(one[1][0])]
    numbers = [number for number, _ in sorted(values, key=lambda one: (metric.sign * one[1][0], one[0]))]
    space = changed_space(store, study)
    at_once = most if space is None else max(most, _AT_ONCE)
    best: list[TrialRecord] = []
    for first in range(0, len(numbers), at_once):
        found = {t.number: t for t in store.numbered(study.id, numbers[first : first + at_once])}
        some = (found[number] for number in numbers[first : first + at_once] if number in found)
        best += [trial for trial in some if space is None or trial.configuration in space]
        if len(best) >= most:
            break
    return best[:most]


_AT_ONCE = 100
"""How many trials of a changed space are read at once, so that not all of a long study are read."""


def changed_space(store: Store, study: StudyRecord) -> Space | None:
    """The study's present space; ``None`` if it was never changed, so that it contains all trials."""
    return space_from_document(study.document["space"]) if store.space_revisions(study.id) else None


def is_settled(store: Store, verdict: VerdictRecord, space: Space) -> bool:
    """Whether the finale of a verdict need not be repeated: nobody was lost in it, and it was of ``space``.

    Who was lost may have been the best. In another space the default, and the same number of results, may be
    other ones.
    """
    if any(status == Status.LOST for status, _ in verdict.document.get("outcomes", {}).values()):
        return False
    sessions = store.sessions(verdict.study_id)
    return any(s.id == verdict.session_id and s.settings.get("space") == space.hash for s in sessions)


def _defended(
    store: Store,
    study: StudyRecord,
    metric: MetricSpec,
    statuses: Mapping[str, int],
    verdicts: Sequence[VerdictRecord],
    reason: str,
) -> Result:
    record = verdicts[-1]
    verdict = record.document
    configuration = Configuration(verdict["configuration"])
    number = store.numbers_of(study.id, [configuration.hash]).get(configuration.hash)
    found = None if number is None else store.numbered(study.id, [number])[0]
    own = {name: Estimate(**e) for name, e in (verdict.get("metrics") or {}).items()}
    metrics = {**(found.metrics if found else {}), **own}
    confidence = float(verdict.get("confidence", study.confidence))
    same_kind = [one.document for one in verdicts if one.across == record.across]
    default = _default(metric, _defaults_of(store, record))
    busy = say_busy(verdict.get("waited", 0.0), verdict.get("stalled", 0.0))
    read = [] if study.replayed else [one for one in (own.get(metric.name), default) if one]
    return Result(
        study=study,
        store=store.url,
        metric=metric,
        best=configuration,
        metrics=metrics,
        trial=found.number if found else None,
        defended=True,
        is_default=bool(verdict.get("is_default")),
        default=default,
        speedup=Comparison(**verdict["speedup"]) if verdict.get("speedup") else None,
        gain=Comparison(**verdict["gain"]) if verdict.get("gain") else None,
        baselines=tuple(Comparison(**c) for c in verdict.get("baselines", [])),
        strongest=str(verdict.get("strongest", "")),
        statuses=statuses,
        confidence=confidence,
        processes=int(verdict.get("processes", 1)),
        reason=reason or verdict.get("reason", ""),
        busy=busy,
        remark=_joined(
            verdict.get("remark", ""),
            fell(verdict),
            say_further_finales(same_kind, confidence),
            busy,
            say_drift(verdict.get("drift", 1.0)),
            say_shift(verdict.get("shift", 1.0)),
            unchecked(study, metrics),
            doubtful(study, metrics),
            noiseless(metric, read),
            _since(store, study, metric, record),
        ),
    )


def _since(store: Store, study: StudyRecord, metric: MetricSpec, verdict: VerdictRecord) -> str:
    """A remark on a trial since the verdict that looks better than the winner; empty if there is none."""
    if max(store.last_finished(study.id).values(), default=0.0) <= verdict.created_at:
        return ""
    won = (verdict.document.get("metrics") or {}).get(metric.name)
    for trial in best_trials(store, study, metric, 1):
        value = trial.metrics[metric.name].value
        later = (trial.finished_at or 0.0) > verdict.created_at
        if later and won is not None and better(str(metric.goal), value, won["value"]):
            read = f"{value:.4g} {metric.unit}".rstrip()
            return f"trial {trial.number} was read at {read} since, but not measured again: search on"
    return ""


def _joined(*remarks: str) -> str:
    """The remarks that are not empty, as one text."""
    return "; ".join(filter(None, remarks))
