"""Reading a space file, and replacing what it says by what the caller says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from autotune.arguments import count_problems, is_whole, not_whole, target_problems
from autotune.errors import InputError, Problem
from autotune.measure.recordings.replay import limit_to_recording
from autotune.provenance.device import device_facts
from autotune.space.configuration import FrozenMap
from autotune.space.facts import facts_of
from autotune.space.reading.reader import read_family, read_spec
from autotune.space.reading.settings import target_problem
from autotune.space.space import Space
from autotune.space.spec import Budget, CallableObjective, Family, ReplayObjective, StudySpec
from autotune.space.spec_problems import spec_problems
from autotune.space.units import given_time


def load_spec(
    space: str | Path | StudySpec | Space,
    *,
    trials: int | None = None,
    time: float | str | None = None,
    patience: int | None = None,
    target: float | None = None,
    strategy: str | None = None,
    seed: int | None = None,
    workload: Mapping[str, Any] | None = None,
) -> StudySpec:
    """Read a space file for this machine; an argument that is given replaces what the file says.

    ``workload``: facts that replace those of the file, by name.
    Raises :class:`autotune.errors.InputError` with every problem that was found.
    """
    if workload and not isinstance(space, str | Path):
        expected = "the workload in the StudySpec, or in the space"
        raise InputError(Problem("a workload is given beside what is no space file", expected=expected))
    if isinstance(space, StudySpec):
        if problems := list(spec_problems(space)):
            raise InputError(problems)
        spec = _with_workload(space)
    elif isinstance(space, str | Path):
        spec = read_spec(Path(space), device=device_facts(), workload=workload or {})
    else:
        expected = "the path of a space file, a StudySpec, or a Space together with an objective"
        own = 'to run the trials yourself, autotune.StudySpec("NAME", space)'
        hint = own if isinstance(space, Space) else ""
        raise InputError(Problem(f"the space is {space!r:.60}", expected=expected, hint=hint))
    return _with(spec, trials, time, patience, target, strategy, seed)


def _with_workload(spec: StudySpec) -> StudySpec:
    """With the facts of the workload that the space was given for its rules: they are the study's as well.

    Otherwise the objective would not get them, and the same space for another problem would go on with the
    study of this one.
    """
    own, given = spec.space.workload, facts_of("workload", spec.workload)
    expected = "one value: the space needs it for its rules, and the StudySpec may leave it out"
    problems = [
        Problem(
            f"{name!r} of the workload is {given[name]!r:.60}, and {fact!r:.60} in the space", None, expected
        )
        for name, fact in own.items()
        if given.get(name, fact) != fact
    ]
    if problems:
        raise InputError(problems)
    return replace(spec, workload=FrozenMap({**own, **given}))


def spec_of(space: Space, objective: CallableObjective) -> StudySpec:
    """What a space file would say that gives nothing but the space and what is tuned."""
    own = objective.name.rpartition(":")[2].rpartition(".")[2]
    name = re.sub(r"\W+", "", own, flags=re.ASCII).strip("_")[:100]
    return StudySpec(name or "objective", space, objective)


def load_family(
    space: str | Path,
    *,
    trials: int | None = None,
    time: float | str | None = None,
    patience: int | None = None,
    target: float | None = None,
    strategy: str | None = None,
    seed: int | None = None,
    device: str | Path | None = None,
    workload: Mapping[str, Any] | None = None,
) -> Family:
    """As :func:`load_spec`, with all ``workloads`` of the file.

    A file without them is a family of one, and so is any file whose workloads a given ``workload`` replaces.
    ``device``: the name or the file of a device profile, for another machine than this one.
    """
    if not isinstance(space, str | Path):
        expected = "the path of a space file with workloads, or a Family"
        raise InputError(Problem(f"the space is {space!r:.60}", expected=expected))
    if workload:
        own = read_spec(Path(space), device=device_facts(device), workload=workload)
        family = Family((own,), (False,), several=False)
    else:
        family = read_family(Path(space), device=device_facts(device))
    specs = (_with(spec, trials, time, patience, target, strategy, seed) for spec in family.specs)
    return replace(family, specs=tuple(specs))


def checked_seed(seed: object) -> int:
    """``seed``, if strategies can be seeded with it; else raises :class:`autotune.errors.InputError`."""
    if not is_whole(seed, 0):
        raise InputError(not_whole("seed", seed, 0))
    return int(seed)  # type: ignore[call-overload,no-any-return]


def _with(
    spec: StudySpec,
    trials: int | None,
    time: float | str | None,
    patience: int | None,
    target: float | None,
    strategy: str | None,
    seed: int | None,
) -> StudySpec:
    if problems := list(_problems(trials, time, patience, target, strategy, seed)):
        raise InputError(problems)
    budget = Budget(
        trials=spec.budget.trials if trials is None else trials,
        time=spec.budget.time if time is None else given_time(time),
        patience=spec.budget.patience if patience is None else patience,
        target=spec.budget.target if target is None else float(target),
    )
    if problem := target_problem(budget.target, spec.metrics):
        raise InputError(problem)
    search = replace(
        spec.search,
        strategy=strategy or spec.search.strategy,
        seed=spec.search.seed if seed is None else int(seed),
    )
    spec = replace(spec, budget=budget, search=search)
    return limit_to_recording(spec) if isinstance(spec.objective, ReplayObjective) else spec


def _problems(
    trials: object,
    time: float | str | None,
    patience: object,
    target: object,
    strategy: object,
    seed: object,
) -> Iterator[Problem]:
    """What is wrong with the arguments that replace the file's."""
    yield from count_problems("trials", trials, 1)
    yield from count_problems("patience", patience, 1)
    yield from count_problems("seed", seed, 0)
    yield from target_problems(target)
    try:
        given_time(time)
    except InputError as error:
        yield from error.problems
    if strategy is not None and not isinstance(strategy, str):
        yield Problem(f"strategy is {strategy!r:.60}", expected="the name of a strategy")
