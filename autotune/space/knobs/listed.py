"""Knobs that take one of a list: ordered values, choices, flags."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from autotune.space.configuration import Value, plain
from autotune.space.knobs.knob import Listed, Ordered
from autotune.space.knobs.values import distinct, key, listing, scalars


class _OneOf(Listed):
    """A knob that takes one of a tuple of values."""

    @cached_property
    def _places(self) -> dict[Hashable, int]:
        return {key(value): place for place, value in enumerate(self.options)}

    def _first(self) -> Value:
        return self.options[0]

    @property
    def expected(self) -> str:
        return f"one of {listing(self.options)}"

    def split(self, value: Value) -> tuple[int, ...]:
        place = self._places.get(key(value))
        if place is None:
            raise self._refuse(value)
        return (place,)

    def sample(self, rng: np.random.Generator) -> Value:
        return self.options[int(rng.integers(len(self.options)))]

    def distance(self, one: Value, other: Value) -> float:
        return float(self.split(one) != self.split(other))


@dataclass(frozen=True)
class OrderedValues(Ordered, _OneOf):
    """One of ``values`` (numbers or texts), whose order as listed says what is near to what."""

    values: tuple[Value, ...]

    def _check(self) -> None:
        values = scalars("values", self.values)
        object.__setattr__(self, "values", values)

    @property
    def options(self) -> tuple[Value, ...]:
        return self.values

    @property
    def domain(self) -> dict[str, object]:
        return {"values": plain(self.values)}

    def neighbours(self, value: Value) -> tuple[Value, ...]:
        return self.next_to(value)

    def position(self, value: Value) -> float:
        return self.split(value)[0] / max(len(self.values) - 1, 1)


@dataclass(frozen=True)
class Choice(_OneOf):
    """One of ``choices``, none of them nearer to one than to another. Also lists and maps."""

    choices: tuple[Value, ...]

    def _check(self) -> None:
        object.__setattr__(self, "choices", distinct("choices", self.choices))

    @property
    def options(self) -> tuple[Value, ...]:
        return self.choices

    @property
    def domain(self) -> dict[str, object]:
        return {"choices": plain(self.choices)}

    def neighbours(self, value: Value) -> tuple[Value, ...]:
        (place,) = self.split(value)
        return self.choices[:place] + self.choices[place + 1 :]


@dataclass(frozen=True)
class Flag(_OneOf):
    """On or off. The default is ``True`` unless given."""

    def _check(self) -> None:
        pass

    def _first(self) -> Value:
        return True

    @property
    def options(self) -> tuple[Value, ...]:
        return (False, True)

    @property
    def expected(self) -> str:
        return "true or false"

    @property
    def domain(self) -> dict[str, object]:
        return {"flag": self.default}

    def neighbours(self, value: Value) -> tuple[Value, ...]:
        return (not self.join(self.split(value)),)
