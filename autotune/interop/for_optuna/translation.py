"""What stands between an Optuna study and a space: which parameter is which knob."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial

from autotune.errors import InputError
from autotune.space.configuration import Configuration, Value
from autotune.space.language.rule import Rule
from autotune.space.space import Space


class UnplannedError(LookupError):
    """The configuration says nothing about the parameter: it is drawn by itself."""


class Translation(ABC):
    """Between parameters and configurations of :attr:`space`.

    ``whole`` says whether every parameter that the study is known to have belongs to the space. Only
    then does a configuration that was tried say that trying it again teaches nothing.
    """

    space: Space
    whole: bool

    @abstractmethod
    def asked(self, params: Mapping[str, Any]) -> dict[str, Value | None]:
        """The values of the knobs that ``params`` say something about; ``None`` for an impossible one.

        Optuna takes an enqueued value that lies outside of the range, and only warns of it.
        """

    def values(self, params: Mapping[str, Any]) -> dict[str, Value]:
        """As :meth:`asked`, without the impossible ones."""
        return {name: value for name, value in self.asked(params).items() if value is not None}

    def demands(self, params: Mapping[str, Any]) -> list[Rule]:
        """What ``params`` say of parts of knobs that :meth:`asked` says nothing of."""
        return []

    @abstractmethod
    def param(self, configuration: Configuration, name: str, distribution: BaseDistribution) -> object:
        """What the study is given for a parameter; :class:`UnplannedError` where that is nothing."""

    def adapts(self, name: str) -> bool:
        """Whether :meth:`param` may give another value than was planned, one that was tried already."""
        return False

    def covers(self, trial: FrozenTrial) -> bool:
        """Whether the trial asked for nothing but what it may ask for if this is the study's space."""
        return True

    def configuration(
        self, params: Mapping[str, Any], plan: Mapping[str, Value] | None = None, *, complete: bool = False
    ) -> Configuration | None:
        """The configuration of a trial with these parameters; ``None`` where it cannot be known.

        What the study did not ask for is as in ``plan``. Without one it is the default where the trial is
        ``complete``, since it did not matter; a trial that broke off may have been about to ask. With an
        impossible value it is none of the space: what it came to must not be said of the plan.
        """
        values = self.asked(params)
        if None in values.values():
            return None
        chosen: dict[str, Value] = {}
        for knob in self.space.knobs:
            if knob.when is not None and not knob.when.holds(chosen):
                continue
            if (value := values.get(knob.name)) is not None:
                chosen[knob.name] = value
            elif plan is not None and knob.name in plan:
                chosen[knob.name] = plan[knob.name]
            elif complete:
                chosen[knob.name] = knob.default
            else:
                return None
        try:
            return self.space.configuration(chosen)
        except InputError:  # a plan that was made for an earlier space
            return None
