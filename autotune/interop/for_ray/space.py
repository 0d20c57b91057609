"""Ray Tune's search space (``tune.choice``, ``tune.uniform`` ...) as a space of knobs."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, cast

from ray.tune.search.sample import (
    Categorical,
    Domain,
    Float,
    Function,
    Integer,
    LogUniform,
    Normal,
    Quantized,
)
from ray.tune.search.variant_generator import parse_spec_vars

from autotune.errors import InputError, Problem
from autotune.interop.choices import Choices
from autotune.interop.names import doubtful, knob_names
from autotune.space.configuration import Configuration, Value
from autotune.space.knobs import FloatRange, IntegerRange, Scale
from autotune.space.knobs.knob import Knob
from autotune.space.language.rule import Rule
from autotune.space.space import Space

Path = tuple[str, ...]


@dataclass(frozen=True)
class Parameter:
    """Where a parameter stands in the nested configuration, and its knob."""

    path: Path
    knob: Knob
    choices: Choices | None = None

    def value(self, param: object) -> Value:
        """The knob's value; ``ValueError`` for what is none."""
        if self.choices is None:
            return self.knob.canonical(_inside(self.knob, param))
        for place, one in enumerate(self.choices.objects):
            if one is param or _equal(one, param):
                return self.choices.labels[place]
        return self.knob.canonical(param)

    def param(self, value: Value) -> object:
        return value if self.choices is None else self.choices.object(value)


@dataclass(frozen=True)
class RaySpace:
    """A space and the way between its configurations and Tune's."""

    space: Space
    parameters: tuple[Parameter, ...]

    def config(self, configuration: Configuration) -> dict[str, Any]:
        """The nested dictionary that a trainable gets, without the constants that Tune adds."""
        found: dict[str, Any] = {}
        for parameter in self.parameters:
            inner = found
            for key in parameter.path[:-1]:
                inner = inner.setdefault(key, {})
            inner[parameter.path[-1]] = parameter.param(configuration[parameter.knob.name])
        return found

    def configuration(self, config: Mapping[str, Any]) -> Configuration:
        """The configuration that a trainable's ``config`` has; :class:`InputError` where it has none."""
        values: dict[str, object] = {}
        for parameter in self.parameters:
            found: Any = config
            for key in parameter.path:
                if not isinstance(found, Mapping) or key not in found:
                    raise InputError(f"there is no value for {'/'.join(parameter.path)!r}")
                found = found[key]
            try:
                values[parameter.knob.name] = parameter.value(found)
            except ValueError as error:
                raise InputError(str(error)) from None
        return self.space.configuration(values)


def ray_space(config: Mapping[str, Any], rules: Sequence[Rule] = ()) -> RaySpace | None:
    """The space that ``config`` describes; ``None`` where it holds constants alone.

    The names of knobs are the keys, those of nested dictionaries joined by ``/``, with ``_`` for what no
    knob's name may hold: ``{"model": {"lr": ...}}`` is ``model_lr`` in a rule. Where two come to the same,
    the later one is ``model_lr_2``, and a warning says so where a rule speaks of the other alone. Tune knows
    no defaults: here they are the middles of ranges.

    Raises :class:`InputError` with everything that has no knob: ``grid_search``, ``sample_from``,
    normal distributions, and a ``choice`` among what has to be searched itself.
    """
    _, domains, grids = parse_spec_vars(dict(config))
    problems = [_grid(path) for path, _ in grids]
    names = knob_names("/".join(map(str, path)) for path, _ in domains)
    parameters: list[Parameter] = []
    for path, domain in domains:
        try:
            parameters.append(_parameter(path, names["/".join(map(str, path))], domain))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    if not parameters:
        return None
    for text in doubtful(names, {name for rule in rules for name in rule.knobs}):
        warnings.warn(text, stacklevel=2)
    return RaySpace(Space([parameter.knob for parameter in parameters], rules), tuple(parameters))


def _grid(path: Sequence[object]) -> Problem:
    name = "/".join(map(str, path))
    hint = "write tune.choice: no value is tried twice, and a small space is tried whole"
    return Problem(
        f"{name} is a grid_search, which asks for every value and leaves nothing to choose", hint=hint
    )


def _parameter(path: Sequence[object], name: str, domain: Domain) -> Parameter:
    where = "/".join(map(str, path))
    if not all(isinstance(key, str) for key in path):
        said = f"{where} stands in a list, or under a key that is no text"
        raise InputError(Problem(said, expected="parameters in dictionaries alone, whose keys are texts"))
    try:
        knob, choices = _knob(name, domain)
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None
    keys = cast("Path", tuple(path))
    return Parameter(keys, replace(knob, default=_middle(knob), when=knob.when), choices)


def _knob(name: str, domain: Domain) -> tuple[Knob, Choices | None]:
    sampler, step = domain.get_sampler(), None
    if isinstance(sampler, Quantized):
        sampler, step = sampler.get_sampler(), sampler.q
    if isinstance(domain, Function):
        raise ValueError("sample_from has no range to search: use tune.choice, tune.uniform or tune.randint")
    if isinstance(sampler, Normal):
        raise ValueError("a normal distribution has no bounds to search in: use tune.uniform")
    scale: Scale = "log" if isinstance(sampler, LogUniform) else "linear"
    if isinstance(domain, Categorical):
        _, inner, grids = parse_spec_vars({"options": domain.categories})
        if inner or grids:
            raise ValueError(
                "a choice has something to search inside: take it out of there, or give"
                ' AutotuneSearch a Space whose knob has a condition, when="..."'
            )
        choices = Choices.of(_each_once(domain.categories))
        return choices.knob(name), choices
    if isinstance(domain, Integer):
        return _integers(name, domain, step, scale), None
    if isinstance(domain, Float):
        low, high = domain.lower, domain.upper
        if step is not None:
            low, high = _multiple(low, step), _multiple(high, step)
        return FloatRange(name, low, high, step, scale), None
    raise ValueError(f"a {type(domain).__name__} is not known")


def _each_once(options: Sequence[object]) -> list[object]:
    """Without what is listed again, so that Tune draws it more often: it would be tried twice."""
    plain = (bool, int, float, str)
    return list({(type(one), one if isinstance(one, plain) else id(one)): one for one in options}.values())


def _integers(name: str, domain: Integer, step: int | None, scale: Scale) -> IntegerRange:
    """Tune leaves the upper bound out, save where a range is quantized."""
    if step is None or step == 1:
        return IntegerRange(name, domain.lower, domain.upper - 1, scale=scale)
    low, high = -(-domain.lower // step) * step, domain.upper // step * step
    return IntegerRange(name, int(low), int(high), int(step), scale)


def _inside(knob: Knob, param: object) -> object:
    """``param`` without what is beyond the range by a rounding: Tune draws 19 * 0.05, which exceeds 0.95."""
    if isinstance(knob, FloatRange) and knob.step is not None and isinstance(param, (int, float)):
        within = min(max(param, knob.low), knob.high)
        return within if abs(param - within) < 1e-9 * knob.step else param
    return param


def _equal(one: object, other: object) -> bool:
    """Whether two objects of one type are equal; arrays and tensors of several elements do not say."""
    try:
        return type(one) is type(other) and bool(one == other)
    except (ValueError, RuntimeError):
        return False


def _multiple(bound: float, step: float) -> float:
    """The multiple of ``step`` that Tune takes ``bound`` for.

    In decimal, as a range counts its steps: from ``3 * 0.1``, which is more than 0.3, to 0.9 there are five.
    """
    return float(round(bound / step) * Decimal(repr(float(step))))


def _middle(knob: Knob) -> Value:
    """Where a search may well begin: half way along its scale; the first of choices."""
    if isinstance(knob, FloatRange) and not knob.cells:
        low, high = knob.low, knob.high
        return _geometric_mean(low, high) if knob.scale == "log" else low + (high - low) / 2
    if not knob.ordered:
        return knob.default
    values = knob.cells[0].values
    if isinstance(knob, (IntegerRange, FloatRange)) and knob.scale == "log":
        wanted = _geometric_mean(knob.low, knob.high)
        return knob.canonical(knob.low + round((wanted - knob.low) / (knob.step or 1)) * (knob.step or 1))
    return values[(len(values) - 1) // 2]


def _geometric_mean(low: float, high: float) -> float:
    """Also where a float cannot hold the product."""
    product = low * high
    if sys.float_info.min <= product <= sys.float_info.max:
        return math.sqrt(product)
    return math.sqrt(low) * math.sqrt(high)
