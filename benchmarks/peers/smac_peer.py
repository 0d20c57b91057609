"""SMAC3 (Lindauer et al., JMLR 2022), its facade for hyper-parameter optimisation."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from benchmarks.peers.contract import Knob, Peer, Worst

SAME = 1.0
"""The loss of everything while all has failed."""


class Smac(Peer):
    """A random forest on log-scaled losses with expected improvement, after a Sobol design: the facade's
    defaults, deterministic. It is given conditions. A failure is told as the worst result so far.

    Ordered values are integers (their places).
    """

    packages: ClassVar[tuple[str, ...]] = ("smac", "ConfigSpace")
    modules: ClassVar[tuple[str, ...]] = ("smac",)
    conditional = True

    def __init__(self, knobs: Sequence[Knob], seed: int, tries: int) -> None:
        super().__init__(knobs, seed, tries)
        import smac
        from smac import runhistory

        warnings.simplefilter("ignore")
        self.runhistory = runhistory
        self.space = _space(self.knobs, seed)
        self.folder = tempfile.TemporaryDirectory()
        scenario = smac.Scenario(
            self.space, deterministic=True, n_trials=tries, seed=seed, output_directory=self.folder.name
        )
        self.facade = smac.HyperparameterOptimizationFacade(
            scenario, _never_called, logging_level=False, overwrite=True
        )
        self.worst = Worst()
        self.asked: tuple[Any, dict[str, Any]] | None = None

    def ask(self) -> dict[str, Any]:
        trial = self.facade.ask()
        values = {k.name: _value(k, trial.config[k.name]) for k in self.knobs if k.name in trial.config}
        self.asked = trial, values
        return values

    def tell(self, told: Sequence[tuple[Mapping[str, Any], float | None]]) -> None:
        # A failure before the first success waits for its number, but SMAC3 waits for an answer: it is
        # told one that stands for all alike, and told again.
        numbers = self.worst.numbers(told) or [(configuration, SAME) for configuration, _ in told]
        for configuration, loss in numbers:
            self.facade.tell(self._trial(configuration), self.runhistory.TrialValue(cost=loss), save=False)

    def _trial(self, configuration: Mapping[str, Any]) -> Any:
        if self.asked is not None and self.asked[1] == configuration:
            return self.asked[0]
        from ConfigSpace import Configuration

        codes = {k.name: _code(k, configuration[k.name]) for k in self.knobs if k.name in configuration}
        # A deterministic scenario has one seed, 0, for every trial.
        return self.runhistory.TrialInfo(config=Configuration(self.space, values=codes), seed=0)


def _never_called(config: Any, seed: int = 0) -> float:
    raise AssertionError("trials are asked for and told")


def _space(knobs: Sequence[Knob], seed: int) -> Any:
    import ConfigSpace

    space = ConfigSpace.ConfigurationSpace(seed=seed)
    made = {knob.name: _parameter(ConfigSpace, knob) for knob in knobs}
    space.add(list(made.values()))
    for knob in knobs:
        if knob.when is not None:
            parent, values = made[knob.when.knob], list(knob.when.values)
            space.add(ConfigSpace.InCondition(made[knob.name], parent, values))
    return space


def _parameter(kinds: Any, knob: Knob) -> Any:
    if knob.kind == "float":
        return kinds.Float(knob.name, (knob.low, knob.high), log=knob.log)
    if knob.kind == "integer":
        return kinds.Integer(knob.name, (int(knob.low), int(knob.high)), log=knob.log)
    if knob.kind == "ordered":
        if len(knob.values) == 1:
            return kinds.Constant(knob.name, 0)
        return kinds.Integer(knob.name, (0, len(knob.values) - 1))
    return kinds.Categorical(knob.name, list(knob.values))


def _value(knob: Knob, code: Any) -> Any:
    if knob.kind == "ordered":
        return knob.values[int(code)]
    if knob.kind == "choice":  # a numpy text, or a flag that became one
        return next(value for value in knob.values if value == code)
    return float(code) if knob.kind == "float" else int(code)


def _code(knob: Knob, value: Any) -> Any:
    return knob.values.index(value) if knob.kind == "ordered" else value
