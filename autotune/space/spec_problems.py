"""What is wrong with a study that was written in Python; of a file the reader says it, with the place."""

from __future__ import annotations

from collections.abc import Iterator

from autotune.errors import Problem, nearest
from autotune.space.reading.early_stopping import POLICIES
from autotune.space.reading.metrics import NAME as METRIC_NAME
from autotune.space.reading.reader import NAME
from autotune.space.spec import EarlyStopping, MetricSpec, StudySpec

GOALS = ("minimize", "maximize")


def spec_problems(spec: StudySpec) -> Iterator[Problem]:
    """What the reader of space files would not have let pass."""
    if not isinstance(spec.name, str) or not NAME.fullmatch(spec.name):
        yield Problem(f"{spec.name!r:.60} cannot name a study", None, "letters, digits, _ . -, at most 100")
    strange = [metric for metric in spec.metrics if not isinstance(metric, MetricSpec)]
    if strange:
        yield Problem(f"a metric is {strange[0]!r:.60}", None, "MetricSpec('loss', 'minimize'), say")
        return
    yield from _metric_problems(spec.metrics)
    if spec.search.early_stopping is not None:
        yield from _stopping_problems(spec.search.early_stopping, [metric.name for metric in spec.goals])


def _metric_problems(metrics: tuple[MetricSpec, ...]) -> Iterator[Problem]:
    names = [metric.name for metric in metrics]
    for place, metric in enumerate(metrics):
        if not METRIC_NAME.fullmatch(metric.name):
            yield Problem(f"{metric.name!r:.60} cannot name a metric", None, "letters, digits, _ . -")
        if metric.name in names[:place]:
            yield Problem(f"there are two metrics {metric.name!r}", None, "one of each name")
        if metric.goal not in (None, *GOALS):
            hint = nearest(str(metric.goal), GOALS)
            yield Problem(f"the goal of {metric.name} is {metric.goal!r:.60}", None, " or ".join(GOALS), hint)
    if not any(metric.goal for metric in metrics):
        yield Problem("no metric has a goal", None, "at least one, as MetricSpec('loss', 'minimize') has it")


def _stopping_problems(settings: EarlyStopping, goals: list[str]) -> Iterator[Problem]:
    if settings.policy not in POLICIES:
        hint = nearest(settings.policy, POLICIES)
        yield Problem(
            f"the policy of early stopping is {settings.policy!r:.60}", None, ", ".join(POLICIES), hint
        )
    if settings.metric and settings.metric not in goals:
        hint = nearest(settings.metric, goals)
        expected = f"a metric with a goal: {', '.join(goals)}"
        yield Problem(f"early stopping judges by {settings.metric!r:.60}", None, expected, hint)
    if not 1 <= settings.min < settings.max or settings.factor < 2:
        said = f"min {settings.min}, max {settings.max}, factor {settings.factor}"
        yield Problem(
            f"early stopping has {said}", None, "1 or more, more than min, and a factor of 2 or more"
        )
