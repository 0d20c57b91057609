"""Knobs that take a number from a range: integers and floats, on a linear or logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from functools import cached_property
from typing import Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from autotune.space.configuration import Value, freeze
from autotune.space.knobs.knob import Cell, Listed, Ordered
from autotune.space.knobs.values import as_number

Scale: TypeAlias = Literal["linear", "log", "log2"]
_Floats = TypeVar("_Floats", float, NDArray[np.float64])

LARGEST = 2**53
"""Integers beyond this are not all exact as floats, so that positions would merge neighbours."""
MOST_GRID_VALUES = 1_000_000
"""A float range with a finer grid than this is better left continuous."""
_NEARLY = Decimal("1e-9")
"""How near to the end of a range its last step must come to be the end, in steps."""


class _Scaled(Ordered):
    """A number between ``low`` and ``high`` that has a position in [0, 1] on a scale."""

    low: float
    high: float
    scale: Scale

    def _check_range(self) -> None:
        if self.scale not in ("linear", "log", "log2"):
            raise ValueError(f"scale {self.scale!r} is not known: expected linear, log or log2")
        if self.low > self.high:
            raise ValueError(f"low must not be above high, but {self.low} > {self.high}")
        if self.scale != "linear" and self.low <= 0:
            raise ValueError(f"a {self.scale} scale needs low above 0, but low is {self.low}")
        if math.isinf(self.high - self.low):
            raise ValueError(f"a range from {self.low} to {self.high} is wider than the largest float")

    def _first(self) -> Value:
        return self.low

    def position(self, value: Value) -> float:
        number = _number(self.canonical(value))
        part = self._part(number if self.scale == "linear" else math.log(number))
        return min(max(part, 0.0), 1.0)

    def positions(self, values: Sequence[Value]) -> NDArray[np.float64]:
        """As :meth:`position`, for many at once. Shape (n,)."""
        numbers = np.array(values, dtype=np.float64)
        return np.clip(self._part(numbers if self.scale == "linear" else np.log(numbers)), 0.0, 1.0)

    def numbers(self, positions: NDArray[np.float64]) -> NDArray[np.float64]:
        """The inverse of :meth:`positions`: numbers at these positions, whether or not the knob has them."""
        scaled = self._scaled(positions)
        return np.clip(scaled if self.scale == "linear" else np.exp(scaled), self.low, self.high)

    def _part(self, scaled: _Floats) -> _Floats:
        """How far along the range numbers on its scale are."""
        low, high = self._ends
        # Two floats next to each other may have the same logarithm: then all stand at the beginning.
        return (scaled - low) / ((high - low) or 1.0)

    def at(self, position: float) -> float:
        """The number at a position; the inverse of :meth:`position` up to rounding."""
        if self.scale == "linear":  # asked millions of times: without calls
            number = self.low * (1 - position) + self.high * position
        else:
            number = math.exp(self._scaled(position))
        return self.low if number < self.low else self.high if number > self.high else number

    def _scaled(self, position: _Floats) -> _Floats:
        """The numbers on their scale that are so far along the range; the inverse of :meth:`_part`."""
        low, high = self._ends
        return low * (1 - position) + high * position

    def _drawn(self, rng: np.random.Generator, step: float, count: int) -> int:
        """The index of one of the ``count`` values from ``low`` on, drawn uniformly on the scale.

        On a logarithmic scale each value, also the first and the last, has the interval that rounds to it.
        """
        if self.scale == "linear":
            return int(rng.integers(count))
        first = max(self.low - step / 2, self.low / 2) or self.low  # half of the smallest float is 0
        last = self.low + step * (count - 1) + step / 2
        number = math.exp(rng.uniform(math.log(first), math.log(last)))
        return min(max(round((number - self.low) / step), 0), count - 1)

    @property
    def _ends(self) -> tuple[float, float]:
        """The bounds on the scale."""
        if self.scale == "linear":
            return self.low, self.high
        return math.log(self.low), math.log(self.high)


@dataclass(frozen=True)
class IntegerRange(_Scaled, Listed):
    """``low``, ``low + step``, ... up to ``high`` at most.

    ``scale="log"``: the same integers, drawn and placed by their logarithm.
    ``scale="log2"``: the powers of two from ``low`` to ``high``, which must both be one.
    """

    low: int
    high: int
    step: int = 1
    scale: Scale = "linear"

    def _check(self) -> None:
        for name in ("low", "high", "step"):
            number = freeze(getattr(self, name))
            if isinstance(number, bool) or not isinstance(number, int):
                raise ValueError(f"{name} must be an integer, but it is {number!r}")
            if abs(number) > LARGEST:
                raise ValueError(f"{name} must lie within 2^53 of 0, but it is {number}")
            object.__setattr__(self, name, number)
        self._check_range()
        if self.step < 1:
            raise ValueError(f"step must be 1 or more, but it is {self.step}")
        if self.scale == "log2":
            if self.step != 1:
                raise ValueError("a log2 scale runs over the powers of two and takes no step")
            for name, bound in (("low", self.low), ("high", self.high)):
                if bound & (bound - 1):
                    raise ValueError(f"{name} must be a power of two on a log2 scale, but it is {bound}")

    @cached_property
    def options(self) -> Sequence[int]:
        if self.scale == "log2":
            return tuple(2**n for n in range(self.low.bit_length() - 1, self.high.bit_length()))
        return range(self.low, self.high + 1, self.step)

    @property
    def expected(self) -> str:
        if self.scale == "log2":
            return f"a power of two from {self.low} to {self.high}"
        steps = f" in steps of {self.step}" if self.step > 1 else ""
        return f"an integer from {self.low} to {self.high}{steps}"

    @property
    def domain(self) -> dict[str, object]:
        domain: dict[str, object] = {"range": [self.low, self.high], "scale": self.scale}
        return domain | {"step": self.step} if self.step > 1 else domain

    def split(self, value: Value) -> tuple[int, ...]:
        number = self.canonical(value)
        return (self.options.index(number),)

    def canonical(self, value: object) -> int:
        number = as_number(value)
        if number is None or number != int(number) or int(number) not in self.options:
            raise self._refuse(value)
        return int(number)

    def sample(self, rng: np.random.Generator) -> Value:
        if self.scale == "log2":
            return self.options[int(rng.integers(len(self.options)))]
        return self.options[self._drawn(rng, self.step, len(self.options))]

    def neighbours(self, value: Value) -> tuple[Value, ...]:
        return self.next_to(value)


@dataclass(frozen=True)
class FloatRange(_Scaled):
    """A float from ``low`` to ``high``; with a ``step`` only ``low``, ``low + step``, ...

    On a ``log`` scale (``log2`` means the same for floats) it is drawn and placed by its logarithm.
    """

    low: float
    high: float
    step: float | None = None
    scale: Scale = "linear"

    STRIDES = (1 / 128, 1 / 16)
    """How far the neighbours of a continuous value are, as parts of the range on its scale."""

    def _check(self) -> None:
        for name in ("low", "high", "step"):
            if name == "step" and self.step is None:
                continue
            number = as_number(getattr(self, name))
            if number is None:
                raise ValueError(f"{name} must be a finite number, but it is {getattr(self, name)!r}")
            object.__setattr__(self, name, float(number) + 0.0)  # + 0.0 turns -0.0 into 0.0
        self._check_range()
        if self.step is None:
            return
        if self.step <= 0:
            raise ValueError(f"step must be above 0, but it is {self.step}")
        if (self.high - self.low) / self.step >= MOST_GRID_VALUES:
            raise ValueError(f"a step of {self.step} makes over {MOST_GRID_VALUES:,} values: leave it out")
        apart = math.ulp(max(abs(self.low), abs(self.high)))
        if self.step < 2 * apart:  # two steps would round to the same value
            raise ValueError(f"a step of {self.step} is too small here, where floats are {apart:g} apart")

    @cached_property
    def _grid(self) -> tuple[float, ...]:
        if self.step is None:
            raise ValueError(f"{self.name!r} is continuous: it has no list of values")
        # In decimal, so that 0 to 1 in steps of 0.1 holds 0.3 and not 0.30000000000000004.
        # A step that decimals cannot say, such as 1/11, still reaches the end of the range.
        low, high, step = (Decimal(repr(number)) for number in (self.low, self.high, self.step))
        with localcontext(Context(prec=40)):
            last = int((high - low) / step + _NEARLY)
            values = [float(low + n * step) for n in range(last + 1)]
            if abs(low + last * step - high) <= _NEARLY * step:
                values[-1] = self.high
        return tuple(values)

    @cached_property
    def _places(self) -> dict[float, int]:
        return {value: place for place, value in enumerate(self._grid)}

    @property
    def expected(self) -> str:
        steps = "" if self.step is None else f" in steps of {self.step}"
        return f"a number from {self.low} to {self.high}{steps}"

    @property
    def domain(self) -> dict[str, object]:
        domain: dict[str, object] = {"range": [self.low, self.high], "scale": self.scale}
        return domain if self.step is None else domain | {"step": self.step}

    @property
    def cardinality(self) -> int | None:
        return None if self.step is None else len(self._grid)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        return () if self.step is None else (Cell(self.name, self._grid),)

    def join(self, indices: Sequence[int]) -> Value:
        return self._grid[indices[0]]

    def split(self, value: Value) -> tuple[int, ...]:
        self._grid  # noqa: B018 (raises where the knob is continuous)
        return (self._places[self.canonical(value)],)

    def canonical(self, value: object) -> float:
        number = as_number(value)
        if number is None or not self.low <= number <= self.high:
            raise self._refuse(value)
        if self.step is None:
            return float(number) + 0.0
        place = min(round((number - self.low) / self.step), len(self._grid) - 1)
        if abs(self._grid[place] - number) > 1e-9 * max(self.step, abs(number)):
            raise self._refuse(value)
        return self._grid[place]

    def sample(self, rng: np.random.Generator) -> Value:
        if self.step is None:
            return float(self.at(rng.random()))
        return self._grid[self._drawn(rng, self.step, len(self._grid))]

    def neighbours(self, value: Value) -> tuple[Value, ...]:
        if self.step is not None:
            (place,) = self.split(value)
            return tuple(self._grid[p] for p in (place - 1, place + 1) if 0 <= p < len(self._grid))
        position = self.position(value)
        if self.low == self.high:
            return ()
        moved = (position + sign * stride for stride in self.STRIDES for sign in (-1, 1))
        return tuple(float(self.at(place)) for place in moved if 0.0 <= place <= 1.0)


def _number(value: Value) -> float:
    assert isinstance(value, (int, float))
    return value
