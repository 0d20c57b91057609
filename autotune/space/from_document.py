"""A space from the document that :meth:`Space.to_document` made of it, as it stands in a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from autotune.errors import InputError
from autotune.space.configuration import FrozenMap, Value
from autotune.space.knobs import (
    Assignment,
    Choice,
    Flag,
    FloatRange,
    IntegerRange,
    OrderedValues,
    Permutation,
)
from autotune.space.knobs.knob import Knob
from autotune.space.space import Space

DEVICE = "device."


def space_from_document(
    document: Mapping[str, Any], rows: Iterable[Mapping[str, Value]] | None = None
) -> Space:
    """The space, also on another machine: what its rules took from the device stands in the document.

    ``rows`` are those of a recorded space, of which a document has only the number. Compare
    :attr:`Space.hash` with the one that was stored beside the document to see that it is the very same.
    Raises :class:`InputError` for a document that is none of a space.
    """
    try:
        return Space(
            [_knob(name, described) for name, described in document["knobs"].items()],
            document["constraints"],
            workload=FrozenMap(document["workload"]),
            device=_device(document["facts"]),
            rows=rows,
        )
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        said = f"it has no {error}" if isinstance(error, KeyError) else error
        raise InputError(f"what is stored describes no space: {said}") from error


def _device(facts: Mapping[str, Value]) -> dict[str, Any]:
    """The facts of the device that rules used, by their dotted names, as the maps that they came from."""
    device: dict[str, Any] = {}
    for name in sorted(facts):  # a whole map comes before what is in it
        if name.startswith(DEVICE):
            *folders, last = name.removeprefix(DEVICE).split(".")
            inside = device
            for folder in folders:
                inside = inside.setdefault(folder, {})
            inside[last] = facts[name]
    return device


def _knob(name: str, described: Mapping[str, Any]) -> Knob:
    common = {"default": described["default"], "when": described.get("when")}
    match described:
        case {"values": values}:
            return OrderedValues(name, tuple(values), **common)
        case {"choices": choices}:
            return Choice(name, tuple(choices), **common)
        case {"flag": _}:
            return Flag(name, **common)
        case {"range": [int(low), int(high)], "scale": scale}:
            return IntegerRange(name, low, high, described.get("step", 1), scale, **common)
        case {"range": [low, high], "scale": scale}:
            return FloatRange(name, low, high, described.get("step"), scale, **common)
        case {"permutation": items}:
            return Permutation(name, tuple(items), **common)
        case {"assign": items, "to": options}:
            return Assignment(name, tuple(items), tuple(options), **common)
    raise InputError(f"the knob {name!r} is of no known kind: {', '.join(described)}")
