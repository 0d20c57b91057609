"""One parameter of an Optuna study as a knob, and values back and forth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from autotune.interop.choices import Choices
from autotune.interop.names import knob_name
from autotune.space.configuration import Value
from autotune.space.knobs import FloatRange, IntegerRange, Scale
from autotune.space.knobs.knob import Knob
from autotune.space.knobs.ranges import MOST_GRID_VALUES


@dataclass(frozen=True)
class Parameter:
    """A name, what Optuna may put there, and the knob that stands for it. Build one with :meth:`of`."""

    name: str
    distribution: BaseDistribution
    knob: Knob
    choices: Choices | None = None
    places: tuple[int, ...] = ()
    """Where each of :attr:`choices` stands in the distribution's list."""

    @classmethod
    def of(cls, name: str, distribution: BaseDistribution, called: str = "") -> Parameter:
        """With the knob's name where it is ``called`` something that ``name`` does not say by itself.

        ``ValueError`` for a distribution that no knob can stand for (integers beyond 2^53, say).
        """
        legal = called or knob_name(name)
        if isinstance(distribution, IntDistribution):
            scale: Scale = "log" if distribution.log else "linear"
            knob = IntegerRange(legal, distribution.low, distribution.high, distribution.step, scale)
            return cls(name, distribution, knob)
        if isinstance(distribution, FloatDistribution):
            return cls(name, distribution, _float(legal, distribution))
        if isinstance(distribution, CategoricalDistribution):
            places = _told_apart(distribution)
            choices = Choices.of([distribution.choices[place] for place in places])
            return cls(name, distribution, choices.knob(legal), choices, places)
        raise ValueError(f"a {type(distribution).__name__} is not known")

    @property
    def rounds(self) -> bool:
        """Whether the distribution has steps that are too many for a knob: the study is given the nearest."""
        steps = isinstance(self.distribution, FloatDistribution) and self.distribution.step is not None
        return steps and isinstance(self.knob, FloatRange) and self.knob.step is None

    def value(self, param: object) -> Value:
        """The knob's value for what the study holds; ``ValueError`` where it is outside the distribution."""
        if self.choices is not None:
            return self.choices.labels[self.places.index(int(self.distribution.to_internal_repr(param)))]
        return self.knob.canonical(param)

    def allows(self, param: object) -> bool:
        """Whether :meth:`value` knows what the study holds."""
        try:
            self.value(param)
        except ValueError:
            return False
        return True

    def param(self, value: Value) -> object:
        """What the study is given for the knob's value."""
        if self.choices is not None:
            return self.choices.object(value)
        if isinstance(self.distribution, FloatDistribution) and self.distribution.step is not None:
            low, step = self.distribution.low, self.distribution.step
            places = round((cast(float, value) - low) / step)
            return min(low + places * step, self.distribution.high)
        return value


def _told_apart(distribution: CategoricalDistribution) -> tuple[int, ...]:
    """The choices that a trial can have: for ``1`` after ``True``, which is equal, Optuna gives ``True``."""
    places = (int(distribution.to_internal_repr(choice)) for choice in distribution.choices)
    return tuple(dict.fromkeys(places))


def _float(name: str, distribution: FloatDistribution) -> FloatRange:
    low, high, step = distribution.low, distribution.high, distribution.step
    if step is not None and (high - low) / step >= MOST_GRID_VALUES:
        step = None
    return FloatRange(name, low, high, step, "log" if distribution.log else "linear")
