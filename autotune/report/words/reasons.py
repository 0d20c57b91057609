"""Why a configuration was proposed, in words, and how its predictions compare with the measurements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotune.report.numbers import say_count, say_seconds, say_value
from autotune.space.spec import MetricSpec

Document = Mapping[str, Any]
Numbers = Mapping[str, int]
"""A trial's number by the hash of its configuration."""

MODELLED = ("expected improvement", "large improvement", "expected hypervolume improvement")

PARTS = ("predicted", "spread", "logarithmic")
"""The keys of a reason with a model's prediction of a metric."""

KINDS: Mapping[str, str] = {
    "default": "the default: what is used today is tried first",
    "given": "named by the study as worth a try: search.first",
    "enqueued": "named by the caller while the session ran: enqueue",
    "initial": "one of the first tries, spread out before there is a model",
    "uniform": "drawn at random from what was not tried yet",
    "newcomer": "drawn at random: too little was known, or nothing new could be made from it",
    "way out": "drawn at random: the last tries brought nothing better, so the model is not trusted alone",
    "towards a success": "the likeliest to succeed, since nothing has succeeded yet",
    "best elsewhere": "the best of what was tried in earlier studies",
    "switch turned": "the best with one switch (a flag or a choice) changed, as earlier studies suggest",
    "expected improvement": "the largest improvement that the model expects",
    "large improvement": "a way out of tries that brought nothing better: the model was asked for much more",
    "expected hypervolume improvement": "the largest extension of the front that the model expects",
    "grid": "the next point of the grid",
    "mutation": "a mutation",
    "crossover": "a crossing",
    "drawn": "drawn from the policy",
    "near": "a few steps from a draw of the policy, since all its draws had been tried",
    "sampled": "drawn by the sampler",
    "projected": "the feasible and untried configuration nearest to a draw of the sampler",
    "re-measurement": "measured again for the final comparison",
}
"""Sentences for the kinds of proposals. Other kinds are shown by their names."""


@dataclass(frozen=True)
class Expectation:
    """The prediction of one metric of a trial, and its measured value."""

    metric: str
    unit: str
    predicted: float
    low: float
    high: float
    """One predicted standard deviation below and above."""
    measured: float | None
    off: float | None
    """By how many predicted standard deviations the measured value is better; below 0 it is worse."""

    def say(self) -> str:
        """``time 3.2 ms (68%: 2.8 ms to 3.7 ms); measured 3.1 ms, better than predicted by 0.2 standard
        deviations``."""
        low, high = say_value(self.low, self.unit, 3), say_value(self.high, self.unit, 3)
        text = f"{self.metric} {say_value(self.predicted, self.unit)} (68%: {low} to {high})"
        if self.measured is None or self.off is None:
            return text
        direction = "better" if self.off >= 0 else "worse"
        off = f"{direction} than predicted by {abs(self.off):.1f} standard deviations"
        if round(abs(self.off), 1) == 0.0:
            off = "as predicted"
        return f"{text}; measured {say_value(self.measured, self.unit)}, {off}"


def expectations(
    reason: Document, metrics: Sequence[MetricSpec], measured: Mapping[str, float]
) -> tuple[Expectation, ...]:
    """The predictions in ``reason`` for each goal, with the ``measured`` values; empty if it has none."""
    goals = [metric for metric in metrics if metric.goal]
    found = []
    for goal in goals:
        predicted, spread, logarithmic = (_of(reason.get(part), goal, goals) for part in PARTS)
        if None not in (predicted, spread, logarithmic):
            found.append(_expectation(goal, predicted, spread, logarithmic, measured.get(goal.name)))
    return tuple(found)


_MOST = 700.0
"""The largest logarithm whose number is shown: of 710 there is none."""


def _of(part: Any, goal: MetricSpec, goals: Sequence[MetricSpec]) -> Any:
    """The entry of a reason's part for one goal; a part that is no mapping is for the first goal."""
    if isinstance(part, Mapping):
        return part.get(goal.name)
    return part if goal is goals[0] else None


def _expectation(
    goal: MetricSpec, predicted: float, spread: float, logarithmic: bool, measured: float | None
) -> Expectation:
    if logarithmic:
        factor = math.exp(min(abs(spread), _MOST))
        low, high = predicted / factor, predicted * factor
        usable = measured is not None and measured > 0.0 and predicted > 0.0
        apart = math.log(measured) - math.log(predicted) if measured is not None and usable else None
    else:
        low, high = predicted - spread, predicted + spread
        apart = None if measured is None else measured - predicted
    off = None if apart is None or spread <= 0.0 else -goal.sign * apart / spread
    return Expectation(goal.name, goal.unit, predicted, min(low, high), max(low, high), measured, off)


def say_reason(reason: Document, metrics: Sequence[MetricSpec], numbers: Numbers | None = None) -> list[str]:
    """The reason in words, as several lines. ``numbers`` has the numbers of the trials that it mentions."""
    if not reason:
        return ["nobody proposed it"]
    kind = str(reason.get("kind", "unknown"))
    detail = DETAILS.get(kind)
    goal = next((metric for metric in metrics if metric.goal), MetricSpec("value", "minimize"))
    text = KINDS.get(kind, kind)
    if detail is not None:
        text += detail(reason, goal, numbers or {})
    strategy = reason.get("strategy")
    return [f"{text} ({strategy})" if strategy else text, *_beside(reason)]


def _beside(reason: Document) -> Iterator[str]:
    """Lines on entries of a reason that do not depend on its kind."""
    if {"arm", "score", "credit", "uses"} <= reason.keys():
        yield (
            f"arm {reason['arm']}: drew {reason['score']:.2f}, the highest; its credit was"
            f" {reason['credit']:.2f} from {reason['uses']} of the latest tries"
        )
    if isinstance(sources := reason.get("sources"), Mapping):
        weights = ", ".join(f"{label} (weight {weight:.2f})" for label, weight in sources.items())
        yield f"leaning on {'study' if len(sources) == 1 else 'studies'} {weights}"
    if (success := reason.get("success", 1.0)) < 0.995:
        yield f"expected to succeed with a probability of {success:.0%}"
    if "start" in reason:
        yield f"start {reason['start']}: the search had come to a standstill, and began anew"
    if "seconds" in reason:
        yield f"expected to take {say_seconds(reason['seconds'])}"


def _modelled(reason: Document, goal: MetricSpec, numbers: Numbers) -> str:
    """Whether the predicted value is an improvement (exploiting), or only its uncertainty (exploring)."""
    best, predicted = reason.get("best"), reason.get("predicted")
    if best is None or not isinstance(predicted, float):
        return ""
    better = predicted > best if goal.goal == "maximize" else predicted < best
    than = f"than the best so far, {say_value(best, goal.unit)}"
    if better:
        return f"; exploiting: predicted to be better {than}"
    return f"; exploring: predicted to be worse {than}, but unsure"


def _bred(reason: Document, goal: MetricSpec, numbers: Numbers) -> str:
    parent, other = (_trial(reason.get(key), numbers) for key in ("parent", "other"))
    metric = reason.get("parent_metric")
    if isinstance(metric, (int, float)):
        parent += f" ({goal.name} {say_value(metric, goal.unit)})"
    return f" of {parent} with {other}" if "other" in reason else f" of {parent}"


def _trial(digest: object, numbers: Numbers) -> str:
    number = numbers.get(str(digest))
    return f"configuration {digest}" if number is None else f"trial {number}"


def _policy(reason: Document, goal: MetricSpec, numbers: Numbers) -> str:
    """The chance of the draw. Of knobs with ranges it is a density, which may be above 1."""
    chance = reason.get("log_probability")
    if chance is None:
        return ""
    what = "probability density" if chance > 0.0 else "probability"
    return f"; its {what} was {math.exp(min(chance, _MOST)):.2g}"


def _level(reason: Document, goal: MetricSpec, numbers: Numbers) -> str:
    return f", refined {say_count(reason['level'], 'time')}" if reason.get("level") else ""


def _label(reason: Document, goal: MetricSpec, numbers: Numbers) -> str:
    return f" as {reason['label']}" if "label" in reason else ""


DETAILS: Mapping[str, Callable[[Document, MetricSpec, Numbers], str]] = {
    **dict.fromkeys(MODELLED, _modelled),
    "mutation": _bred,
    "crossover": _bred,
    "drawn": _policy,
    "near": _policy,
    "grid": _level,
    "re-measurement": _label,
}
"""For some kinds, a function that completes the sentence."""
