"""Knobs that take one of a list: ordered values, choices, flags."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from autotune.space.configuration import Value, freeze, plain
from autotune.space.knob import Cell, Knob
from autotune.space.knob_values import distinct, key, listing, one_hot, scalars


class _Listed(Knob):
    """A knob that takes one of a tuple of values, as :attr:`_options` gives them."""

    @property
    def _options(self) -> tuple[Value, ...]:
        raise NotImplementedError

    @cached_property
    def _places(self) -> dict[Hashable, int]:
        return {key(value): place for place, value in enumerate(self._options)}

    def _first(self) -> Value:
        return self._options[0]

    @property
    def expected(self) -> str:
        return f"one of {listing(self._options)}"

    @property
    def cardinality(self) -> int:
        return len(self._options)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        return (Cell(self.name, self._options),)

    def join(self, indices: Sequence[int]) -> Value:
        return self._options[indices[0]]

    def split(self, value: Value) -> tuple[int, ...]:
        place = self._places.get(key(value))
        if place is None:
            raise self._refuse(value)
        return (place,)

    def canonical(self, value: object) -> Value:
        try:
            frozen = freeze(value)
        except TypeError:
            raise self._refuse(value) from None
        return self._options[self.split(frozen)[0]]

    def sample(self, rng: np.random.Generator) -> Value:
        return self._options[int(rng.integers(len(self._options)))]


@dataclass(frozen=True)
class OrderedValues(_Listed):
    """One of ``values`` (numbers or texts), whose order as listed says what is near to what."""

    values: tuple[Value, ...]

    def _check(self) -> None:
        values = scalars("values", self.values)
        object.__setattr__(self, "values", values)

    @property
    def _options(self) -> tuple[Value, ...]:
        return self.values

    @property
    def domain(self) -> dict[str, object]:
        return {"values": plain(self.values)}

    def neighbours(self, value: Value) -> tuple[Value, ...]:
        (place,) = self.split(value)
        return self.values[max(place - 1, 0) : place] + self.values[place + 1 : place + 2]

    @property
    def ordered(self) -> bool:
        return True

    @property
    def width(self) -> int:
        return 1

    def encode(self, value: Value) -> tuple[float, ...]:
        return (self.split(value)[0] / max(len(self.values) - 1, 1),)

    def distance(self, one: Value, other: Value) -> float:
        return abs(self.encode(one)[0] - self.encode(other)[0])


@dataclass(frozen=True)
class Choice(_Listed):
    """One of ``choices``, none of them nearer to one than to another. Also lists and maps."""

    choices: tuple[Value, ...]

    def _check(self) -> None:
        object.__setattr__(self, "choices", distinct("choices", self.choices))

    @property
    def _options(self) -> tuple[Value, ...]:
        return self.choices

    @property
    def domain(self) -> dict[str, object]:
        return {"choices": plain(self.choices)}

    def neighbours(self, value: Value) -> tuple[Value, ...]:
        (place,) = self.split(value)
        return self.choices[:place] + self.choices[place + 1 :]

    @property
    def ordered(self) -> bool:
        return False

    @property
    def width(self) -> int:
        return len(self.choices)

    def encode(self, value: Value) -> tuple[float, ...]:
        return one_hot(self.split(value)[0], len(self.choices))

    def distance(self, one: Value, other: Value) -> float:
        return float(self.split(one) != self.split(other))


@dataclass(frozen=True)
class Flag(_Listed):
    """On or off. The default is ``True`` unless given."""

    def _check(self) -> None:
        pass

    def _first(self) -> Value:
        return True

    @property
    def _options(self) -> tuple[Value, ...]:
        return (False, True)

    @property
    def expected(self) -> str:
        return "true or false"

    @property
    def domain(self) -> dict[str, object]:
        return {"flag": self.default}

    def neighbours(self, value: Value) -> tuple[Value, ...]:
        return (not self.join(self.split(value)),)

    @property
    def ordered(self) -> bool:
        return False

    @property
    def width(self) -> int:
        return 1

    def encode(self, value: Value) -> tuple[float, ...]:
        return (float(self.split(value)[0]),)

    def distance(self, one: Value, other: Value) -> float:
        return float(self.split(one) != self.split(other))
