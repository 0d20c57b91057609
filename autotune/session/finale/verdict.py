"""The verdict on a finale: who won, by how much, and how the winner compares with the baselines. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from autotune.measure.outcome import Estimate
from autotune.measure.rules.significance import (
    Contestant,
    Gain,
    Judgement,
    Ratio,
    over_runs,
    speedup,
    winner,
)
from autotune.space.configuration import Configuration, plain
from autotune.space.spec import MetricSpec, ReplayObjective, StudySpec, is_speed


@dataclass(frozen=True)
class Standing:
    """What the finale knows of one contender; ``values`` of the first goal are empty if it failed."""

    label: str
    configuration: Configuration | None
    """``None`` for a baseline."""
    is_default: bool
    values: tuple[float, ...]
    metrics: Mapping[str, Estimate] = field(default_factory=dict)
    distance: float = 0.0

    def contestant(self, others: Sequence[MetricSpec]) -> Contestant:
        """The contender as the rules of significance take it; ``others`` are the goals after the first."""
        signed = (_lower_is_better(self.metrics.get(goal.name), goal) for goal in others)
        return Contestant(self.label, self.values, self.distance, tuple(signed))


def judge(spec: StudySpec, standings: Sequence[Standing]) -> dict[str, Any]:
    """The verdict as JSON: winner, its metrics, its speed-up over the default and over each baseline.

    ``configuration`` is ``None`` if all finalists failed, or if each has only one reading, as in some
    recordings; then ``read_once`` is true.
    """
    first, *others = spec.goals
    goal = first.direction
    confidence = spec.measure.confidence
    within = spec.measure.precision / 2  # the precision with which the finale measures each contender
    default = next((s for s in standings if s.is_default), None)
    finalists = _finalists(standings)
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
        "metrics": _metrics(won),
        "speedup": _against("the default", _over_default(judgement, default, won)),
        "baselines": [
            _against(
                s.label, speedup(s.values, won.values, confidence, goal=goal, among=max(len(finalists), 1))
            )
            for s in standings
            if _has_ratios(s, won)
        ],
        "gain": _against("the default", judgement.gains.get(won.label)),
        "ratios": {label: asdict(ratio) for label, ratio in judgement.ratios.items()},
        "tied": list(judgement.tied),
        "remark": _remark(judgement, default, won, within, [goal.name for goal in others]),
        "confidence": confidence,
    }


def after_fresh_runs(
    spec: StudySpec,
    verdict: Mapping[str, Any],
    runs: Sequence[Mapping[str, tuple[float, ...]]],
    standings: Sequence[Standing],
) -> dict[str, Any]:
    """The ``verdict`` after runs of fresh processes, which may overrule its winner.

    ``runs`` has the readings of each run by label: of the winner, of the default, and perhaps of a baseline.
    """
    goal, confidence = spec.goals[0].direction, spec.measure.confidence
    # The winner was picked from so many; that widens the intervals of the finale's readings.
    among = max(len(_finalists(standings)), 1)

    def in_all(standing: Standing) -> bool:
        return all(standing.label in run for run in runs)

    def gain_over(reference: Standing, other: Standing) -> Ratio | Gain:
        """How much better ``other`` is: by the runs, or by the finale if the runs have not read both."""
        if not in_all(reference):
            return speedup(reference.values, other.values, confidence, goal=goal, among=among)
        one, two = ([run[who.label] for run in runs] for who in (reference, other))
        return over_runs(one, two, confidence, goal=goal)

    default = next(s for s in standings if s.is_default)
    won = next(s for s in standings if s.label == verdict["label"])
    found = gain_over(default, won)
    is_ratio = isinstance(found, Ratio)
    holds = found.low > (1.0 if is_ratio else 0.0)
    stays = won if holds else default
    baselines = [s for s in standings if _has_ratios(s, stays)]
    against = {s.label: gain_over(s, stays) for s in baselines}
    before = verdict["speedup"] or verdict["gain"]
    said = {
        **verdict,
        "processes": len(runs),
        "in_one_process": before,
        "strongest": next((s.label for s in baselines if in_all(s)), ""),
        "baselines": [_against(label, ratio) for label, ratio in against.items() if isinstance(ratio, Ratio)],
    }
    gain = _against("the default", found)
    if holds:
        own = {"speedup": gain, "gain": None} if is_ratio else {"speedup": None, "gain": gain}
        return {**said, **own, "metrics": _metrics(won)}
    why = f"{won.label} was {_said(before)} in its first process, and {_said(gain)} in {len(runs)} others"
    return default_stays(said, standings, why)


def default_stays(verdict: Mapping[str, Any], standings: Sequence[Standing], why: str) -> dict[str, Any]:
    """The ``verdict`` with the default instead of a winner that was not confirmed, for the reason ``why``."""
    default = next(s for s in standings if s.is_default)
    assert default.configuration is not None
    return {
        **verdict,
        "configuration": plain(default.configuration),
        "label": default.label,
        "is_default": True,
        "metrics": _metrics(default),
        "speedup": _against("the default", Ratio(1.0, 1.0, 1.0, len(default.values))),
        "gain": None,
        "tied": [],
        "remark": f"no better than the default: {why}",
    }


def _finalists(standings: Sequence[Standing]) -> list[Standing]:
    return [s for s in standings if s.configuration is not None and not s.is_default]


def _has_ratios(baseline: Standing, won: Standing) -> bool:
    """Whether ``baseline`` is one, and its ratio to the one that ``won`` can be formed."""
    return (
        baseline.configuration is None and len(baseline.values) > 1 and min(*baseline.values, *won.values) > 0
    )


def _said(gain: Mapping[str, Any] | None) -> str:
    return f"{gain['estimate']:.3g} [{gain['low']:.3g}, {gain['high']:.3g}]" if gain else "unknown"


def _metrics(standing: Standing) -> dict[str, Any]:
    return {name: asdict(estimate) for name, estimate in standing.metrics.items()}


def _read_once(spec: StudySpec, default: Standing | None, finalists: Sequence[Standing]) -> str:
    """The remark on a finale in which each contender has at most one reading, so its noise is unknown."""
    whose = "the recording has" if isinstance(spec.objective, ReplayObjective) else "there is"
    said = f"{whose} one reading of each finalist, so there is no interval and no winner"
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
    """The speed-up of the winner over the default; exactly 1 if the default is the winner."""
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
    """The interval of ``estimate`` with its sign such that lower is better; infinite if it was not read."""
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
