"""Knobs of the kind ``range`` in a space file: bounds, scale and step, each error at its own number."""

from __future__ import annotations

from decimal import Decimal
from typing import TypeAlias

from autotune.errors import InputError, Problem
from autotune.space.knobs import FloatRange, IntegerRange, Scale
from autotune.space.knobs.knob import Knob
from autotune.space.knobs.ranges import LARGEST
from autotune.space.reading.converters import items, one_of, scalar
from autotune.space.reading.fields import Fields, Problems, wrong
from autotune.space.reading.yaml_nodes import YamlList, YamlNode, YamlScalar

Number: TypeAlias = int | float


def read_range(name: str, title: str, fields: Fields) -> Knob:
    """Integers, or floats where a bound or the step is one."""
    node = fields.entries["range"].value
    problems = Problems()
    bounds = problems.attempt(lambda: _bounds(node, fields.name("range")))
    step = problems.attempt(lambda: _step(fields))
    scale = problems.attempt(lambda: _scale(fields))
    problems.raise_all()
    assert bounds is not None and scale is not None and isinstance(node, YamlList)
    floats = any(isinstance(number, float) for number in (*bounds, step))
    for item, bound in zip(node.items, bounds, strict=True):
        _check_bound(bound, item, fields.name("range"), scale, floats=floats)
    low, high = bounds
    if low > high:
        message = f"{fields.name('range')} is reversed: {low} is above {high}"
        raise InputError(Problem(message, node.where, "[low, high]", f"write [{high}, {low}]"))
    if scale == "log2" and step is not None:
        hint = "a log2 scale runs over the powers of two; leave the step out"
        raise InputError(
            Problem(f"{title} has a step on a log2 scale", fields.entries["step"].where, hint=hint)
        )
    # In decimal, as the knob counts its steps: of floats 0.35 - 0.1 is less than 0.25.
    width = Decimal(repr(high)) - Decimal(repr(low))
    if step is not None and 0 < width < Decimal(repr(step)):
        message = f"{title} has a step of {step}, which is longer than the range"
        hint = f"only {low} is left; leave the step out, or the knob"
        raise InputError(Problem(message, fields.entries["step"].where, f"at most {width}", hint))
    if floats:
        return FloatRange(name, float(low), float(high), None if step is None else float(step), scale)
    return IntegerRange(name, int(low), int(high), 1 if step is None else int(step), scale)


def _number(node: YamlNode, title: str) -> Number:
    value = scalar(node, title) if isinstance(node, YamlScalar) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong(node, title, "a number")
    return value


def _bounds(node: YamlNode, title: str) -> tuple[Number, Number]:
    form = "[low, high], two numbers"
    if not isinstance(node, YamlList):
        raise wrong(node, title, form)
    if len(node.items) != 2:
        hint = "a third number is the step: write step: beside range" if len(node.items) == 3 else ""
        count = f"{len(node.items)} value{'' if len(node.items) == 1 else 's'}"
        raise InputError(Problem(f"{title} has {count}", node.where, form, hint))
    problems = Problems()
    numbers = items(node, title, _number, problems)
    problems.raise_all()
    return numbers[0], numbers[1]


def _step(fields: Fields) -> Number | None:
    node = fields.node("step")
    if node is None:
        return None
    step = _number(node, fields.name("step"))
    if step <= 0:
        raise wrong(node, fields.name("step"), "a number above 0")
    return step


def _check_bound(bound: Number, node: YamlNode, title: str, scale: Scale, *, floats: bool) -> None:
    """Raise :class:`InputError` where the scale or the type of the range cannot have this bound."""
    expected = ""
    if scale != "linear" and bound <= 0:
        expected = "bounds above 0, or scale: linear"
    elif scale == "log2" and not floats and int(bound) & (int(bound) - 1):
        below = 1 << (int(bound).bit_length() - 1)
        expected = f"a power of two, such as {below} or {2 * below}"
    elif not floats and abs(bound) > LARGEST:
        raise InputError(Problem(f"{title} has the bound {bound}", node.where, "integers within 2^53 of 0"))
    if expected:
        raise InputError(Problem(f"{title} has the bound {bound} on a {scale} scale", node.where, expected))


def _scale(fields: Fields) -> Scale:
    node = fields.node("scale")
    scale: Scale = "linear"
    return scale if node is None else one_of("linear", "log", "log2")(node, fields.name("scale"))
