"""A kernel with tuned configurations: what a launch does, and how a case is tuned."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotune.errors import AutotuneError
from autotune.hook.agreement import agree, common_store, once
from autotune.hook.kernels.checks import check_knobs, check_not_given
from autotune.hook.kernels.device import (
    INTERPRETER,
    device_index,
    device_name,
    is_capturing,
    is_interpreted,
    several_devices,
)
from autotune.hook.kernels.settings import Settings
from autotune.hook.kernels.source import source_hash
from autotune.hook.kernels.space import KernelSpace
from autotune.hook.kernels.versions import versions
from autotune.hook.lookup.choosing import Choice, choose, has_other_versions, nearest_winners
from autotune.hook.recipes.case import Case, is_tensor
from autotune.hook.recipes.file import read_known, write_recipe
from autotune.hook.recipes.recipe import Known, Recipe
from autotune.hook.tuning import ASKED, Budget, budget_asked

if TYPE_CHECKING:
    from autotune.hook.kernels.call import KernelCall
    from autotune.session.result import Result

MOST_CALLS = 65_536
"""How many different calls' choices are cached; when they are more, all are dropped."""

_NUMBERS = frozenset({int, float, bool})


class TunedKernel:
    """Launched as the kernel that it wraps: ``kernel[grid](*args, **kwargs)``, without the knobs.

    Once a case has its configuration, a launch looks it up by the values of the key, the types of the
    arguments and the device. It may be called from several threads: at worst two of them look up the same.
    """

    def __init__(self, function: Any, names: tuple[str, ...], settings: Settings, space: KernelSpace) -> None:
        self.fn = function
        self.arg_names = names
        self.settings = settings
        self._space = space
        self._run = function.run
        self._places = tuple((names.index(name), name) for name in settings.key)
        self._options: dict[Any, dict[str, Any]] = {}
        self._choices: dict[str, Choice] = {}
        self._tried: set[str] = set()
        """Cases that were tuned on request, with or without success; they are not tuned again."""
        self._filed: tuple[Recipe, ...] | None = None
        self._stored: tuple[Recipe, ...] | None = None
        self._interpreted = is_interpreted(function)
        self._several_devices = True  # until the first call has loaded PyTorch and looked
        self.__name__ = settings.name
        self.__doc__ = getattr(function, "__doc__", None)

    def __repr__(self) -> str:
        return f"<autotune.kernel {self.settings.name}, key: {', '.join(self.settings.key) or 'none'}>"

    def __getitem__(self, grid: Any) -> Any:
        return partial(self._launch, grid)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """As Triton's kernels have it, for decorators above this one."""
        return self._run(*args, grid=grid, warmup=warmup, **kwargs, **self._chosen(grid, args, kwargs))

    def warmup(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        """Compile for a call with such arguments, without launching."""
        return self.fn.warmup(*args, grid=grid, **kwargs, **self._chosen(grid, args, kwargs))

    def _launch(self, grid: Any, /, *args: Any, **kwargs: Any) -> Any:
        return self._run(*args, grid=grid, warmup=False, **kwargs, **self._chosen(grid, args, kwargs))

    def _chosen(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The knobs of a call. This is what a launch costs more than Triton's own."""
        call = call_key(self._places, args, kwargs)
        if self._several_devices:
            call.append(device_index(args, kwargs))
        seen = tuple(call)
        if ASKED.get() is None:
            try:
                found = self._options.get(seen)
            except TypeError:  # an unhashable value in the key, which _look_up reports
                found = None
            if found is not None:
                return found
        return self._look_up(seen, grid, args, kwargs)

    @cached_property
    def _source(self) -> str:
        """Hash of its source. Not known before the first call: what it calls may be defined after it."""
        return source_hash(self.fn)

    @cached_property
    def _versions(self) -> Mapping[str, str]:
        return versions()

    # -- choosing ------------------------------------------------------------------------------

    def choice(self, *args: Any, **kwargs: Any) -> Choice:
        """What a call with these arguments takes, and why. Never tunes."""
        case, device = self._case(args, kwargs)
        return self._choose(case, device)

    def forget(self) -> None:
        """Choose anew from now on: the recipes or the store may have changed."""
        self._options, self._choices, self._tried, self._filed, self._stored = {}, {}, set(), None, None

    def _look_up(self, seen: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        from autotune.hook.kernels.call_objective import launch_options

        case, device = self._case(args, kwargs)
        self._several_devices = several_devices()
        chosen = self._choose(case, device)
        budget = budget_asked() if self.settings.asks else None
        topic = _topic(self.settings.name, case, device)
        known = chosen.how == "exact" and not chosen.stale
        if budget is not None and not known and topic not in self._tried and not is_capturing():
            chosen = self._tune_once(case, device, self._call(grid, args, kwargs), budget)
        if len(self._options) >= MOST_CALLS:
            self._options = {}
        options = self._options[seen] = launch_options(chosen.configuration)
        return options

    def _case(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Case, str]:
        arguments = {**self.settings.defaults, **dict(zip(self.arg_names, args, strict=False)), **kwargs}
        case = Case.of(self.settings.key, arguments)
        given = {*self.arg_names[: len(args)], *kwargs}
        check_not_given([knob.name for knob in self._space.space(case).knobs], given, self.settings.name)
        tensor = next((value for value in arguments.values() if is_tensor(value)), None)
        return case, INTERPRETER if self._interpreted else device_name(tensor)

    def _choose(self, case: Case, device: str) -> Choice:
        topic = _topic(self.settings.name, case, device)
        if topic not in self._choices:
            own = self._choose_alone(case, device)
            self._choices[topic] = _agreed(own, agree(topic, lambda: _text(own), common_store()))
        return self._choices[topic]

    def _choose_alone(self, case: Case, device: str) -> Choice:
        """This rank's choice. The store is only read if the file has no recipe for exactly this case."""
        settings = self.settings
        space = self._space.space(case)
        check_knobs([knob.name for knob in space.knobs], settings.key, self.arg_names, settings.name)
        known = _on(device, self._from_file())
        chosen = choose(case, known, space, self._source, self._versions)
        if chosen.how == "exact":
            return chosen
        known += _on(device, self._from_store())
        return choose(case, known, space, self._source, self._versions)

    def _from_file(self) -> tuple[Recipe, ...]:
        """The kernel's recipes in its file, whatever the device; read once."""
        if self._filed is None:
            self._filed = read_known(self.settings.recipes).of(self.settings.name).telling.recipes
        return self._filed

    def _from_store(self) -> tuple[Recipe, ...]:
        """The kernel's recipes in the store, whatever the device; read once."""
        from autotune.hook.recipes.stored import stored_recipes

        name = self.settings.name
        if self._stored is None:
            try:
                found = stored_recipes(name, self.settings.key, self.settings.budget.store)
                self._stored = Known(tuple(map(self._of_kernel, found))).telling.recipes
            except AutotuneError as error:  # a store that fails does no harm to a run
                warnings.warn(f"{name}: its recipe is chosen without the store: {error}", stacklevel=2)
                self._stored = ()
        return self._stored

    def _of_kernel(self, recipe: Recipe) -> Recipe:
        """A recipe of the store, whose source is of whole files, with the kernel's if these are the same."""
        from autotune.provenance.code.frozen import hash_of

        same = recipe.files and hash_of(Path(recipe.folder), recipe.files) == recipe.source
        return replace(recipe, source=self._source) if same else recipe

    # -- tuning --------------------------------------------------------------------------------

    def tune(self, *args: Any, grid: Any, **kwargs: Any) -> Result:
        """Search the configurations for a call with these arguments, and write its recipe.

        The tensors of the call are copied and not written to. The search runs in this process, which a
        configuration that crashes takes down. Its budget is that of the :func:`autotune.tuning` block around
        it, or else of the decorator. In a distributed job, call this on one rank only; the others use its
        recipe from the next job on.
        """
        case, device = self._case(args, kwargs)
        result = self._search(case, device, self._call(grid, args, kwargs), budget_asked() or Budget())
        self.forget()
        return result

    def _call(self, grid: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> KernelCall:
        from autotune.hook.kernels.call import KernelCall

        return KernelCall(self.fn, grid, args, kwargs, self.arg_names)

    def _tune_once(self, case: Case, device: str, call: KernelCall, budget: Budget) -> Choice:
        """Tune on the first rank to get here, and choose again; the other ranks take its choice."""
        topic, before = _topic(self.settings.name, case, device), self._choose(case, device)

        def search() -> str:
            try:
                self._search(case, device, call, budget)
            except AutotuneError as error:  # the run goes on
                warnings.warn(f"tuning {self.settings.name}: {error}", stacklevel=2)
            return _text(self._choose_anew(case, device))

        text = once(f"{topic}/tuned", search, lambda: _text(before), common_store())
        self._tried.add(topic)
        self._choices[topic] = _agreed(self._choose_anew(case, device), text)
        return self._choices[topic]

    def _choose_anew(self, case: Case, device: str) -> Choice:
        self._filed = self._stored = None
        return self._choose_alone(case, device)

    def _search(self, case: Case, device: str, call: KernelCall, budget: Budget) -> Result:
        from autotune.hook.kernels.search import search_case
        from autotune.session.result import EXHAUSTED

        winners = nearest_winners(case, [*self._from_file(), *self._from_store()], device)
        spec, fresh = self._space.spec(case), self._is_outdated(case, device)
        result = search_case(spec, case, device, call, self.settings, budget, winners, fresh=fresh)
        recipe = self._recipe(result, case, device) if result.best is not None else None
        if recipe is not None and recipe.only_default_tried:
            if result.reason != EXHAUSTED:
                warnings.warn(_too_short(recipe, result.reason), stacklevel=2)
        elif recipe is not None:
            write_recipe(self.settings.recipes, recipe)
        return result

    def _is_outdated(self, case: Case, device: str) -> bool:
        """Whether its study was measured with other packages: it is of this source, and would go on."""
        known = self._choose(case, device)
        recipe = known.recipe if known.how == "exact" else None
        return recipe is not None and has_other_versions(recipe, self._versions)

    def _recipe(self, result: Result, case: Case, device: str) -> Recipe:
        from autotune.hook.kernels.search import recipe_of_result

        return recipe_of_result(result, case, device, self.settings, self._source)


def call_key(
    places: tuple[tuple[int, str], ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Any]:
    """What tells calls apart: the arguments at ``places``, and the types of all numbers and tensor elements.

    Without the types, ``1``, ``True`` and ``1.0`` would be the same call, since they are equal.
    """
    given = len(args)
    call = [args[place] if place < given else kwargs.get(name) for place, name in places]
    call += [kind if (kind := type(value)) in _NUMBERS else getattr(value, "dtype", None) for value in args]
    if kwargs:
        call += [
            (name, kind if (kind := type(value)) in _NUMBERS else getattr(value, "dtype", None))
            for name, value in kwargs.items()
        ]
    return call


def _too_short(recipe: Recipe, reason: str) -> str:
    case = ", ".join(f"{name} {value}" for name, value in recipe.case.values.items())
    return (
        f"tuning {recipe.name} for {case or 'its only case'}: there was only room for the default ({reason}),"
        " so no recipe was written; give it more time or trials: tuning(time=...), or time= in the decorator"
    )


def _on(device: str, recipes: tuple[Recipe, ...]) -> list[Recipe]:
    return [recipe for recipe in recipes if recipe.device == device]


def _text(choice: Choice) -> str:
    return json.dumps(dict(choice.configuration))


def _agreed(own: Choice, text: str) -> Choice:
    """``own``, or the first rank's choice (``text``) if that knew other recipes and chose differently."""
    agreed = json.loads(text)
    return own if agreed == dict(own.configuration) else Choice(agreed, own.how)


def _topic(name: str, case: Case, device: str) -> str:
    """A short name for a kernel's case on a device, the same on all ranks."""
    text = json.dumps([name, device, case.values, case.types], sort_keys=True)
    return f"{name}/{hashlib.sha256(text.encode()).hexdigest()[:16]}"
