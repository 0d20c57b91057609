"""Which executor runs which objective."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autotune.measure.objective import Context, Objective
from autotune.provenance.device import device_facts
from autotune.session.execution.executor import Executor, nothing
from autotune.space.spec import ReplayObjective, StudySpec

Measurable = type[Objective] | Objective | Callable[..., Any]


def make_executor(
    spec: StudySpec,
    objective: Measurable | None = None,
    compiled: Path | None = None,
    meanwhile: Callable[[], object] = nothing,
) -> Executor:
    """The executor for a study: worker processes, or this process for a replay or a given ``objective``.

    ``compiled`` is the folder of what other searches have compiled; ``None``: everything is compiled anew.
    ``meanwhile`` is called while a worker process starts.
    Raises :class:`autotune.errors.InputError` where the objective cannot be used.
    """
    if objective is None and not isinstance(spec.objective, ReplayObjective):
        from autotune.session.execution.workers import WorkerExecutor

        return WorkerExecutor(spec, device_facts(), compiled=compiled, meanwhile=meanwhile)

    from autotune.measure.ownership import make_scratch

    scratch = make_scratch(spec.name)
    try:
        seed, ruled = spec.search.seed, spec.space.ruled
        context = Context(spec.workload, device_facts(), scratch, seed, compiled, ruled)
        return _inline(spec, context, objective)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def _inline(spec: StudySpec, context: Context, objective: Measurable | None) -> Executor:
    from autotune.session.execution.inline import InlineExecutor, ReplayExecutor

    if objective is None:
        from autotune.measure.recordings.replay import ReplayedObjective

        return ReplayExecutor(spec, ReplayedObjective.of(spec, context), context.cache)

    from autotune.measure.loading.load import make_objective

    made = make_objective(objective, context, tuple(knob.name for knob in spec.space.knobs))
    return InlineExecutor(spec, made, context.cache)
