"""A plain Python function as an objective."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from autotune.errors import Problem, nearest
from autotune.measure.objective import Context, MeasureFunction, Objective
from autotune.space.configuration import Configuration, Value

WHOLE = ("configuration", "config")
"""A function whose only parameter has one of these names is given the whole configuration."""

WORKLOAD = "workload"
"""A parameter of this name is given the workload, unless it is a knob."""

REPORT = "report"
"""A parameter of this name is given the reporter (:mod:`autotune.measure.reports`), unless it is a knob."""

_GIVEN = (WORKLOAD, REPORT)

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class FunctionObjective(Objective):
    """``f(**knobs)`` or ``f(configuration)``; it returns a number for the first goal, or numbers by name.

    A parameter called ``workload`` is given the workload, one called ``report`` the
    :class:`~autotune.measure.reports.Reporter` of the trial, and one with the name of a fact of the workload
    that fact. As in rules, a knob hides a fact of the same name. A mapping is passed as a new dictionary for
    each call, since libraries ask for one. Knobs that are inactive in a configuration are not passed, so the
    parameters of conditional knobs need defaults.
    """

    def __init__(self, context: Context, function: MeasureFunction, knobs: Collection[str] = ()) -> None:
        super().__init__(context)
        self.function = function
        self._parameters = _parameters(function)
        self._facts = {
            p.name: context.workload[p.name]
            for p in self._parameters.values()
            if p.kind in _BY_NAME and p.name in context.workload and p.name not in (*knobs, *_GIVEN, *WHOLE)
        }
        self._given = (*_GIVEN, *self._facts)
        self._required = [p.name for p in self._parameters.values() if _is_required(p)]

    @property
    def _name(self) -> str:
        return getattr(self.function, "__name__", repr(self.function))

    def measure(self, loaded: Any, rng: np.random.Generator) -> Mapping[str, float] | float | None:
        return self.function(**self._arguments(loaded))

    def problems(self, knobs: Collection[str]) -> list[Problem]:
        """Where the parameters of the function and the knobs of a space do not fit each other."""
        parameters = self._parameters
        if not knobs or self._takes_whole(knobs):
            return []
        name = self._name
        named = [p for p in parameters.values() if p.kind in _BY_NAME]
        takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
        problems = []
        for parameter in parameters.values():
            required = parameter.default is inspect.Parameter.empty
            if parameter.kind is inspect.Parameter.POSITIONAL_ONLY and required:
                message = f"{name}() takes {parameter.name!r} by position only, but knobs are passed by name"
                problems.append(Problem(message))
            elif parameter in named and required and parameter.name not in (*knobs, *self._given):
                message = f"{name}() needs {parameter.name!r}, and no knob or workload fact has that name"
                known = (*knobs, *self.context.workload)
                hint = nearest(parameter.name, known)
                problems.append(Problem(message, expected=", ".join(known), hint=hint))
        names = [parameter.name for parameter in named]
        for knob in knobs:
            if knob not in names and not takes_any:
                message = f"{name}() has no parameter for the knob {knob!r}"
                expected = ", ".join(names) or "a parameter for each knob, or one called configuration"
                problems.append(Problem(message, expected=expected, hint=nearest(knob, names)))
        return problems

    def without_default(self, conditional: Collection[str]) -> list[Problem]:
        """The parameters of ``conditional`` knobs that lack a default: those knobs are not always passed."""
        return [
            Problem(
                f"{self._name}() needs {name!r}, a knob that has no value where its 'when' does not hold",
                expected="a default",
                hint=f"write {name}=None",
            )
            for name in self._required
            if name in conditional
        ]

    def _takes_whole(self, knobs: Collection[str]) -> bool:
        required = [name for name in self._parameters if name not in self._given]
        return len(required) == 1 and required[0] in WHOLE and required[0] not in knobs

    def _arguments(self, configuration: Configuration) -> dict[str, Any]:
        arguments = {name: _given(fact) for name, fact in self._facts.items()}
        if self._takes_whole(configuration):
            arguments |= {name: configuration for name in self._parameters if name not in self._given}
        else:
            arguments |= {name: _given(value) for name, value in configuration.items()}
        if WORKLOAD in self._parameters:
            arguments.setdefault(WORKLOAD, _given(self.context.workload))
        if REPORT in self._parameters:
            arguments.setdefault(REPORT, self.report)
        if missing := [name for name in self._required if name not in arguments]:
            names = ", ".join(map(repr, missing))
            hint = f"give the parameter of a knob with a 'when' a default, {missing[0]}=None say"
            raise TypeError(f"{self._name}() needs {names}, which this configuration does not have: {hint}")
        return arguments


def _given(value: Value | Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):
        return {name: _given(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return tuple(_given(item) for item in value)
    return value


def _is_required(parameter: inspect.Parameter) -> bool:
    return parameter.kind in _BY_NAME and parameter.default is inspect.Parameter.empty


def _parameters(function: MeasureFunction) -> Mapping[str, inspect.Parameter]:
    """The parameters by name. What has no signature (some functions written in C) may take any knob."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {"knobs": inspect.Parameter("knobs", inspect.Parameter.VAR_KEYWORD)}
