"""The facts of a workload or a device, as Python hands them over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from itertools import chain

from autotune.errors import InputError, Problem
from autotune.space.configuration import FrozenMap, freeze

_EXPECTED = "facts by their names: {'m': 960, 'n': 960}"


def facts_of(kind: str, given: object) -> FrozenMap:
    """``given`` as an immutable map of facts; ``kind`` (``"workload"``, say) names them in messages.

    Raises :class:`InputError` for anything but a mapping of texts to values that a rule can use.
    """
    if isinstance(given, FrozenMap):
        return given
    if not isinstance(given, Mapping):
        hint = "dataclasses.asdict makes a mapping of a data class" if is_dataclass(given) else ""
        raise InputError(
            Problem(f"the {kind} is of the type {type(given).__name__}", expected=_EXPECTED, hint=hint)
        )
    if problems := list(chain.from_iterable(_problems(kind, *item) for item in given.items())):
        raise InputError(problems)
    return FrozenMap(given)


def _problems(kind: str, name: object, value: object) -> Iterator[Problem]:
    if not isinstance(name, str):
        yield Problem(f"a fact of the {kind} is named {name!r:.80}", expected="a text")
        return
    try:
        freeze(value)
    except TypeError:
        what = "None" if value is None else f"of the type {type(value).__name__}"
        hint = "its method tolist() makes a list of it" if hasattr(value, "tolist") else ""
        if isinstance(value, type):  # numpy.float32, which has that method as well
            hint = f"its name is a text: {value.__name__!r}"
        expected = "a number, a flag, a text, or a list or a mapping of these"
        yield Problem(f"{name!r} of the {kind} is {what}", expected=expected, hint=hint)
