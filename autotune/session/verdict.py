"""The verdict on a finale: who won, by how much, and how it stands against the baselines. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from autotune.measure.outcome import Estimate
from autotune.measure.rules.significance import Contestant, Gain, Judgement, Ratio, speedup, winner
from autotune.session.result import estimate_document
from autotune.space.configuration import Configuration, plain
from autotune.space.spec import MetricSpec, ReplayObjective, StudySpec, is_speed


@dataclass(frozen=True)
class Standing:
    """What the finale knows of one contender; ``values`` is empty where it failed."""

    label: str
    configuration: Configuration | None
    """``None`` for a baseline."""
    is_default: bool
    values: tuple[float, ...]
    metrics: Mapping[str, Estimate] = field(default_factory=dict)
    distance: float = 0.0

    def contestant(self, others: Sequence[MetricSpec]) -> Contestant:
        """What is judged; ``others`` are the goals after the first."""
        signed = (_lower_is_better(self.metrics.get(goal.name), goal) for goal in others)
        return Contestant(self.label, self.values, self.distance, tuple(signed))


def judge(spec: StudySpec, standings: Sequence[Standing]) -> dict[str, Any]:
    """The verdict as JSON: winner, its metrics, its speed-up over the default and over each baseline.

    ``configuration`` is ``None`` where no finalist stood the re-measurement, or each has one reading only, as
    in some recordings: ``read_once`` says so.
    """
    first, *others = spec.goals
    goal = first.goal or "minimize"
    confidence = spec.measure.confidence
    within = spec.measure.precision / 2  # what the finale reads each contender to
    default = next((s for s in standings if s.is_default), None)
    finalists = [s for s in standings if s.configuration is not None and not s.is_default]
    try:
        judgement = winner(
            default.contestant(others) if default else None,
            [s.contestant(others) for s in finalists],
            confidence,
            goal=goal,
            within=within,
        )
    except ValueError:
        if any(s.values for s in finalists):
            return {"configuration": None, "read_once": True, "remark": _read_once(spec, default, finalists)}
        return {"configuration": None, "remark": "no finalist could be measured again"}
    won = next(s for s in standings if s.label == judgement.winner)
    assert won.configuration is not None
    return {
        "configuration": plain(won.configuration),
        "label": won.label,
        "is_default": won.is_default,
        "metrics": {name: estimate_document(e) | {"error": e.error} for name, e in won.metrics.items()},
        "speedup": _against("the default", _over_default(judgement, default, won)),
        "baselines": [
            _against(
                s.label, speedup(s.values, won.values, confidence, goal=goal, among=max(len(finalists), 1))
            )
            for s in standings
            if s.configuration is None and len(s.values) > 1 and min(s.values) > 0 and min(won.values) > 0
        ],
        "gain": _against("the default", judgement.gains.get(won.label)),
        "ratios": {label: asdict(ratio) for label, ratio in judgement.ratios.items()},
        "tied": list(judgement.tied),
        "remark": _remark(judgement, default, won, within, [goal.name for goal in others]),
        "confidence": confidence,
    }


def _read_once(spec: StudySpec, default: Standing | None, finalists: Sequence[Standing]) -> str:
    """What is to be said where nothing shows how far readings of one configuration differ."""
    whose = "the recording has" if isinstance(spec.objective, ReplayObjective) else "there is"
    said = f"{whose} one reading of each configuration, so there is no interval and no winner"
    goal = spec.goals[0]
    lower = goal.goal != "maximize"
    best = (min if lower else max)((s for s in finalists if s.values), key=lambda s: s.values[0])
    if default is None or not default.values or min(*default.values, *best.values) <= 0:
        return said
    before, now = default.values[0], best.values[0]
    ratio = before / now if lower else now / before
    how = "fast" if is_speed(goal.goal, goal.unit) else "good"
    return f"{said}; as read, {best.label} is {ratio:.3g} times as {how} as the default"


def _over_default(judgement: Judgement, default: Standing | None, won: Standing) -> Ratio | None:
    """The speed-up of the winner over the default: exactly 1 where the default is the winner."""
    if default is None or not default.values:
        return None
    if won is default:
        return Ratio(1.0, 1.0, 1.0, len(default.values))
    return judgement.ratio


def _against(label: str, ratio: Ratio | Gain | None) -> dict[str, Any] | None:
    if ratio is None:
        return None
    return {"against": label, "estimate": ratio.estimate, "low": ratio.low, "high": ratio.high}


def _lower_is_better(estimate: Estimate | None, goal: MetricSpec) -> tuple[float, float]:
    """Its interval; one that was not read may lie anywhere."""
    if estimate is None:
        return -math.inf, math.inf
    return (-estimate.high, -estimate.low) if goal.goal == "maximize" else (estimate.low, estimate.high)


def _remark(
    judgement: Judgement, default: Standing | None, won: Standing, within: float, others: Sequence[str]
) -> str:
    if default is None:
        return "the default is not feasible: there is nothing to compare with"
    if not default.values:
        return "the default failed: there is nothing to compare with"
    if won is default:
        return "no better than the default: no finalist was shown to be better"
    if judgement.tied:
        tied = ", ".join(label for label in judgement.tied if label != won.label)
        which = f" that none of them beats in {', '.join(others)}" if others else ""
        return (
            f"cannot be told from {tied}; of those within {100 * within:.2g} % of the best{which}"
            " it is the nearest to the default"
        )
    return ""
