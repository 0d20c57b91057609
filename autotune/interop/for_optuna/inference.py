"""A study's space as its finished trials show it: define by run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from autotune.interop.conditions import with_conditions
from autotune.interop.for_optuna.parameters import Parameter
from autotune.interop.for_optuna.ranges import RECENT, current, hull, moves, nearest
from autotune.interop.for_optuna.translation import Translation, UnplannedError
from autotune.interop.for_optuna.trials import PRUNED_ATTR
from autotune.interop.names import knob_names
from autotune.space.configuration import Configuration, Value
from autotune.space.knobs.values import is_number
from autotune.space.language.rule import Rule
from autotune.space.space import Space


class InferredSpace(Translation):
    """The parameters that a study asks for, with the conditions found for them.

    Those in ``moving`` are asked for with a range that differs from trial to trial, and searched in one that
    holds them all; what is planned is brought into the one that is asked for. ``loose`` are the names of
    parameters that are left out: of a presence that nothing explains, or of a kind that no knob can stand
    for. ``called`` is what rules call each, in the order in which the trials asked for them.
    """

    def __init__(
        self,
        parameters: Iterable[Parameter],
        loose: Iterable[str],
        rules: Sequence[Rule],
        called: Mapping[str, str],
        moving: Iterable[str],
    ) -> None:
        self.parameters = {parameter.name: parameter for parameter in parameters}
        self.loose = frozenset(loose)
        self.called = dict(called)
        self.moving = frozenset(moving) & self.parameters.keys()
        # Of a range that moves most configurations may never be possible: they are no end of a study.
        self.whole = not self.loose and not self.moving
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
        planned = parameter.param(configuration[parameter.knob.name])
        if parameter.distribution == distribution:
            return planned
        if not isinstance(planned, (int, float)) or type(distribution) is not type(parameter.distribution):
            raise UnplannedError(name)
        return nearest(planned, distribution)

    def configuration(
        self, params: Mapping[str, Any], plan: Mapping[str, Value] | None = None, *, complete: bool = False
    ) -> Configuration | None:
        own = {name: param for name, param in params.items() if not self._only_rounded(name, param, plan)}
        # What a complete trial did not ask for its code did not have: nobody knows what it ran with.
        return super().configuration(own, plan)

    def _only_rounded(self, name: str, param: object, plan: Mapping[str, Value] | None) -> bool:
        """Whether the trial has what was planned but for a rounding: the strategy shall know it again."""
        parameter = self.parameters.get(name)
        if parameter is None or not parameter.rounds or plan is None:
            return False
        planned = plan.get(parameter.knob.name)
        return is_number(planned) and parameter.param(planned) == param

    def adapts(self, name: str) -> bool:
        return name in self.moving or (name in self.parameters and self.parameters[name].rounds)

    def covers(self, trial: FrozenTrial) -> bool:
        for name, distribution in trial.distributions.items():
            if name in self.loose:
                continue
            if name not in self.parameters or not self._expects(name, distribution):
                return False
        asked, values = self.asked(trial.params), self.values(trial.params)
        return len(asked) == len(values) and set(self.space.active(values)) >= set(values)

    def _expects(self, name: str, distribution: BaseDistribution) -> bool:
        own = self.parameters[name].distribution
        if own == distribution or name not in self.moving:
            return own == distribution
        try:
            return hull(own, distribution) == own
        except ValueError:
            return False

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
        return InferredSpace(kept, others, rules, self.called, self.moving) if kept else None


@dataclass
class DefineByRun:
    """Learns the space of a study from its finished trials, in the order of their numbers.

    What it knows is kept as long as it explains each new trial, and worked out again from all of them where
    it does not, or where a range that moved no longer does, so that it follows from the trials alone.
    Complete and pruned trials show what the study asks for. One that failed may have broken off before it
    asked for all: it counts only while there is nothing better. One that was given a value that its own
    range does not hold shows nothing.
    """

    rules: Sequence[Rule]
    found: InferredSpace | None = None
    _rows: list[FrozenTrial] = field(default_factory=list)
    from_failure: bool = False
    """Whether there was nothing better: trials may ask for more than is known."""

    def called(self, further: Iterable[str]) -> Mapping[str, str]:
        """What each parameter is called in rules, also a further one."""
        return knob_names([*(() if self.found is None else self.found.called), *further])

    def learn(self, trial: FrozenTrial) -> None:
        """One more finished trial."""
        explained = self.found is not None and self.found.explains(trial)
        if not trial.distributions or not (explained or _inside(trial)):
            return
        if trial.state is TrialState.FAIL or PRUNED_ATTR in trial.system_attrs:
            self._learn_from_failure(trial)
            return
        if self.from_failure:
            self._rows, self.from_failure, self.found = [], False, None
        self._rows.append(trial)
        if self.found is None or not explained or self._has_settled(self.found) or self._has_more(self.found):
            self.found = infer(self._rows, self.rules)

    def _has_more(self, found: InferredSpace) -> bool:
        """Whether a parameter that is left out was first asked for just long enough ago to be searched."""
        before, recent = self._rows[-RECENT - 1 : -RECENT], self._rows[-RECENT:]
        return any(_added(name, [*before, *recent]) for name in found.loose)

    def _has_settled(self, found: InferredSpace) -> bool:
        """Whether a range that moved has been the same, but for one change, for a while."""
        for name in found.moving:
            asked = (row.distributions[name] for row in reversed(self._rows) if name in row.distributions)
            recent = list(islice(asked, RECENT))
            if len(recent) == RECENT and not moves(recent):
                return True
        return False

    def _learn_from_failure(self, trial: FrozenTrial) -> None:
        if self._rows and not self.from_failure:
            return
        if not self._rows or len(trial.distributions) > len(self._rows[0].distributions):
            self._rows, self.from_failure = [trial], True
            self.found = infer(self._rows, self.rules)


def infer(trials: Sequence[FrozenTrial], rules: Sequence[Rule]) -> InferredSpace | None:
    """The space that explains ``trials``; ``None`` where they have nothing in common.

    Trials from before a range changed, with a value that is no longer in it, are left aside. So are those
    from before the study's code began to ask for a parameter, once :data:`RECENT` trials have asked for it.
    The first of the other trials' values are the defaults: a trial that was made already, not a guess to try.
    """
    found = _explaining(trials, rules)
    names = {name for trial in trials[-1:] for name in trial.distributions}
    loose = names if found is None else names & found.loose
    since = max((_added(name, trials) for name in loose), default=0)
    return _explaining(trials[since:], rules) if since else found


def _added(name: str, trials: Sequence[FrozenTrial]) -> int:
    """From which of ``trials`` on all ask for the parameter; 0 where it was not added to the study's code."""
    asked = [name in trial.distributions for trial in trials]
    since = asked.index(True) if True in asked else 0
    return since if since <= len(asked) - RECENT and all(asked[since:]) else 0


def _explaining(trials: Sequence[FrozenTrial], rules: Sequence[Rule]) -> InferredSpace | None:
    called = knob_names(name for trial in trials for name in trial.distributions)
    parameters, moving = _parameters(trials, called)
    rows = [row for trial in trials if (row := _row(trial, parameters)) is not None]
    seen = {name for row in rows for name in row}
    placed = with_conditions((p.knob for p in parameters.values() if p.knob.name in seen), rows)
    if not placed:
        return None
    by_knob = {parameter.knob.name: parameter for parameter in parameters.values()}
    found = [
        replace(by_knob[k.name], knob=replace(k, default=_first(k.name, rows), when=k.when)) for k in placed
    ]
    loose = called.keys() - {parameter.name for parameter in found}
    return InferredSpace(found, loose, rules, called, moving)


def _parameters(
    trials: Sequence[FrozenTrial], called: Mapping[str, str]
) -> tuple[dict[str, Parameter], set[str]]:
    """The parameters that a knob can stand for, and the names of those whose range moves."""
    asked: dict[str, list[BaseDistribution]] = {}
    for trial in trials:
        for name, distribution in trial.distributions.items():
            asked.setdefault(name, []).append(distribution)
    parameters: dict[str, Parameter] = {}
    for name in sorted(asked):
        with suppress(ValueError):
            parameters[name] = Parameter.of(name, current(asked[name]), called[name])
    return parameters, {name for name in parameters if moves(asked[name])}


def _row(trial: FrozenTrial, parameters: Mapping[str, Parameter]) -> dict[str, Value] | None:
    """The trial's values by the knobs' names; ``None`` where one is in no range of today."""
    try:
        return {
            parameters[name].knob.name: parameters[name].value(param)
            for name, param in trial.params.items()
            if name in parameters
        }
    except ValueError:
        return None


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
