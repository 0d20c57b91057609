"""Measuring recipes again: what each claims, what it is measured with, and what has changed since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autotune.errors import InputError, Problem
from autotune.hook.recipes.recipe import Known, Recipe
from autotune.hook.recipes.staleness import changes, source_changed
from autotune.hook.recipes.stored import environment_behind, readings_behind, recipe_of
from autotune.hook.recipes.this_device import Here, this_device
from autotune.provenance.code.files import is_file
from autotune.provenance.environment import capture, compare
from autotune.ready import ready_spaces
from autotune.session.answers import load_result
from autotune.session.reproduction.agreement import UNMEASURABLE, Claim, Verification
from autotune.session.reproduction.causes import State, state_of
from autotune.session.reproduction.replaying import (
    causes_of,
    from_python,
    own_results,
    replicates,
    space_file,
)
from autotune.session.reproduction.verification import Keeper, spec_for, verify
from autotune.space.configuration import Configuration
from autotune.space.reading.space_file import load_text
from autotune.space.spec import StudySpec
from autotune.store.records import StudyRecord
from autotune.store.store import Store


@dataclass(frozen=True)
class Verified:
    """A recipe that was measured again, or that could not be (``result`` says why)."""

    recipe: Recipe
    result: Verification
    changed: tuple[str, ...] = ()
    """What has changed since, as far as it is known: a text for each."""
    kept: str = ""
    """Where the readings are kept, or why they are not."""


def verify_study(url: str | None, name: str | None) -> Verified | None:
    """Measure the winner of a study again; its readings become trials of the study.

    ``None`` if the study has no winner. Raises :class:`autotune.errors.AutotuneError` if there is no such
    store or study.
    """
    with Store.open(url, readonly=True) as store:
        study = store.study(name)
        recipe = recipe_of(store, study)
        if recipe is None:
            return None
        reason = _unmeasurable(recipe, study.replayed)
        if reason:
            return Verified(recipe, Verification(UNMEASURABLE, reason))
        before = environment_behind(store, study)
        segment = store.latest_segment(study.id)
        then = readings_behind(store, study, recipe)
        digest = Configuration(recipe.configuration).hash
        others = [trial for trial in own_results(store, study.id) if trial.hash != digest]
        repeats = replicates(others, recipe.metric.name) if recipe.metric else []
        default = None if recipe.is_default else load_result(store, study).default
    try:
        spec = _spec_of(study)
    except InputError as error:
        return Verified(recipe, Verification(UNMEASURABLE, str(error)))
    now = capture(spec.source.parent if spec.source else None)
    changed = _changed(recipe, this_device(), before, now.to_document())
    claim = replace(
        claim_of(recipe),
        replicates=repeats,
        state=state_of(then),
        default=default.interval if default is not None else None,
    )
    edited = source_changed(recipe)
    if edited or segment is None:
        result, kept = verify(spec, claim), "not kept: the objective's source has changed since"
    else:
        with closing(Keeper(url, study, segment, now)) as keeper:
            result = verify(spec, claim, keeper)
        kept = keeper.kept
    return Verified(recipe, result, (*causes_of(then, result, spec, edited=edited), *changed), kept)


def verify_file(known: Known, here: Here) -> Iterator[Verified]:
    """Measure each recipe of this device again. Their readings are not stored, only returned."""
    for recipe in known.recipes:
        reason = _unmeasurable(recipe, False)
        if not reason and recipe.device not in here.names:
            reason = f"it is for {recipe.device}, and this is {here}"
        if reason:
            yield Verified(recipe, Verification(UNMEASURABLE, reason))
            continue
        try:
            spec = _spec_in(known, recipe)
        except InputError as error:
            yield Verified(recipe, Verification(UNMEASURABLE, str(error)))
            continue
        kept = "not kept: a recipe in a file belongs to no study"
        yield Verified(recipe, verify(spec, claim_of(recipe)), _changed(recipe, here, {}, {}), kept)


def _unmeasurable(recipe: Recipe, replayed: bool) -> str:
    if replayed:
        return "its readings come from a recording"
    if recipe.case.types:
        return "it is for a kernel, and a launch's arguments are needed to measure one"
    return ""


def claim_of(recipe: Recipe) -> Claim:
    """What the recipe claims, to be compared with the new measurement."""
    metric, speedup = recipe.metric, recipe.speedup
    value = metric.interval if metric is not None else None
    said = None if speedup is None or recipe.is_default else speedup.interval
    state = State(recipe.shares, {}) if recipe.shares else None
    return Claim(Configuration(recipe.configuration), value, said, state=state)


# -- with what it is measured ---------------------------------------------------------------------------


def _spec_of(study: StudyRecord) -> StudySpec:
    if why := from_python(study):
        raise InputError(Problem(why))
    return spec_for(study.spec_text, space_file(study), study.workload)


def _spec_in(known: Known, recipe: Recipe) -> StudySpec:
    space = known.spaces.get(recipe.name)
    written = Path(space.file) if space is not None and space.file else None
    file = written if written is not None and is_file(written) else ready_spaces().get(recipe.name)
    if file is None:
        hint = "verify its study in the store that has it: autotune verify --study NAME"
        what = f"its space file {written} is not there" if written else "its space file is not known"
        raise InputError(Problem(what, hint=hint))
    return spec_for(load_text(file), file, recipe.case.values)


# -- what has changed -----------------------------------------------------------------------------------

_SAID_ELSEWHERE = ("packages.", "compilers.", "code.", "code")
"""Differences of environments that are reported otherwise: packages and compilers by the recipe's versions,
code by its source."""


def _changed(
    recipe: Recipe, here: Here, before: Mapping[str, Any], now: Mapping[str, Any]
) -> tuple[str, ...]:
    found = changes(recipe, here)
    if recipe.device not in here.names:
        found.append(f"device {recipe.device} -> {here}")
    elif recipe.machine and recipe.machine != here.machine:
        found.append("another machine with the same device")
    if before:
        different = compare(before, now)
        found += [str(d) for d in different if not d.path.startswith(_SAID_ELSEWHERE)]
    return tuple(found)
