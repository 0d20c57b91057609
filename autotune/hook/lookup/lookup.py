"""Looking a recipe up: this device first, then others, then the default."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotune.errors import AutotuneError, InputError, Problem, nearest
from autotune.hook.frozen_dict import Fixed
from autotune.hook.lookup.best import Best, How
from autotune.hook.lookup.choosing import default, nearest_recipe
from autotune.hook.lookup.requested_workload import Asked, complete
from autotune.hook.lookup.say_how import say_default, say_recipe
from autotune.hook.recipes.places import Places, Signature, signature
from autotune.hook.recipes.preference import preference
from autotune.hook.recipes.recipe import Known, KnownSpace, Recipe
from autotune.hook.recipes.staleness import changes
from autotune.hook.recipes.this_device import Here, this_device

if TYPE_CHECKING:
    from autotune.hook.lookup.known_failures import Failures
    from autotune.space.space import Space


def look_up(
    name: str, workload: Mapping[str, Any], recipes: str | Path | None, store: str | Path | None
) -> tuple[Best, tuple[Path, ...], Signature]:
    """The answer, the files that it was read from, and their signature from before they were read."""
    places = Places.of(recipes, store)
    here = this_device()
    before = signature(places.files)
    filed = places.filed().of(name)
    if filed.recipes:
        asked = _try_complete(name, workload, filed)
        exact = _exact(asked, _own(filed.telling, here)) if asked else None
        if asked and exact:
            return _best(name, asked, here, "exact", (0.0, exact), None), places.files, before
    file = places.store_file
    stored = (file, file.with_name(file.name + "-wal")) if file else ()
    files = (*places.files, *stored)
    before = (*before, *signature(stored)[1:])  # the signature of all, each as it was before it was read
    known = filed.and_then(_stored(places, name))
    if name not in known.spaces:
        known = known.and_then(_ready(name))
    if not known.recipes and not known.spaces:
        raise InputError(_unknown(name, places))
    return _choose(name, workload, known, here, places), files, before


def _try_complete(name: str, workload: Mapping[str, Any], known: Known) -> Asked | None:
    """The workload completed from the files of recipes; ``None`` if they do not suffice (a store may)."""
    try:
        return complete(name, workload, known)
    except InputError:
        return None


def _choose(name: str, workload: Mapping[str, Any], known: Known, here: Here, places: Places) -> Best:
    asked = complete(name, workload, known)
    known = known.telling if known.telling.recipes else known
    own = _own(known, here)
    exact = _exact(asked, own)
    if exact is not None:
        return _best(name, asked, here, "exact", (0.0, exact), None)
    space, why_not = _space(asked, known, name)
    allowed = _Allowed(space, _failures(places, name, asked, here))
    found = nearest_recipe(asked.case, own, allowed)
    if found is not None:
        return _best(name, asked, here, "nearest", found, space, allowed.passed_over)
    others = [recipe for recipe in known.recipes if recipe.device not in here.names]
    others.sort(key=preference, reverse=True)
    found = nearest_recipe(asked.case, others, allowed)
    if found is not None:
        return _best(name, asked, here, "device", found, space, allowed.passed_over)
    if space is None:
        message = f"no recipe of {name} is for such a workload, and {why_not}"
        workloads = [str(dict(recipe.case.values)) for recipe in known.recipes[:3]]
        expected = f"one like {' or '.join(workloads)}" if workloads else ""
        raise InputError(Problem(message, None, expected, "" if name in known.spaces else _WITHOUT_SPACE))
    configuration = default(space)
    moved = configuration != space.configuration({})
    how = say_default(name, len(known.recipes), moved, asked, allowed.passed_over)
    if failed := allowed.failures.of(configuration):
        how += f"; it {failed} itself"
    return Best(name, Fixed(asked.case.values), _frozen(configuration), how, "default")


def _own(known: Known, here: Here) -> list[Recipe]:
    """The recipes of this device: those of this machine first, then those that are preferred."""
    own = [recipe for recipe in known.recipes if recipe.device in here.names]
    return sorted(own, key=lambda recipe: (recipe.machine == here.machine, preference(recipe)), reverse=True)


def _exact(asked: Asked, recipes: list[Recipe]) -> Recipe | None:
    """The first recipe of this very workload."""
    return next((recipe for recipe in recipes if asked.case.distance(recipe.case) == 0.0), None)


def _best(
    name: str,
    asked: Asked,
    here: Here,
    kind: How,
    found: tuple[float, Recipe],
    space: Space | None,
    passed_over: Sequence[str] = (),
) -> Best:
    distance, recipe = found
    configuration = recipe.configuration
    if space is not None:
        configuration = space.configuration(configuration)  # knobs newer than the recipe get defaults
    return Best(
        name=name,
        workload=Fixed(asked.case.values),
        configuration=_frozen(configuration),
        how=say_recipe(kind, recipe, distance, asked, here, passed_over),
        kind=kind,
        stale="; ".join(changes(recipe, here)),
        distance=distance,
        recipe=recipe,
    )


def _frozen(values: Mapping[str, Any]) -> Fixed:
    return Fixed({name: _value(value) for name, value in values.items()})


def _value(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(_value(one) for one in value)
    return _frozen(value) if isinstance(value, Mapping) else value


# -- the space -----------------------------------------------------------------------------------------


class _Allowed:
    """Whether a recipe may be used for this workload.

    It may if the space has its configuration, and this is not known to fail. A space of ``None`` (unknown)
    forbids nothing.
    """

    def __init__(self, space: Space | None, failures: Failures) -> None:
        self.failures = failures
        self.passed_over: list[str] = []
        """A text for each recipe that was refused because it fails for this workload, in order."""
        self._space = space

    def __call__(self, recipe: Recipe) -> bool:
        configuration = recipe.configuration
        if self._space is not None:
            try:
                configuration = self._space.configuration(configuration)
            except InputError:
                return False
            if configuration not in self._space:
                return False
        if how := self.failures.of(configuration, recipe.source):
            from autotune.space.spec import say_workload

            self.passed_over.append(f"the winner for {say_workload(recipe.case.values)} {how}")
        return not how


_WITHOUT_SPACE = "its space is in none of the files; export the recipes again, or name the store of its study"


def _space(asked: Asked, known: Known, name: str) -> tuple[Space | None, str]:
    """The space for this workload on this device; or ``None`` and the reason."""
    from autotune.provenance.device import device_facts
    from autotune.space.from_document import DEVICE, space_from_document

    if name not in known.spaces:
        return None, "its default is not known"
    document = dict(known.spaces[name].document)
    try:
        facts = dict(document.get("facts", {}))
        if any(fact.startswith(DEVICE) for fact in facts):
            device = device_facts()
            facts = {fact: device.get(fact.removeprefix(DEVICE), value) for fact, value in facts.items()}
        document |= {"facts": facts, "workload": {**document.get("workload", {}), **asked.case.values}}
        return space_from_document(document), ""
    except (InputError, KeyError, TypeError, ValueError) as error:
        first, *_ = str(error).splitlines() or [type(error).__name__]
        return None, f"its space cannot be made for {dict(asked.case.values)}: {first}"


def _ready(name: str) -> Known:
    """The space of this name that comes with autotune, if there is one."""
    from autotune.ready import ready_spaces

    file = ready_spaces().get(name)
    if file is None:
        return Known()
    from autotune.provenance.device import device_facts
    from autotune.space.reading.reader import read_family

    first = read_family(file, device_facts()).specs[0]
    return Known(spaces={name: KnownSpace(first.space.to_document(), str(file))})


# -- the store -----------------------------------------------------------------------------------------


def _stored(places: Places, name: str) -> Known:
    """What the store knows. A store that cannot be read is only warned of, unless the caller named it."""
    if not places.has_store:
        return Known()
    from autotune.hook.recipes.stored import known_in

    try:
        return known_in(places.store, name)
    except AutotuneError as error:
        if places.store is not None:
            raise
        warnings.warn(f"{name}: the recipe is chosen without the store: {error}", stacklevel=5)
        return Known()


def _failures(places: Places, name: str, asked: Asked, here: Here) -> Failures:
    from autotune.hook.lookup.known_failures import Failures, failures_in

    if not places.has_store:
        return Failures()
    try:
        return failures_in(places.store, name, asked.case, here.names)
    except AutotuneError:  # a store that the caller did not name; _stored has warned of it
        return Failures()


def _unknown(name: str, places: Places) -> Problem:
    from autotune.ready import ready_spaces

    names = dict.fromkeys([recipe.name for recipe in places.filed().recipes])
    recordings: set[str] = set()
    if places.has_store:
        from autotune.hook.recipes.stored import names_in

        with suppress(AutotuneError):  # a store that the caller did not name; _stored has warned of it
            stored, recordings = names_in(places.store)
            names |= dict.fromkeys(stored)
    names |= dict.fromkeys(ready_spaces())
    if name in recordings:
        message = f"all that is known of {name!r} comes from a recording, which says nothing of this device"
        return Problem(message, hint="search it with its objective")
    expected = ", ".join(names) or "a study that was searched"
    hint = nearest(name, names) or f"looked in {places}"
    return Problem(f"there is no recipe and no study {name!r}", None, expected, hint)
