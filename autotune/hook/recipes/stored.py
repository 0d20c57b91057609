"""What a store knows: the winners of its studies and the recipes that were imported, as recipes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from autotune.hook.recipes.case import DEVICE, TYPES, Case, as_plain
from autotune.hook.recipes.document import FORMAT, MARK, read_document, to_document
from autotune.hook.recipes.recipe import Known, KnownSpace, Metric, Recipe, Speedup
from autotune.hook.recipes.staleness import versions_of
from autotune.hook.recipes.this_device import device_of
from autotune.measure.outcome import Reading
from autotune.session.answers import best_trials, stands
from autotune.session.opening.frozen import SOURCE
from autotune.session.reproduction.causes import state_of
from autotune.session.reproduction.replaying import own_results
from autotune.space.configuration import Configuration, plain
from autotune.space.spec import MetricSpec
from autotune.store.databases.opening import EmptyStoreError
from autotune.store.records import NewRecipe, StudyRecord
from autotune.store.store import Store


def stored_recipes(kernel: str, key: Sequence[str], url: str | None) -> tuple[Recipe, ...]:
    """One recipe for each study of the kernel that has a winner, the newest first; none without a store.

    Raises :class:`autotune.errors.AutotuneError` if there is a store and it cannot be read.
    """
    found = []
    for recipe in known_in(url, kernel).recipes:
        values = recipe.case.values
        if all(name in values for name in key):
            case = Case({name: as_plain(values[name]) for name in key}, recipe.case.types)
            found.append(replace(recipe, case=case))
    return tuple(found)


def known_in(url: str | None, name: str | None = None) -> Known:
    """The recipes in the store at ``url``, of one name or all; none if there is no store or it is empty.

    Raises :class:`autotune.errors.AutotuneError` if there is a store and it cannot be read.
    """
    try:
        with Store.open(url, readonly=True) as store:
            return read_known(store, name)
    except EmptyStoreError:
        return Known()


def names_in(url: str | None) -> tuple[list[str], set[str]]:
    """The names of a store's studies and imported recipes; and apart, the names of recordings alone."""
    try:
        with Store.open(url, readonly=True) as store:
            studies, recipes = store.studies(), store.recipes()
    except EmptyStoreError:
        return [], set()
    own = [study.name for study in studies if not study.replayed]
    names = list(dict.fromkeys([*own, *(recipe.name for recipe in recipes)]))
    return names, {study.name for study in studies} - set(names)


def read_known(store: Store, name: str | None = None, shares: bool = False) -> Known:
    """The winners of studies, the newest first, then the imported recipes.

    Studies of recordings are left out: they are of no device. ``shares=True`` fills in :attr:`Recipe.shares`,
    for which the readings of each winner are read.
    """
    recipes: list[Recipe] = []
    spaces: dict[str, KnownSpace] = {}
    for study in reversed(store.studies(name)):
        if study.replayed:
            continue
        spaces.setdefault(study.name, _space(study))
        recipe = recipe_of(store, study)
        if recipe is not None and shares:
            recipe = replace(recipe, shares=state_of(readings_behind(store, study, recipe)).shares)
        if recipe is not None:
            recipes.append(recipe)
    return Known(tuple(recipes), spaces).and_then(imported(store, name))


def readings_behind(store: Store, study: StudyRecord, recipe: Recipe) -> Sequence[Reading]:
    """The readings of the winner's last trial: of the finale, or of the search if there was no finale."""
    digest = Configuration(recipe.configuration).hash
    own = [trial for trial in own_results(store, study.id) if trial.hash == digest]
    return store.readings(own[-1].id) if own else ()


def _space(study: StudyRecord) -> KnownSpace:
    file = study.space_file
    return KnownSpace(study.document.get("space", {}), file if file.startswith("/") else "")


def recipe_of(store: Store, study: StudyRecord) -> Recipe | None:
    """The recipe of the study's winner; ``None`` if no trial succeeded."""
    won = _won(store, study)
    if won is None:
        return None
    fields, environment = won
    segment = store.latest_segment(study.id)
    frozen = segment.document if segment is not None else {}
    on_gpu = bool((study.document.get("measure") or {}).get("gpus"))
    workload = {name: value for name, value in study.workload.items() if name not in (DEVICE, TYPES)}
    return Recipe(
        name=study.name,
        device=str(study.workload.get(DEVICE) or device_of(environment, on_gpu)),
        case=Case(workload, {n: str(t) for n, t in (study.workload.get(TYPES) or {}).items()}),
        trials=sum(study.counts.values()),
        source=str(frozen.get("source_hash", "")),
        folder=str(frozen.get("folder", "")),
        files=tuple(str(file["name"]) for file in frozen.get("files", ())),
        versions=versions_of(environment, _sources(store, study), study.objective, on_gpu),
        machine=study.machine_key,
        study=study.label,
        **fields,
    )


_Won = tuple[dict[str, Any], Mapping[str, Any]]
"""Fields of a recipe, and the environment in which they were measured."""


def _won(store: Store, study: StudyRecord) -> _Won | None:
    return _verdict(store, study) or _best_so_far(store, study)


def environment_behind(store: Store, study: StudyRecord) -> Mapping[str, Any]:
    """The environment in which the study's winner was measured; empty if it has no winner."""
    won = _won(store, study)
    return {} if won is None else won[1]


def _verdict(store: Store, study: StudyRecord) -> _Won | None:
    """The winner by the study's last verdict, if the space still contains it."""
    verdicts = store.verdicts(study.id)
    if not verdicts or not stands(store, study, verdicts[-1]):
        return None
    last = verdicts[-1]
    speedup = last.document.get("speedup")
    goal = study.goals[0]
    fields = {
        "configuration": last.document["configuration"],
        "metric": _metric(goal, last.document.get("metrics", {}).get(goal.name)),
        "speedup": Speedup(speedup["estimate"], speedup["low"], speedup["high"]) if speedup else None,
        "defended": True,
        "is_default": bool(last.document.get("is_default")),
        "tuned": day_of(last.created_at),
    }
    session = next((s for s in store.sessions(study.id) if s.id == last.session_id), None)
    return fields, store.environment(session.environment_hash if session else "")


def _best_so_far(store: Store, study: StudyRecord) -> _Won | None:
    """The best trial of a search that was not measured again."""
    goal = study.goals[0]
    trial = next(iter(best_trials(store, study, goal, 1)), None)
    if trial is None:
        return None
    estimate = trial.metrics[goal.name]
    measured = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    fields = {
        "configuration": {name: plain(value) for name, value in trial.configuration.items()},
        "metric": _metric(goal, measured),
        "is_default": trial.reason.get("kind") == "default",
        "tuned": day_of(trial.finished_at or study.created_at),
    }
    return fields, store.environment(trial.environment_hash or study.environment_hash)


def _metric(goal: MetricSpec, measured: Mapping[str, Any] | None) -> Metric | None:
    if measured is None:
        return None
    low, high = measured["low"], measured["high"]
    return Metric(goal.name, measured["value"], low, high, goal.unit, goal.direction)


def _sources(store: Store, study: StudyRecord) -> dict[str, bytes]:
    segment = store.latest_segment(study.id)
    artifacts: Mapping[str, str] = segment.artifacts if segment is not None else {}
    return {
        role.removeprefix(SOURCE): store.artifact(digest) if role.endswith(".py") else b""
        for role, digest in artifacts.items()
        if role.startswith(SOURCE)
    }


def day_of(at: float) -> str:
    """A time in POSIX seconds as ``2026-11-21``."""
    return datetime.fromtimestamp(at, UTC).date().isoformat()


# -- imported ------------------------------------------------------------------------------------------


def imported(store: Store, name: str | None = None) -> Known:
    """The recipes that were imported into the store, the newest first."""
    records = store.recipes(name)
    spaces = {record.name: record.document["space"] for record in records if record.document.get("space")}
    recipes = [record.document["recipe"] for record in records]
    return read_document(json.dumps({MARK: FORMAT, "recipes": recipes, "spaces": spaces}), store.url)


def import_known(store: Store, known: Known) -> int:
    """Put recipes into the store, replacing those of the same name, device and case; returns how many."""
    spaces = {
        name: {"file": space.file, "space": space.document} if space.file else {"space": space.document}
        for name, space in known.spaces.items()
    }
    store.put_recipes(
        NewRecipe(
            recipe.name,
            recipe.device,
            json.dumps([recipe.case.values, recipe.case.types], sort_keys=True),
            {"recipe": to_document(recipe), "space": spaces.get(recipe.name)},
        )
        for recipe in known.recipes
    )
    return len(known.recipes)
