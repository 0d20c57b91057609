"""What a peer is: ask and tell, over knobs described in plain words."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal


@dataclass(frozen=True)
class Condition:
    """The knob exists where another has one of these values."""

    knob: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Knob:
    """One knob, as every tuner understands it.

    ``float`` and ``integer`` run from ``low`` to ``high``, on a logarithmic scale where ``log``; ``ordered``
    and ``choice`` take one of ``values``, of which the former are near to their neighbours in the list.
    """

    name: str
    kind: Literal["float", "integer", "ordered", "choice"]
    low: float = 0
    high: float = 0
    log: bool = False
    values: tuple[Any, ...] = ()
    when: Condition | None = None

    def to_json(self) -> dict[str, Any]:
        when = None if self.when is None else [self.when.knob, list(self.when.values)]
        return {**self.__dict__, "values": list(self.values), "when": when}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Knob:
        when = document["when"]
        condition = None if when is None else Condition(when[0], tuple(when[1]))
        return cls(**{**document, "values": tuple(document["values"]), "when": condition})


class Peer(ABC):
    """A tuner that proposes one configuration at a time.

    It is told what came of its proposals, and of other configurations, in the order tried; ``None`` is a
    failure. Proposals may repeat themselves or be infeasible: that is for the benchmark to judge.
    """

    packages: ClassVar[tuple[str, ...]]
    """What must be importable, as distributions whose versions are reported."""
    modules: ClassVar[tuple[str, ...]]
    """Modules that are imported to see whether the peer can run."""
    conditional: ClassVar[bool] = False
    """Whether it knows conditions: it then gives values, and is told values, of the knobs that exist."""

    def __init__(self, knobs: Sequence[Knob], seed: int, tries: int) -> None:
        self.knobs = tuple(knobs)
        self.seed = seed
        self.tries = tries

    @abstractmethod
    def ask(self) -> dict[str, Any]: ...

    @abstractmethod
    def tell(self, told: Sequence[tuple[Mapping[str, Any], float | None]]) -> None:
        """Learn from these, in this order."""


class Worst:
    """What a tuner that cannot be told of a failure is told instead: the worst result so far.

    Failures before the first success wait for it.
    """

    def __init__(self) -> None:
        self._worst = -math.inf
        self._waiting: list[Mapping[str, Any]] = []

    def numbers(
        self, told: Sequence[tuple[Mapping[str, Any], float | None]]
    ) -> list[tuple[Mapping[str, Any], float]]:
        """``told`` with a number for every failure."""
        numbers: list[tuple[Mapping[str, Any], float]] = []
        for configuration, loss in told:
            if loss is not None:
                self._worst = max(self._worst, loss)
                numbers += [(early, loss) for early in self._waiting]
                self._waiting.clear()
                numbers.append((configuration, loss))
            elif math.isinf(self._worst):
                self._waiting.append(configuration)
            else:
                numbers.append((configuration, self._worst))
        return numbers
