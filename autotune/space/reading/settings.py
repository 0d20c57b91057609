"""The sections ``search``, ``measure`` and ``budget`` of a space file: tables of keys and their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from typing import Any, TypeVar

from autotune.errors import Problem
from autotune.space.feasible_set.configurations import Configurations
from autotune.space.reading.converters import (
    boolean,
    duration,
    integer,
    mapping,
    memory,
    number,
    one_of,
    optional,
    scalar,
)
from autotune.space.reading.early_stopping import read_early_stopping
from autotune.space.reading.fields import Converter, Fields, Problems, as_map
from autotune.space.reading.first_tries import read_first
from autotune.space.reading.yaml_nodes import YamlEntry, YamlNode
from autotune.space.spec import Budget, MeasureSettings, MetricSpec, SearchSettings

Settings = TypeVar("Settings", SearchSettings, MeasureSettings, Budget)
Scalar = bool | int | float | str


def _options(node: YamlNode, title: str) -> Mapping[str, Scalar]:
    problems = Problems()
    options = mapping(as_map(node, title, "a mapping of the strategy's options"), title, scalar, problems)
    problems.raise_all()
    return options


STRATEGIES = (
    "auto",
    "grid",
    "random",
    "evolution",
    "bandit",
    "policy",
    "bayes",
    "structured",
    "optuna-tpe",
    "optuna-gp",
    "optuna-nsga2",
    "optuna-cmaes",
    "skopt-gp",
    "skopt-forest",
)
"""The names in :mod:`autotune.search.registry`, which this folder cannot import."""

SEARCH: dict[str, Converter[Any]] = {
    "strategy": one_of(*STRATEGIES),
    "seed": integer(0),
    "transfer": boolean,
    "options": _options,
    "first": read_first(None),
    "early_stopping": optional(read_early_stopping(())),
}
MEASURE: dict[str, Converter[Any]] = {
    "precision": number(0, 1, expected="a fraction between 0 and 1", hint="0.01 means 1 %"),
    "confidence": number(0, 1, expected="a fraction between 0 and 1", hint="0.95 means 95 %"),
    "timeout": duration,
    "prepare_timeout": duration,
    "memory": optional(memory),
    "warmup": optional(integer(0)),
    "min_readings": optional(integer(1)),
    "max_readings": integer(1),
    "reject": boolean,
    "cores": integer(0),
    "gpus": integer(0),
    "finalists": integer(0),
}
BUDGET: dict[str, Converter[Any]] = {
    "trials": optional(integer(1)),
    "time": optional(duration),
    "patience": optional(integer(1)),
    "target": optional(number(expected="a finite number, in the unit of the goal")),
}
BELONGS = {
    key: f"it belongs in the section {section!r}"
    for section, table in (("search", SEARCH), ("measure", MEASURE), ("budget", BUDGET))
    for key in table
}
"""Hints for keys of these sections that stand elsewhere."""
_OFTEN = ("repetitions", "repeats", "repeat", "runs", "iterations", "samples")
_HABITS = {
    "search": {
        **dict.fromkeys(("method", "algorithm", "sampler", "optimizer"), "did you mean 'strategy'?"),
        **dict.fromkeys(("scheduler", "pruner"), "did you mean 'early_stopping'?"),
    },
    "measure": {
        **dict.fromkeys(_OFTEN, "write min_readings: N and max_readings: N"),
        **dict.fromkeys(("cpus", "threads"), "did you mean 'cores'?"),
    },
    "budget": {
        **dict.fromkeys((*_OFTEN, "evaluations", "evals"), "did you mean 'trials'?"),
        **dict.fromkeys(("threshold", "loss_threshold", "stop_at", "goal"), "did you mean 'target'?"),
        "timeout": "did you mean 'time'? A single trial's limit is 'timeout' in the section 'measure'",
    },
}
"""By section, what to write instead of the words of other tools. ``cpus`` is spelt most like ``gpus``."""


def read_search(
    node: YamlNode | None,
    problems: Problems,
    metrics: Sequence[MetricSpec] = (),
    space: Configurations | None = None,
) -> SearchSettings:
    """The section ``search``. With early stopping the strategy is ``bayes`` unless one is given.

    Early stopping judges one of the ``metrics``; the configurations in ``first`` must be of the ``space``,
    where that is given.
    """
    goals = [metric.name for metric in metrics if metric.goal]
    table = SEARCH | {
        "first": read_first(space),
        "early_stopping": optional(read_early_stopping(goals)),
    }
    settings, given = _read(node, "search", table, SearchSettings(), problems)
    if settings.early_stopping is not None and "strategy" not in given:
        return replace(settings, strategy="bayes")
    return settings


def read_measure(node: YamlNode | None, problems: Problems) -> MeasureSettings:
    settings, given = _read(node, "measure", MEASURE, MeasureSettings(), problems)
    if settings.min_readings is not None and settings.max_readings < settings.min_readings:
        entry = given.get("max_readings") or given["min_readings"]
        problems.add(
            f"max_readings ({settings.max_readings}) is below min_readings ({settings.min_readings})",
            entry.value.where,
        )
    return settings


def read_budget(node: YamlNode | None, problems: Problems, metrics: Sequence[MetricSpec] = ()) -> Budget:
    """The section ``budget``. A target needs one goal among the ``metrics`` that it can be a value of."""
    budget, given = _read(node, "budget", BUDGET, Budget(), problems)
    if problem := target_problem(budget.target, metrics):
        problems.found.append(replace(problem, where=given["target"].where))
    return budget


def target_problem(target: float | None, metrics: Sequence[MetricSpec]) -> Problem | None:
    """What is wrong with a target where these are the metrics, if anything is."""
    goals = [metric.name for metric in metrics if metric.goal]
    if target is None or len(goals) < 2:
        return None
    expected = "no target, or one goal and a bound (at_most, at_least) for each other metric"
    return Problem(f"a target needs one goal, and there are {len(goals)}: {', '.join(goals)}", None, expected)


def _read(
    node: YamlNode | None,
    title: str,
    table: Mapping[str, Converter[Any]],
    defaults: Settings,
    problems: Problems,
) -> tuple[Settings, Mapping[str, YamlEntry]]:
    """``defaults`` with what the section says, and its entries by key.

    The table and the data class have the same keys.
    """
    assert set(table) == {field.name for field in dataclass_fields(defaults)}
    if node is None:
        return defaults, {}
    entries = problems.attempt(lambda: as_map(node, title, f"a mapping of {', '.join(table)}"))
    if entries is None:
        return defaults, {}
    section = Fields(entries, title, [*table], problems, BELONGS | _HABITS.get(title, {}))
    given = {key: section.get(key, table[key], getattr(defaults, key)) for key in table if key in section}
    return replace(defaults, **given), section.entries
