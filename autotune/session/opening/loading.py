"""Reading a space file, with what the caller says in its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from autotune.errors import InputError, Problem
from autotune.provenance.device import device_facts
from autotune.session.opening.overrides import AS_THE_FILE_SAYS, Overrides
from autotune.space.configuration import FrozenMap
from autotune.space.facts import facts_of
from autotune.space.reading.reader import read_family, read_spec
from autotune.space.space import Space
from autotune.space.spec import CallableObjective, Family, StudySpec
from autotune.space.spec_problems import spec_problems


def load_spec(
    space: str | Path | StudySpec | Space,
    overrides: Overrides = AS_THE_FILE_SAYS,
    *,
    workload: Mapping[str, Any] | None = None,
) -> StudySpec:
    """Read a space file for this machine; ``overrides`` replaces what the file says.

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
    return overrides.applied_to(spec)


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
    overrides: Overrides = AS_THE_FILE_SAYS,
    *,
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
    return replace(family, specs=tuple(map(overrides.applied_to, family.specs)))
