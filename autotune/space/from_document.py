"""The inverse of :meth:`Space.to_document`: a space from the document that a store keeps."""

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
    """The same space on any machine: the document has the facts of the device that its rules use.

    ``rows`` are the configurations of a recorded space; a document has only their number. To be sure that
    the space is the same, compare :attr:`Space.hash` with the hash that was stored beside the document.
    Raises :class:`InputError` where the document does not describe a space.
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
        raise InputError(f"the stored document describes no space: {said}") from error


def _device(facts: Mapping[str, Value]) -> dict[str, Any]:
    """Nested maps of the facts of the device, whose dotted names (``device.cache.l1``) are in ``facts``."""
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
