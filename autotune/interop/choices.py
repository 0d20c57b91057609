"""A list of any Python objects as a knob: what other tools call a categorical parameter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from autotune.space.configuration import Value
from autotune.space.knobs import Choice, Flag, OrderedValues
from autotune.space.knobs.knob import Knob
from autotune.space.knobs.values import is_number, key


@dataclass(frozen=True)
class Choices:
    """``objects`` with a label each, which is the knob's value: itself where it is a number, flag or text.

    Anything else, ``None`` too, is labelled by its text, which is what a rule compares with:
    ``scheduler != 'None'``.
    """

    objects: tuple[object, ...]
    labels: tuple[Value, ...]

    @classmethod
    def of(cls, objects: Sequence[object]) -> Choices:
        """``ValueError`` where the list is empty."""
        if not objects:
            raise ValueError("there is nothing to choose from")
        labels: list[Value] = []
        seen = set()
        for place, one in enumerate(objects):
            label = _label(one)
            while key(label) in seen:
                label = f"{label} ({place})"
            seen.add(key(label))
            labels.append(label)
        return cls(tuple(objects), tuple(labels))

    def knob(self, name: str) -> Knob:
        """Numbers that rise or fall all along are ordered values: nobody lists 16, 32, 64 by chance."""
        if {key(label) for label in self.labels} == {key(True), key(False)}:
            return Flag(name)
        numbers = [x for x in self.labels if is_number(x)]
        if len(numbers) == len(self.labels):
            rising = all(one < other for one, other in pairwise(numbers))
            falling = all(one > other for one, other in pairwise(numbers))
            if rising or falling:
                return OrderedValues(name, tuple(sorted(numbers)))
        return Choice(name, self.labels)

    def object(self, label: Value) -> object:
        """The object with this label; ``KeyError`` without one."""
        wanted = key(label)
        for one, object_ in zip(self.labels, self.objects, strict=True):
            if key(one) == wanted:
                return object_
        raise KeyError(label)


def _label(one: object) -> Value:
    plain = one.item() if isinstance(one, np.generic) else one
    if isinstance(plain, (bool, str)):
        return plain
    if isinstance(plain, (int, float)) and math.isfinite(plain):
        return plain
    return str(one)
