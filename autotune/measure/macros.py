"""Macros of a C or CUDA C source, as options of its compiler."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from autotune.errors import Problem, nearest
from autotune.space.configuration import FrozenMap, Value, freeze, plain


def definitions(macros: Mapping[str, Value]) -> list[str]:
    """``-DNAME=VALUE`` for each: a number or a text as it is, a flag as 1 or 0.

    C does not know ``True``: in an ``#if`` it would be 0, like any name that is not defined. Raises
    ``TypeError`` for a list or a mapping.
    """
    return [f"-D{name}={_written(name, freeze(value))}" for name, value in macros.items()]


def macro_problems(
    owner: str, macros: Mapping[str, str], knobs: Collection[str], source: str
) -> list[Problem]:
    """The knobs for which a class sets macros of its ``source``, but which the space does not have."""
    return [
        Problem(
            f"{owner}.macros has the knob {knob!r}, but no knob of the space has that name",
            expected=f"the name of a knob: {', '.join(sorted(knobs))}",
            hint=nearest(knob, knobs) or f"leave {macro} to a #define in {source}",
        )
        for knob, macro in macros.items()
        if knob not in knobs
    ]


def _written(name: str, value: Value) -> str:
    if isinstance(value, (tuple, FrozenMap)):
        raise TypeError(
            f"the macro {name} cannot be set to {plain(value)!r}: it takes a number, a flag or a text; "
            "make one macro of each part"
        )
    return str(int(value)) if isinstance(value, bool) else str(value)
