"""What is wrong with a study that was written in Python.

Its parts are turned into the YAML nodes that a file would have, and the reader of space files checks those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from autotune.errors import Location, Problem
from autotune.space.reading.fields import Problems
from autotune.space.reading.metrics import read_metrics
from autotune.space.reading.reader import NAME
from autotune.space.reading.settings import read_budget, read_measure, read_search
from autotune.space.reading.yaml_nodes import YamlEntry, YamlList, YamlMap, YamlNode, YamlScalar
from autotune.space.space import Space
from autotune.space.spec import (
    Budget,
    EarlyStopping,
    MeasureSettings,
    MetricSpec,
    ObjectiveSpec,
    SearchSettings,
    StudySpec,
)

NOWHERE = Location("")


def spec_problems(spec: StudySpec) -> Iterator[Problem]:
    """The problems for which the reader of space files would refuse the same study."""
    if not isinstance(spec.name, str) or not NAME.fullmatch(spec.name):
        yield Problem(f"{spec.name!r:.60} cannot name a study", None, "letters, digits, _ . -, at most 100")
    if strange := list(_of_another_kind(spec)):
        yield from strange
        return
    names = [metric.name for metric in spec.metrics]
    for name in dict.fromkeys(name for place, name in enumerate(names) if name in names[:place]):
        yield Problem(f"there are two metrics {name!r}", None, "one of each name")
    found = Problems()
    metrics = read_metrics(_node({metric.name: _metric(metric) for metric in spec.metrics}), found)
    read_search(_node(_search(spec.search)), found, metrics, spec.space)
    read_measure(_node(_numbers("measure", spec.measure, found)), found)
    read_budget(_node(_numbers("budget", spec.budget, found)), found, metrics)
    yield from (replace(problem, where=None) for problem in found.found)


def _of_another_kind(spec: StudySpec) -> Iterator[Problem]:
    """A problem for each part of the study that has the wrong type."""
    if not isinstance(spec.metrics, tuple | list):
        yield Problem(f"the metrics are {spec.metrics!r:.60}", None, "a tuple of MetricSpec")
        return
    for metric in spec.metrics:
        if not isinstance(metric, MetricSpec):
            yield Problem(f"a metric is {metric!r:.60}", None, "MetricSpec('loss', 'minimize'), say")
    if not isinstance(spec.objective, ObjectiveSpec):
        said = f"the study's objective is {spec.objective!r:.60}"
        yield Problem(said, None, "search(..., objective=...) for a function or a class")
    settings = {"search": SearchSettings, "measure": MeasureSettings, "budget": Budget}
    for name, kind in {"space": Space, "workload": Mapping, **settings}.items():
        if not isinstance(getattr(spec, name), kind):
            yield Problem(f"{name} is {getattr(spec, name)!r:.60}", None, f"a {kind.__name__}")
            return
    if not isinstance(spec.search.options, Mapping):
        yield Problem(f"search.options is {spec.search.options!r:.60}", None, "a mapping of names to values")
    if not isinstance(spec.search.early_stopping, EarlyStopping | None):
        said = f"search.early_stopping is {spec.search.early_stopping!r:.60}"
        yield Problem(said, None, "EarlyStopping(max=27), say")


def _metric(metric: MetricSpec) -> dict[str, object]:
    said = {name: value for name, value in vars(metric).items() if name != "name"}
    return {name: value for name, value in said.items() if value is not None}


def _search(settings: SearchSettings) -> dict[str, object]:
    stopping = settings.early_stopping
    return {**vars(settings), "early_stopping": None if stopping is None else _stopping(stopping)}


def _stopping(settings: EarlyStopping) -> dict[str, object]:
    """The fields, without empty ones that a file leaves out."""
    said = vars(settings)
    return {name: value for name, value in said.items() if value or name not in ("metric", "options")}


def _numbers(title: str, settings: MeasureSettings | Budget, found: Problems) -> dict[str, object]:
    """The fields, without texts: nothing converts ``10m`` or ``4GiB`` outside of a file."""
    numbers = dict[str, object]()
    for name, value in vars(settings).items():
        if isinstance(value, str):
            found.add(f"{title}.{name} is the text {value!r:.60}", NOWHERE, "a number of seconds or bytes")
        else:
            numbers[name] = value
    return numbers


def _node(value: object) -> YamlNode:
    """The YAML node that a file would have in the place of ``value``."""
    if isinstance(value, Mapping):
        entries = (YamlEntry(str(name), NOWHERE, _node(each)) for name, each in value.items())
        return YamlMap(tuple(entries), NOWHERE)
    if isinstance(value, tuple | list):
        return YamlList(tuple(map(_node, value)), NOWHERE)
    plain = value.item() if isinstance(value, np.generic) else value
    if plain is None or isinstance(plain, bool | int | float | str):
        return YamlScalar(plain, NOWHERE, repr(plain), NOWHERE)
    return YamlScalar(repr(plain), NOWHERE, repr(plain), NOWHERE)
