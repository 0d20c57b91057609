"""What every kind of knob can do. One class a kind: see :mod:`autotune.space.knobs`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast, overload

import numpy as np

from autotune.space.configuration import Value, freeze, plain
from autotune.space.language.rule import Rule
from autotune.space.language.syntax import check_name


@dataclass(frozen=True)
class Cell:
    """One discrete variable of the feasible set.

    Most knobs are one cell. A permutation is one cell a position (all different), an assignment
    one cell an item, so that a rule may speak of ``order[0]`` or ``place['embed']``.
    ``values`` is a ``range`` where it would be long.
    """

    name: str
    values: Sequence[Value]


class Condition:
    """The descriptor behind ``when``: it takes a rule or its text and gives a rule.

    The rule is kept as a condition: where it needs a knob that does not exist it is false, whereas a
    constraint would be satisfied.
    """

    @overload
    def __get__(self, knob: None, kind: type) -> Condition: ...
    @overload
    def __get__(self, knob: Knob, kind: type) -> Rule | None: ...
    def __get__(self, knob: Knob | None, kind: type) -> Condition | Rule | None:
        return self if knob is None else cast("Rule | None", knob.__dict__["when"])

    def __set__(self, knob: Knob, value: Rule | str | None) -> None:
        if value is None or isinstance(value, Condition):  # dataclass hands over the field's default
            knob.__dict__["when"] = None
            return
        if isinstance(value, str):
            value = Rule.parse(value)
        if not isinstance(value, Rule):
            raise ValueError(
                f"when must be a rule such as \"layout == 'row'\", as a text, but it is {value!r}"
            )
        knob.__dict__["when"] = value.as_condition()


@dataclass(frozen=True)
class Knob(ABC):
    """A named choice. Frozen; subclasses validate on construction and raise ``ValueError``.

    ``default`` is the value a user has today (left out: the kind's first value); ``when`` the
    condition under which the knob exists at all (left out: always). Both are given by keyword.
    """

    name: str
    default: Value = field(default=cast(Any, None), kw_only=True)
    when: Condition = field(default=Condition(), kw_only=True)

    def __post_init__(self) -> None:
        check_name(self.name)
        try:
            self._check()
            default = self._first() if self.default is None else self._canonical_default()
        except ValueError as error:
            raise ValueError(f"knob {self.name!r}: {error}") from None
        object.__setattr__(self, "default", default)

    def _canonical_default(self) -> Value:
        try:
            return self.canonical(self.default)
        except ValueError as error:
            raise ValueError(f"the default is not possible: {error}") from None

    @abstractmethod
    def _check(self) -> None:
        """Validate the fields and bring them to their canonical types; ``ValueError`` otherwise."""

    @abstractmethod
    def _first(self) -> Value:
        """The default where none is given."""

    @property
    @abstractmethod
    def expected(self) -> str:
        """What a value must be, for people: ``an integer from 1 to 32``."""

    @property
    @abstractmethod
    def domain(self) -> dict[str, object]:
        """The values in the words of a space file, as plain JSON: ``{"range": [1, 32], ...}``."""

    def to_document(self) -> dict[str, object]:
        """The knob in the words of a space file, as plain JSON."""
        document = {**self.domain, "default": plain(self.default)}
        return document | {"when": self.when.text} if self.when else document

    @property
    @abstractmethod
    def cardinality(self) -> int | None:
        """How many values there are; ``None`` for a continuous knob."""

    @property
    @abstractmethod
    def cells(self) -> tuple[Cell, ...]:
        """The discrete variables this knob is made of; empty for a continuous knob."""

    @property
    def distinct(self) -> bool:
        """Whether the cells must all differ (a permutation)."""
        return False

    @abstractmethod
    def join(self, indices: Sequence[int]) -> Value:
        """The value whose cells stand at ``indices``. Discrete knobs only."""

    @abstractmethod
    def split(self, value: Value) -> tuple[int, ...]:
        """The index of each cell for ``value``; the inverse of :meth:`join`."""

    def canonical(self, value: object) -> Value:
        """``value`` in its one canonical form (``4.0`` -> ``4``); ``ValueError`` says what was expected."""
        try:
            return self.join(self.split(freeze(value)))
        except TypeError:
            raise self._refuse(value) from None

    def _refuse(self, value: object) -> ValueError:
        """The error of :meth:`canonical` for ``value``."""
        with suppress(TypeError):
            value = plain(freeze(value))
        return ValueError(f"{value!r} is not a value of {self.name!r}: expected {self.expected}")

    def __contains__(self, value: object) -> bool:
        try:
            self.canonical(value)
        except ValueError:
            return False
        return True

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> Value:
        """A value drawn uniformly (on the knob's scale)."""

    @abstractmethod
    def neighbours(self, value: Value) -> tuple[Value, ...]:
        """Values one step away: the next ones up and down, every other choice, a swap, a move."""

    @property
    def ordered(self) -> bool:
        """Whether nearness of values means anything (numbers yes, choices no)."""
        return False

    def position(self, value: Value) -> float:
        """Where a value stands on its scale, from 0 (the first) to 1 (the last). Ordered knobs only."""
        raise ValueError(f"the values of {self.name!r} have no order")

    @abstractmethod
    def distance(self, one: Value, other: Value) -> float:
        """How far two values are apart, from 0 (the same) to 1 (opposite ends, or another choice)."""


class Ordered(Knob):
    """A knob each of whose values has a position on a scale."""

    @property
    def ordered(self) -> bool:
        return True

    @abstractmethod
    def position(self, value: Value) -> float: ...

    def distance(self, one: Value, other: Value) -> float:
        return abs(self.position(one) - self.position(other))


class Listed(Knob):
    """A knob whose values stand in one list: it is made of a single cell."""

    @property
    @abstractmethod
    def options(self) -> Sequence[Value]:
        """All values, in order."""

    @property
    def cardinality(self) -> int:
        return len(self.options)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        return (Cell(self.name, self.options),)

    def join(self, indices: Sequence[int]) -> Value:
        return self.options[indices[0]]

    def next_to(self, value: Value) -> tuple[Value, ...]:
        """The values before and after ``value`` in the list."""
        (place,) = self.split(value)
        return tuple(self.options[p] for p in (place - 1, place + 1) if 0 <= p < len(self.options))
