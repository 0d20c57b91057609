"""Commands that tests run: how one is made, and measured."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from autotune.measure.commands.command import CommandRunner
from autotune.measure.objective import Context
from autotune.measure.readings import Sample
from autotune.space.configuration import Configuration
from autotune.space.spec import CommandObjective, MetricSpec

TIME = MetricSpec("time", "minimize", "s")
ERROR = MetricSpec("error", at_most=0.1)
NOTE = MetricSpec("note")
RNG = np.random.default_rng(0)


def runner(
    folder: Path, *arguments: str, metrics: tuple[MetricSpec, ...] = (TIME,), **fields: Any
) -> CommandRunner:
    context = Context({"m": 960}, {}, folder / "cache")
    return CommandRunner(CommandObjective(arguments, folder, **fields), context, metrics)


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code.replace("{", "{{").replace("}", "}}"))


def printing(text: str) -> tuple[str, ...]:
    return python(f"print({text!r})")


def measure(objective: CommandRunner, **knobs: Any) -> dict[str, float]:
    loaded = objective.load(objective.prepare(Configuration(knobs)))
    objective.check(loaded, RNG)
    measured = objective.measure(loaded, RNG)
    return dict(measured.values if isinstance(measured, Sample) else measured)
