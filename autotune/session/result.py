"""What a search found, read back from the store: the best configuration and how sure that is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from autotune.errors import InputError
from autotune.measure.outcome import Estimate
from autotune.session.crowded import say_crowded
from autotune.session.same_failure import MISTAKEN
from autotune.space.configuration import Configuration, plain
from autotune.space.from_document import space_from_document
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status
from autotune.store.records import StudyRecord, TrialRecord, VerdictRecord
from autotune.store.store import Store

if TYPE_CHECKING:
    import pandas as pd

EXHAUSTED = "every configuration was tried"
"""The reason of a search that ended before its budget did."""

INTERRUPTED = "interrupted"
"""The reason of a search that somebody ended."""


@dataclass(frozen=True)
class Comparison:
    """A ratio with its confidence interval; above 1 means the winner is better than ``against``."""

    against: str
    estimate: float
    low: float
    high: float

    def to_document(self) -> dict[str, object]:
        return {"against": self.against, "estimate": self.estimate, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Result:
    """The answer of a study. ``best`` is ``None`` where nothing feasible succeeded.

    ``speedup`` compares the winner with the default, ``baselines`` with what an expert library
    gives; both come from the interleaved re-measurement and are missing where there was none.
    """

    study: StudyRecord = field(repr=False)
    store: str
    metric: MetricSpec
    best: Configuration | None
    metrics: Mapping[str, Estimate]
    trial: int | None
    """Number of the trial that found ``best`` in the study."""
    defended: bool
    """Whether ``best`` is the outcome of a re-measurement of the finalists."""
    is_default: bool
    default: Estimate | None = None
    """What the default came to in :attr:`metric`, measured as ``best`` was; ``None`` where it failed."""
    speedup: Comparison | None = None
    gain: Comparison | None = None
    """Where no ratio can be formed, since a value is not above 0: by how much the winner is better than the
    default, in the unit of the metric."""
    baselines: tuple[Comparison, ...] = ()
    statuses: Mapping[str, int] = field(default_factory=dict)
    confidence: float = 0.95
    """Of every interval."""
    reason: str = ""
    """Why the search ended."""
    remark: str = ""
    """What else is to be said of the verdict: no better than the default, nothing to compare with ..."""
    why_nothing: str = ""
    """Where nothing succeeded: the commonest failure, how often it came, and what its first trial said."""
    nobody_stood: bool = False
    """Whether the finalists were measured again, and not one of them has a result; the remark says why."""
    trials: Sequence[TrialRecord] = field(default=(), repr=False)
    outside: int = 0
    """How many of :attr:`trials` the space no longer has: they count for no budget."""

    @property
    def goals(self) -> tuple[MetricSpec, ...]:
        """The metrics with a goal, the first of which judges :attr:`best`."""
        return self.study.goals

    @property
    def front(self) -> tuple[TrialRecord, ...]:
        """The trials that no other beats in every goal, as measured while searching (not measured again)."""
        from autotune.session.front import front_of

        return front_of(self.trials, self.goals)

    @property
    def vendor(self) -> Comparison | None:
        """The comparison with the strongest baseline, the one that is hardest to beat."""
        return min(self.baselines, key=lambda c: c.estimate, default=None)

    @property
    def undefended(self) -> str:
        """What to say of an answer that no finale stands behind; of a defended one it says nothing."""
        return "measured again without success" if self.nobody_stood else "not measured again"

    @property
    def failures(self) -> dict[str, int]:
        """How many trials ended in each kind of failure."""
        return {s: n for s, n in self.statuses.items() if Status(s).failed}

    def frame(self) -> pd.DataFrame:
        """One row a trial: the columns of ``autotune export``."""
        from autotune.store.frames import trials_frame

        return trials_frame(self.study, self.trials)

    def to_document(self) -> dict[str, Any]:
        """The JSON form that ``autotune search --json`` and ``autotune best`` print."""
        vendor = self.vendor
        return {
            "study": self.study.name,
            "study_id": self.study.id,
            "configuration": None if self.best is None else plain(self.best),
            "metrics": {name: estimate_document(e) for name, e in self.metrics.items()},
            "default": estimate_document(self.default) if self.default else None,
            "speedup": self.speedup.to_document() if self.speedup else None,
            "gain": self.gain.to_document() if self.gain else None,
            "vendor": vendor.to_document() if vendor else None,
            "baselines": [c.to_document() for c in self.baselines],
            "trial": self.trial,
            "front": [front_document(t) for t in self.front] if len(self.goals) > 1 else [],
            "defended": self.defended,
            "is_default": self.is_default,
            "trials": sum(self.statuses.values()),
            "statuses": dict(self.statuses),
            "replayed": self.study.replayed,
            "reason": self.reason,
            "remark": self.remark,
            "why_nothing": self.why_nothing,
            "store": self.store,
        }


def front_document(trial: TrialRecord) -> dict[str, Any]:
    """A trial of the front as JSON."""
    metrics = {name: estimate_document(e) for name, e in trial.metrics.items()}
    return {"trial": trial.number, "configuration": plain(trial.configuration), "metrics": metrics}


def estimate_document(estimate: Estimate) -> dict[str, float | int]:
    """``{"value", "low", "high", "n"}``."""
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high, "n": estimate.n}


def better(goal: str, one: float, other: float) -> bool:
    """Whether ``one`` is strictly better than ``other``."""
    return one < other if goal == "minimize" else one > other


def best_trial(trials: Sequence[TrialRecord], metric: MetricSpec) -> TrialRecord | None:
    """The finished trial with the best estimate of ``metric``, the earliest where they tie."""
    usable = [t for t in trials if t.status is Status.OK and metric.name in t.metrics]
    sign = 1 if metric.goal == "minimize" else -1
    return min(usable, key=lambda t: (sign * t.metrics[metric.name].value, t.number), default=None)


def load_result(store: Store, study: StudyRecord, reason: str = "") -> Result:
    """The result of ``study`` as it stands in ``store``, the latest verdict and every trial included."""
    trials, space = store.trials(study.id, purpose="search"), _changed_space(store, study)
    outside = 0 if space is None else sum(trial.configuration not in space for trial in trials)
    answer = load_answer(store, study, reason)
    whole = replace(answer, trials=trials, outside=outside)
    crowded = say_crowded({t.number: t.facts for t in trials})
    if answer.best is None:
        return replace(whole, why_nothing="; ".join(filter(None, (commonest_failure(trials), crowded))))
    return replace(whole, remark="; ".join(filter(None, (answer.remark, crowded))))


def commonest_failure(trials: Sequence[TrialRecord]) -> str:
    """``3 of 4 ended as crashed, as trial 0: ValueError: never``; empty where none failed."""
    failed = [trial for trial in trials if trial.status.failed]
    if not failed:
        return ""
    status, count = Counter(trial.status for trial in failed).most_common(1)[0]
    first = next((t for t in failed if t.status is status and t.message.strip()), None)
    said = f"{count} of {len(trials)} ended as {status}"
    if first is None:
        return said
    return f"{said}, as trial {first.number}: {shorten(first.message, 240, placeholder=' ...')}"


def load_answer(store: Store, study: StudyRecord, reason: str = "") -> Result:
    """The same without the trials, which of a long study take seconds to read."""
    metric = study.goals[0]
    statuses = dict(sorted(store.study(study.id).counts.items()))
    verdicts = store.verdicts(study.id)
    if verdicts and stands(store, study, verdicts[-1]):
        return _defended(store, study, metric, statuses, verdicts[-1], reason)
    found = next(iter(best_trials(store, study, metric, 1)), None)
    fallen = _did_not_stand(verdicts)
    return Result(
        study=study,
        store=store.url,
        metric=metric,
        best=found.configuration if found else None,
        metrics=found.metrics if found else {},
        trial=found.number if found else None,
        defended=False,
        is_default=bool(found and found.reason.get("kind") == "default"),
        default=_default(metric, _searched_default(store, study)) if found else None,
        statuses=statuses,
        reason=reason,
        remark="; ".join(filter(None, (unchecked(study, found.metrics), fallen)))
        if found
        else _nothing(statuses, reason),
        nobody_stood=bool(fallen),
    )


def _default(metric: MetricSpec, runs: Sequence[TrialRecord]) -> Estimate | None:
    """What the last of these runs that succeeded came to."""
    values = [
        run.metrics[metric.name] for run in runs if run.status is Status.OK and metric.name in run.metrics
    ]
    return values[-1] if values else None


def _searched_default(store: Store, study: StudyRecord) -> list[TrialRecord]:
    """The trial of the default while searching, where there was one."""
    try:
        default = space_from_document(study.document["space"]).default()
    except (InputError, KeyError):  # it is not in the space, or the study was written by something else
        return []
    return store.numbered(study.id, [*store.numbers_of(study.id, [default.hash]).values()])


def _defaults_of(store: Store, verdict: VerdictRecord) -> list[TrialRecord]:
    """The runs of the default in the finale of a verdict, without those of replays and verifications."""
    runs = store.trials(verdict.study_id, "default", Status.OK)
    return [run for run in runs if run.session_id == verdict.session_id]


def _did_not_stand(verdicts: Sequence[VerdictRecord]) -> str:
    """Why the last finale has no winner; empty where it has one, or there was none."""
    document = verdicts[-1].document if verdicts else {}
    if not document or document.get("configuration") is not None:
        return ""
    failed = {label: one for label, one in document.get("outcomes", {}).items() if one[0] != Status.OK}
    label, (status, message) = next(
        ((label, one) for label, one in failed.items() if label.startswith("trial ")), ("", ("", ""))
    )
    why = f": {label} ended as {status}" + (f" ({message})" if message else "") if label else ""
    return f"{document.get('remark', '')}{why}"


def _nothing(statuses: Mapping[str, int], reason: str) -> str:
    """Why there is no answer."""
    if reason == EXHAUSTED and not statuses:
        return "no configuration satisfies the constraints; autotune check says what each removes"
    if reason == MISTAKEN:
        return "all trials failed by the same mistake in the code, or for want of the same thing"
    ended = any(Status(status).finished for status in statuses)
    return "no configuration succeeded" if ended else "no trial came to its end"


def stands(store: Store, study: StudyRecord, verdict: VerdictRecord) -> bool:
    """Whether it names a winner, and the space that the study has now still has that."""
    won = verdict.document.get("configuration")
    if won is None:
        return False
    space = _changed_space(store, study)
    return space is None or Configuration(won) in space


def unchecked(study: StudyRecord, measured: Mapping[str, Estimate]) -> str:
    """Which bounds nobody has looked at: a misspelt name would else switch a check off without a word."""
    bounded = [
        m["name"] for m in study.metrics if m.get("at_most") is not None or m.get("at_least") is not None
    ]
    missing = [name for name in bounded if name not in measured]
    return f"nothing reported {', '.join(missing)}, so its bound was not checked" if missing else ""


def best_trials(store: Store, study: StudyRecord, metric: MetricSpec, most: int) -> list[TrialRecord]:
    """At most so many of the trials that succeeded, the best by ``metric`` first, the earlier where they tie.

    Those that the space of the study no longer has are passed over.
    """
    sign = 1 if metric.goal == "minimize" else -1
    values = [one for one in store.values_of(study.id, [metric.name]) if not math.isnan(one[1][0])]
    numbers = [number for number, _ in sorted(values, key=lambda one: (sign * one[1][0], one[0]))]
    space = _changed_space(store, study)
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
"""How many trials of a changed space are looked up at once: of a long study not all are read."""


def _changed_space(store: Store, study: StudyRecord) -> Space | None:
    """The space that the study has now; ``None`` where it never had another, so that all trials are in it."""
    return space_from_document(study.document["space"]) if store.space_revisions(study.id) else None


def space_of(store: Store, verdict: VerdictRecord) -> str:
    """The hash of the space in which a verdict was reached; empty where that is not known."""
    sessions = store.sessions(verdict.study_id)
    return next((str(s.settings.get("space", "")) for s in sessions if s.id == verdict.session_id), "")


def _defended(
    store: Store,
    study: StudyRecord,
    metric: MetricSpec,
    statuses: Mapping[str, int],
    record: VerdictRecord,
    reason: str,
) -> Result:
    verdict = record.document
    configuration = Configuration(verdict["configuration"])
    number = store.numbers_of(study.id, [configuration.hash]).get(configuration.hash)
    found = None if number is None else store.numbered(study.id, [number])[0]
    own = {name: Estimate(**e) for name, e in (verdict.get("metrics") or {}).items()}
    metrics = {**(found.metrics if found else {}), **own}
    return Result(
        study=study,
        store=store.url,
        metric=metric,
        best=configuration,
        metrics=metrics,
        trial=found.number if found else None,
        defended=True,
        is_default=bool(verdict.get("is_default")),
        default=_default(metric, _defaults_of(store, record)),
        speedup=Comparison(**verdict["speedup"]) if verdict.get("speedup") else None,
        gain=Comparison(**verdict["gain"]) if verdict.get("gain") else None,
        baselines=tuple(Comparison(**c) for c in verdict.get("baselines", [])),
        statuses=statuses,
        reason=reason or verdict.get("reason", ""),
        remark="; ".join(
            filter(
                None,
                (
                    verdict.get("remark", ""),
                    unchecked(study, metrics),
                    _since(store, study, metric, record),
                ),
            )
        ),
    )


def _since(store: Store, study: StudyRecord, metric: MetricSpec, verdict: VerdictRecord) -> str:
    """What a search that was broken off has read since that looks better than the winner; else empty."""
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
