"""Searching the configurations of a kernel for one case, in the process that calls it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from autotune.hook.kernels.call import KernelCall
from autotune.hook.kernels.call_objective import CallObjective, launch_options
from autotune.hook.kernels.settings import Settings
from autotune.hook.kernels.versions import versions
from autotune.hook.lookup.choosing import default
from autotune.hook.recipes.case import DEVICE, TYPES, Case, as_plain
from autotune.hook.recipes.recipe import Metric, Recipe, Speedup
from autotune.hook.tuning import Budget
from autotune.measure.objective import Context
from autotune.session.api import open_session
from autotune.session.result import Result
from autotune.space import spec as specs
from autotune.space.configuration import FrozenMap, Value
from autotune.store.store import Store

FINALISTS = 3


def search_case(
    spec: specs.StudySpec,
    case: Case,
    device: str,
    call: KernelCall,
    settings: Settings,
    budget: Budget,
    winners: Sequence[Mapping[str, Value]],
    *,
    fresh: bool = False,
) -> Result:
    """Search the study of ``case``, going on from its earlier trials, and give its result.

    ``fresh``: in a new study. ``winners`` of other cases are tried first, after the configurations that the
    space file names. What
    ``budget`` leaves open is taken from ``settings``. Raises :class:`autotune.errors.InputError` if the call
    cannot be tuned.
    """
    own = settings.budget
    facts = {**spec.workload, **case.values, TYPES: FrozenMap(case.types), DEVICE: device}
    spec = replace(
        spec,
        workload=FrozenMap(facts),
        search=specs.SearchSettings(seed=budget.seed or 0, first=(*spec.search.first, *winners)),
        measure=specs.MeasureSettings(finalists=FINALISTS),
        budget=specs.Budget(trials=budget.trials or own.trials, time=budget.time or own.time),
    )
    options = launch_options(default(spec.space))
    context = Context({}, {}, Path(tempfile.gettempdir()))
    objective = CallObjective(call, options, context, settings.written, settings.tolerance)
    with Store.open(budget.store or own.store) as opened:
        # Not search(): the study is of the kernel, and not of the objective that is given here.
        return open_session(spec, opened, objective=objective, fresh=fresh).run()


def recipe_of_result(result: Result, case: Case, device: str, settings: Settings, source: str) -> Recipe:
    """The recipe of a result that has a winner; ``source`` is the hash of the kernel's."""
    assert result.best is not None
    speedup, time = result.speedup, result.metrics["time"]
    return Recipe(
        name=settings.name,
        device=device,
        case=case,
        configuration={name: as_plain(value) for name, value in result.best.items()},
        metric=Metric("time", time.value, time.low, time.high, "s"),
        speedup=Speedup(speedup.estimate, speedup.low, speedup.high) if speedup else None,
        defended=result.defended,
        is_default=result.is_default,
        trials=sum(result.statuses.values()),
        source=source,
        versions=versions(),
        study=result.study.label,
        tuned=datetime.now(UTC).date().isoformat(),
    )
