"""What a search found: the best configuration and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from autotune.measure.outcome import Estimate
from autotune.space.configuration import Configuration, plain
from autotune.space.from_document import space_from_document
from autotune.space.spec import MetricSpec
from autotune.status import Status
from autotune.store.records import StudyRecord, TrialRecord

if TYPE_CHECKING:
    import pandas as pd

EXHAUSTED = "every configuration was tried"
"""The reason of a search that ended before its budget did."""

INTERRUPTED = "interrupted"
"""The reason of a search that the user ended."""


@dataclass(frozen=True)
class Comparison:
    """A ratio with its confidence interval; above 1 means the winner is better than ``against``."""

    against: str
    estimate: float
    low: float
    high: float

    @property
    def interval(self) -> tuple[float, float, float]:
        """Estimate and ends."""
        return self.estimate, self.low, self.high

    def to_document(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True)
class Result:
    """The answer of a study. ``best`` is ``None`` if nothing feasible succeeded.

    ``speedup`` compares the winner with the default, ``baselines`` compare it with expert libraries. Both
    come from the finale, and are missing if there was none.
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
    """The default's value of :attr:`metric`, measured as ``best`` was; ``None`` if it has none."""
    speedup: Comparison | None = None
    gain: Comparison | None = None
    """By how much the winner is better than the default, in the unit of the metric; set instead of
    ``speedup`` if a value is not above 0, so that there is no ratio."""
    baselines: tuple[Comparison, ...] = ()
    strongest: str = ""
    """The baseline that was read in fresh processes too, since it was the strongest; empty if none was."""
    statuses: Mapping[str, int] = field(default_factory=dict)
    confidence: float = 0.95
    """The confidence of every interval, as ``measure`` in the space file asks for."""
    processes: int = 1
    """In how many runs, each with fresh processes, the ratios were measured."""
    reason: str = ""
    """Why the search ended."""
    remark: str = ""
    """Caveats of the answer: no better than the default, nothing to compare with ..."""
    busy: str = ""
    """The part of the remark that says how busy the machine was when finalists were measured; else empty."""
    why_nothing: str = ""
    """If nothing succeeded: the commonest failure, how often it occurred, and its first message."""
    nobody_stood: bool = False
    """Whether the finalists were measured again and none of them has a result; the remark says why."""
    read_once: bool = False
    """Whether they cannot be measured again, since a recording has one reading of each (see the remark)."""
    trials: Sequence[TrialRecord] = field(default=(), repr=False)
    outside: int = 0
    """How many of :attr:`trials` the space no longer contains; they do not count for the budget."""

    @property
    def goals(self) -> tuple[MetricSpec, ...]:
        """The metrics with a goal, the first of which judges :attr:`best`."""
        return self.study.goals

    @property
    def front(self) -> tuple[TrialRecord, ...]:
        """The trials that no other beats in every goal, as measured while searching (not measured again).

        Of those that the study's present space contains.
        """
        from autotune.session.front import front_of

        inside = self.trials
        if self.outside:
            space = space_from_document(self.study.document["space"])
            inside = [trial for trial in inside if trial.configuration in space]
        return front_of(inside, self.goals)

    @property
    def vendor(self) -> Comparison | None:
        """The comparison with the strongest baseline.

        If one was read in fresh processes, it is that one: ratios from a single process are less certain.
        """
        return min(self.baselines, key=lambda c: (c.against != self.strongest, c.estimate), default=None)

    @property
    def only_default(self) -> bool:
        """Whether only the default succeeded, so that there is nothing to compare it with."""
        at_work = {Status.WAITING, Status.RUNNING} & set(self.statuses)
        return not self.defended and self.is_default and self.statuses.get(Status.OK) == 1 and not at_work

    @property
    def undefended(self) -> str:
        """Why an answer is not defended, in words; only meaningful if :attr:`defended` is false."""
        if self.only_default:
            return self._others
        return "measured again without success" if self.nobody_stood else "not measured again"

    @property
    def _others(self) -> str:
        """What happened to all trials but the default's; a pruned trial neither failed nor succeeded."""
        if sum(self.statuses.values()) == 1:
            return "nothing else was tried"
        if not self.statuses.get(Status.PRUNED):
            return "nothing else succeeded"
        return f"all others {'failed or ' if self.failures else ''}were pruned"

    @property
    def failures(self) -> dict[str, int]:
        """How many trials ended in each kind of failure."""
        return {s: n for s, n in self.statuses.items() if Status(s).failed}

    def frame(self) -> pd.DataFrame:
        """A row for each trial, with the columns of ``autotune export``."""
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
            "processes": self.processes,
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
