"""A study whose space was given: the study's code asks for the knobs by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution

from autotune.errors import InputError, Problem
from autotune.interop.choices import Choices
from autotune.interop.for_optuna.translation import Translation, UnplannedError
from autotune.space.configuration import Configuration, Value, freeze, plain
from autotune.space.knobs import Assignment, FloatRange, IntegerRange, Permutation
from autotune.space.knobs.knob import Knob
from autotune.space.knobs.values import is_number, key
from autotune.space.language.binding import bind_rule
from autotune.space.language.parser import parse
from autotune.space.language.rule import Rule
from autotune.space.language.syntax import Comparison, Literal
from autotune.space.space import Space

MADE_OF_ITEMS = (Assignment, Permutation)
"""The kinds of knob that Optuna does not know: the study asks for each part, also for the only one."""


class GivenSpace(Translation):
    """The knobs of a space by their own names; the parts of permutations and assignments by theirs.

    How the study asks is its own affair: a knob that is one of 16, 32, 64 may be asked for by
    ``suggest_categorical`` or by ``suggest_int``, as long as what was proposed can be the answer.
    """

    whole = True

    def __init__(self, space: Space) -> None:
        self.space = space
        self._parts = {
            cell.name: (knob, place)
            for knob in space.knobs
            if isinstance(knob, MADE_OF_ITEMS)
            for place, cell in enumerate(knob.cells)
        }

    @property
    def names(self) -> set[str]:
        """What a study's code may ask for."""
        return {knob.name for knob in self.space.knobs} | self._parts.keys()

    def asked(self, params: Mapping[str, Any]) -> dict[str, Value | None]:
        found: dict[str, Value | None] = {}
        for knob in self.space.knobs:
            try:
                if knob.name in params:
                    found[knob.name] = _value(knob, params[knob.name])
                elif isinstance(knob, MADE_OF_ITEMS):
                    cells = [cell for cell in knob.cells if cell.name in params]
                    indices = [_index(cell.values, params[cell.name]) for cell in cells]
                    if len(indices) == len(knob.cells):
                        found[knob.name] = knob.canonical(knob.join(indices))
            except ValueError:
                found[knob.name] = None
        return found

    def demands(self, params: Mapping[str, Any]) -> list[Rule]:
        whole, found = self.asked(params), []
        for name, (knob, place) in self._parts.items():
            if name in params and knob.name not in whole:
                values = knob.cells[place].values
                with suppress(ValueError):  # one that it cannot have
                    value = Literal(values[_index(values, params[name])])
                    found.append(bind_rule(Comparison(("==",), (parse(name), value)), knobs=self.space.knobs))
        return found

    def param(self, configuration: Configuration, name: str, distribution: BaseDistribution) -> object:
        if name in self._parts and self._parts[name][0].name in configuration:
            knob, place = self._parts[name]
            index = knob.split(configuration[knob.name])[place]
            value = knob.cells[place].values[index]
        elif name in configuration:
            value = configuration[name]
        else:
            raise UnplannedError(name)
        return _answer(name, value, distribution)


def suggest(trial: optuna.Trial, space: Space) -> dict[str, Any]:
    """A configuration for ``trial``, knob by knob, as a plain dictionary.

    It asks for each knob that exists given the earlier ones, permutations (as lists) and assignments
    (as dictionaries) too, which Optuna does not know. Only with
    :class:`~autotune.interop.optuna.AutotuneSampler` on the same space are constraints kept.
    """
    chosen: dict[str, Value] = {}
    for knob in space.knobs:
        if knob.when is None or knob.when.holds(chosen):
            chosen[knob.name] = knob.canonical(_suggested(trial, knob))
    return {name: plain(value) for name, value in chosen.items()}


def _suggested(trial: optuna.Trial, knob: Knob) -> object:
    if isinstance(knob, FloatRange) and not knob.cells:
        return trial.suggest_float(knob.name, knob.low, knob.high, log=knob.scale != "linear")
    if isinstance(knob, IntegerRange) and knob.scale == "linear":
        high = knob.low + (knob.cardinality - 1) * knob.step
        return trial.suggest_int(knob.name, knob.low, high, step=knob.step)
    if isinstance(knob, IntegerRange) and knob.scale == "log" and knob.step == 1:
        return trial.suggest_int(knob.name, knob.low, knob.high, log=True)
    if isinstance(knob, MADE_OF_ITEMS):
        return knob.join(
            [
                _index(cell.values, trial.suggest_categorical(cell.name, _scalars(cell.values)))
                for cell in knob.cells
            ]
        )
    (cell,) = knob.cells
    return _value(knob, trial.suggest_categorical(knob.name, _scalars(cell.values)))


def _scalars(values: Any) -> list[Any]:
    """Values as Optuna's storages can keep them: numbers, flags and texts; others by their text.

    So is a flag beside the number that it equals, for which Optuna takes it.
    """
    others = [value for value in values if not isinstance(value, bool)]
    return [_scalar(value, others) for value in values]


def _scalar(value: Value, others: Sequence[Value]) -> object:
    kept = value not in others if isinstance(value, bool) else isinstance(value, (int, float, str))
    return value if kept else str(plain(value))


def _by_text(value: Value) -> bool:
    """Whether a study may hold the text of it in its place."""
    return isinstance(value, bool) or not isinstance(value, (int, float, str))


def _value(knob: Knob, param: object) -> Value:
    """The knob's value for what a study holds, itself or the text of it."""
    try:
        return knob.canonical(param)
    except ValueError:
        if len(knob.cells) != 1:
            raise
        return knob.join([_index(knob.cells[0].values, param)])


def _index(values: Any, param: object) -> int:
    """The place of ``param`` among ``values``: it equals one, or one is the text of the other.

    Else ``ValueError``.
    """
    for place, value in enumerate(values):
        if _same(value, param):
            return place
    raise ValueError(f"{param!r} is none of them")


def _same(value: Value, param: object) -> bool:
    if isinstance(param, str) and _by_text(value):
        return param == str(plain(value))
    if isinstance(value, str) and not isinstance(param, str):  # 'None' for None
        return value == Choices.of([param]).labels[0]
    try:
        return key(value) == key(freeze(param))
    except TypeError:
        return False


def _answer(name: str, value: Value, distribution: BaseDistribution) -> object:
    if isinstance(distribution, CategoricalDistribution):
        for choice in distribution.choices:
            if _same(value, choice):
                return choice
    elif is_number(value):
        try:
            if distribution._contains(distribution.to_internal_repr(value)):
                return value
        except ValueError:
            pass
    raise InputError(
        Problem(
            f"the space proposes {name} = {plain(value)!r}, which the study's code does not allow",
            expected=f"a value of {distribution}",
            hint="let the suggest_... call cover the knob, or use autotune.interop.optuna.suggest",
        )
    )
