"""The entry ``metrics`` of a command in a space file: where the numbers are read."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from autotune.errors import InputError, Location, Problem, nearest, shorten
from autotune.space.reading.converters import mapping, text
from autotune.space.reading.fields import Fields, Problems, as_map, wrong
from autotune.space.reading.yaml_nodes import YamlMap, YamlNode, YamlScalar
from autotune.space.spec import TIMES, MetricSpec

_FORM = "json-line, wall, {file: NAME} or {pattern: {METRIC: 'regular expression'}}"
_HABITS = {
    **dict.fromkeys(("json", "json-line", "stdout"), "metrics: json-line, the default, reads what it prints"),
    **dict.fromkeys(("wall", "wall_time", "time"), "metrics: wall times the program"),
    **dict.fromkeys(("regex", "regexp", "re"), "{pattern: {METRIC: 'regular expression'}}"),
}
"""What to write instead of other people's keys."""


@dataclass(frozen=True)
class MetricsSource:
    """``command.metrics`` as it is written, and the metrics that the study has."""

    node: YamlNode | None
    metrics: tuple[MetricSpec, ...]
    problems: Problems
    check: Callable[[str, YamlNode], str]
    """Reports placeholders in a text that stand for nothing, and returns the text."""

    def read(self) -> dict[str, Any]:
        """The fields of :class:`CommandObjective` that say where its metrics are read."""
        match self.node:
            case None:
                return {}
            case YamlScalar(value="json-line"):
                return {"metrics_from": "json-line"}
            case YamlScalar(value="wall"):
                self.one_goal(self.node.where)
                return {"metrics_from": "wall"}
            case YamlMap(entries=entries) if entries:
                return self.mapped(self.node)
        hint = nearest(str(getattr(self.node, "value", "")), ("json-line", "wall", "file", "pattern"))
        self.problems.keep(wrong(self.node, "command.metrics", _FORM, hint))
        return {}

    def one_goal(self, where: Location) -> None:
        """The wall clock gives one number of seconds, which is that of the one metric with a goal."""
        goals = [metric.name for metric in self.metrics if metric.goal]
        for metric in self.metrics:
            if metric.goal == "maximize":
                self.problems.add(
                    f"the wall clock gives {metric.name!r}, but its goal is maximize",
                    where,
                    "goal: minimize",
                )
            if metric.goal and metric.unit and TIMES.get(metric.unit.lower()) != 1.0:
                said = f"the wall clock gives {metric.name!r} in seconds, but its unit is"
                expected = "unit: s, or another source of metrics"
                self.problems.add(f"{said} {shorten(metric.unit)!r}", where, expected)
        bounded = [metric.name for metric in self.metrics if metric.is_judged and not metric.goal]
        for name in [*goals[1:], *bounded]:
            why = "goal" if name in goals else "bound"
            self.problems.add(
                f"the wall clock cannot give the metric {name!r}, which has a {why}",
                where,
                "one metric with a goal and none with a bound, or another source of metrics",
            )

    def mapped(self, node: YamlMap) -> dict[str, Any]:
        names = [metric.name for metric in self.metrics]
        turned_round = {name: f"pattern: {{{name}: 'regular expression'}}" for name in names}
        habits = {**_HABITS, **turned_round}
        fields = Fields(node, "command.metrics", ("file", "pattern"), self.problems, habits)
        if "file" in fields and "pattern" in fields:
            self.problems.add(
                "both 'file' and 'pattern' are given in command.metrics",
                fields.entries["pattern"].where,
                _FORM,
            )
        if "file" in fields:
            file = fields.get("file", lambda part, full: self.check(text(part, full), part), "")
            return {"metrics_from": "file", "metrics_file": file}
        if "pattern" in fields:
            return {"metrics_from": "pattern", "patterns": self.patterns(fields.entries["pattern"].value)}
        return {}

    def patterns(self, node: YamlNode) -> dict[str, str]:
        title = "command.metrics.pattern"
        entries = self.problems.attempt(
            lambda: as_map(node, title, "a mapping: metric, then regular expression")
        )
        if entries is None:
            return {}
        names = [metric.name for metric in self.metrics]
        for entry in entries:
            if entry.key not in names:
                self.problems.add(
                    f"a pattern for {shorten(entry.key)!r}, which is no metric",
                    entry.where,
                    "one of " + ", ".join(names),
                    nearest(entry.key, names),
                )
        patterns = mapping(entries, title, _pattern, self.problems)
        given = {entry.key for entry in entries}
        for metric in self.metrics:
            if metric.is_judged and metric.name not in given and not nearest(metric.name, given - {*names}):
                why = "goal" if metric.goal else "bound"
                self.problems.add(f"no pattern for the metric {metric.name!r}, which has a {why}", node.where)
        return patterns


def _pattern(node: YamlNode, title: str) -> str:
    pattern = text(node, title)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # about what a later Python may read differently
            groups = re.compile(pattern).groups
    except (re.error, OverflowError, RecursionError) as error:
        raise InputError(
            Problem(f"{title} is not a regular expression: {error}", node.where, "one of Python's re module")
        ) from None
    if groups != 1:
        raise wrong(
            node,
            title,
            r"exactly one group ( ) around the number, as in 'time: ([0-9.]+)'",
            f"there are {groups}",
        )
    return pattern
