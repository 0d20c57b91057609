"""A study's space as its finished trials show it: define by run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from autotune.interop.conditions import with_conditions
from autotune.interop.for_optuna.parameters import Parameter
from autotune.interop.for_optuna.translation import Translation, UnplannedError
from autotune.interop.names import knob_names
from autotune.space.configuration import Configuration, Value
from autotune.space.language.rule import Rule
from autotune.space.space import Space


class InferredSpace(Translation):
    """The parameters that mean the same wherever they are asked for, with the conditions found for them.

    ``loose`` are the names of the others: a range that moves, a presence that nothing explains. ``called``
    is what rules call each of both, in the order in which the trials asked for them.
    """

    def __init__(
        self,
        parameters: Iterable[Parameter],
        loose: Iterable[str],
        rules: Sequence[Rule],
        called: Mapping[str, str],
    ) -> None:
        self.parameters = {parameter.name: parameter for parameter in parameters}
        self.loose = frozenset(loose)
        self.called = dict(called)
        self.whole = not self.loose
        known = {parameter.knob.name for parameter in self.parameters.values()}
        self.space = Space(
            [parameter.knob for parameter in self.parameters.values()],
            [rule for rule in rules if rule.knobs <= known],
        )

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        return {name: parameter.distribution for name, parameter in self.parameters.items()}

    def asked(self, params: Mapping[str, Any]) -> dict[str, Value | None]:
        found: dict[str, Value | None] = {}
        for name, param in params.items():
            if name in self.parameters:
                parameter = self.parameters[name]
                found[parameter.knob.name] = parameter.value(param) if parameter.allows(param) else None
        return found

    def param(self, configuration: Configuration, name: str, distribution: BaseDistribution) -> object:
        parameter = self.parameters.get(name)
        if parameter is None or parameter.knob.name not in configuration:
            raise UnplannedError(name)
        if parameter.distribution != distribution:
            raise UnplannedError(name)
        return parameter.param(configuration[parameter.knob.name])

    def covers(self, trial: FrozenTrial) -> bool:
        for name, distribution in trial.distributions.items():
            if name in self.loose:
                continue
            if name not in self.parameters or self.parameters[name].distribution != distribution:
                return False
        asked, values = self.asked(trial.params), self.values(trial.params)
        return len(asked) == len(values) and set(self.space.active(values)) >= set(values)

    def explains(self, trial: FrozenTrial) -> bool:
        """Whether the trial asked for just what it would ask for if this is the study's space."""
        values = self.values(trial.params)
        return self.covers(trial) and set(self.space.active(values)) == set(values)

    def limited_to(self, names: Iterable[str], rules: Sequence[Rule]) -> InferredSpace | None:
        """The same without the other parameters, which someone else decides; ``None`` if nothing is left."""
        kept = [self.parameters[name] for name in names if name in self.parameters]
        have = {parameter.knob.name for parameter in kept}
        kept = [p for p in kept if p.knob.when is None or p.knob.when.knobs <= have]
        others = self.loose | (self.parameters.keys() - {parameter.name for parameter in kept})
        return InferredSpace(kept, others, rules, self.called) if kept else None


@dataclass
class DefineByRun:
    """Learns the space of a study from its finished trials, in the order of their numbers.

    What it knows is kept as long as it explains each new trial, and worked out again from all of them where
    it does not, so that it follows from the trials alone. Complete and pruned trials show
    what the study asks for. One that failed may have broken off before it asked for all: it counts only while
    there is nothing better. One that was given a value that its own range does not hold shows nothing.
    """

    rules: Sequence[Rule]
    found: InferredSpace | None = None
    _rows: list[FrozenTrial] = field(default_factory=list)
    _from_failure: bool = False

    def called(self, further: Iterable[str] = ()) -> Mapping[str, str]:
        """What each parameter is called in rules, also a further one."""
        return knob_names([*(() if self.found is None else self.found.called), *further])

    def learn(self, trial: FrozenTrial) -> None:
        """One more finished trial."""
        explained = self.found is not None and self.found.explains(trial)
        if not trial.distributions or not (explained or _inside(trial)):
            return
        if trial.state is TrialState.FAIL:
            self._learn_from_failure(trial)
            return
        if self._from_failure:
            self._rows, self._from_failure, self.found = [], False, None
        self._rows.append(trial)
        if self.found is None or not explained:
            self.found = infer(self._rows, self.rules)

    def _learn_from_failure(self, trial: FrozenTrial) -> None:
        if self._rows and not self._from_failure:
            return
        if not self._rows or len(trial.distributions) > len(self._rows[0].distributions):
            self._rows, self._from_failure = [trial], True
            self.found = infer(self._rows, self.rules)


def infer(trials: Sequence[FrozenTrial], rules: Sequence[Rule]) -> InferredSpace | None:
    """The space that explains all of ``trials``; ``None`` where they have nothing in common.

    The first trial's values are the defaults: a trial that was made already, not a guess to try.
    """
    called = knob_names(name for trial in trials for name in trial.distributions)
    parameters, loose = _parameters(trials, called)
    names = {name: parameter.knob.name for name, parameter in parameters.items()}
    rows = [
        {names[name]: parameters[name].value(param) for name, param in trial.params.items() if name in names}
        for trial in trials
    ]
    placed = with_conditions((parameter.knob for parameter in parameters.values()), rows)
    if not placed:
        return None
    by_knob = {parameter.knob.name: parameter for parameter in parameters.values()}
    found = [
        replace(by_knob[k.name], knob=replace(k, default=_first(k.name, rows), when=k.when)) for k in placed
    ]
    loose |= parameters.keys() - {parameter.name for parameter in found}
    return InferredSpace(found, loose, rules, called)


def _parameters(
    trials: Sequence[FrozenTrial], called: Mapping[str, str]
) -> tuple[dict[str, Parameter], set[str]]:
    """The parameters that always have the same distribution, which a knob can stand for; and the others."""
    seen: dict[str, BaseDistribution] = {}
    loose: set[str] = set()
    for trial in trials:
        for name, distribution in trial.distributions.items():
            if seen.setdefault(name, distribution) != distribution:
                loose.add(name)
    parameters: dict[str, Parameter] = {}
    for name in sorted(seen.keys() - loose):
        try:
            parameters[name] = Parameter.of(name, seen[name], called[name])
        except ValueError:
            loose.add(name)
    return parameters, loose


def _inside(trial: FrozenTrial) -> bool:
    """Whether all that was asked for got a value that was allowed; one that was enqueued need not be."""
    for name, distribution in trial.distributions.items():
        try:
            parameter = Parameter.of(name, distribution)
        except ValueError:  # no knob can stand for it: it will be loose
            continue
        if not parameter.allows(trial.params[name]):
            return False
    return True


def _first(name: str, rows: Sequence[Mapping[str, Value]]) -> Value:
    return next(row[name] for row in rows if name in row)
