"""Optuna's samplers as they come (Akiba et al., KDD 2019)."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from benchmarks.peers.contract import Knob, Peer


class Optuna(Peer):
    """A study in memory with ask and tell. A failure is told as FAIL.

    A list of values is a categorical parameter, ordered or not: what Optuna offers for one, and better
    here than places on an integer scale. A configuration that it did not propose is added to
    the study as a trial, and the proposal that it took the place of fails.
    """

    packages: ClassVar[tuple[str, ...]] = ("optuna",)
    modules: ClassVar[tuple[str, ...]] = ("optuna",)
    conditional = True

    def __init__(self, knobs: Sequence[Knob], seed: int, tries: int) -> None:
        super().__init__(knobs, seed, tries)
        import optuna

        warnings.simplefilter("ignore")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.optuna = optuna
        self.study = optuna.create_study(sampler=self.sampler())
        self.distributions = {knob.name: self._distribution(knob) for knob in self.knobs}
        self.asked: tuple[Any, dict[str, Any]] | None = None

    @abstractmethod
    def sampler(self) -> Any:
        """The sampler to be compared."""

    def ask(self) -> dict[str, Any]:
        self._give_up()
        trial = self.study.ask()
        values: dict[str, Any] = {}
        for knob in self.knobs:
            if self._exists(knob, values):
                values[knob.name] = suggested(trial, knob)
        self.asked = trial, values
        return values

    def tell(self, told: Sequence[tuple[Mapping[str, Any], float | None]]) -> None:
        state = self.optuna.trial.TrialState
        for configuration, loss in told:
            end = state.FAIL if loss is None else state.COMPLETE
            if self.asked is not None and self.asked[1] == configuration:
                self.study.tell(self.asked[0], loss, state=end)
                self.asked = None
                continue
            distributions = {name: self.distributions[name] for name in configuration}
            self.study.add_trial(
                self.optuna.trial.create_trial(
                    state=end, value=loss, params=dict(configuration), distributions=distributions
                )
            )

    def _give_up(self) -> None:
        """The last proposal was never tried: it fails."""
        if self.asked is not None:
            self.study.tell(self.asked[0], state=self.optuna.trial.TrialState.FAIL)
            self.asked = None

    def _exists(self, knob: Knob, values: Mapping[str, Any]) -> bool:
        when = knob.when if self.conditional else None
        return when is None or values.get(when.knob) in when.values

    def _distribution(self, knob: Knob) -> Any:
        kinds = self.optuna.distributions
        if knob.kind == "float":
            return kinds.FloatDistribution(knob.low, knob.high, log=knob.log)
        if knob.kind == "integer":
            return kinds.IntDistribution(int(knob.low), int(knob.high), log=knob.log)
        return kinds.CategoricalDistribution(knob.values)


def suggested(trial: Any, knob: Knob) -> Any:
    """The value of a knob in one of Optuna's trials."""
    if knob.kind == "float":
        return trial.suggest_float(knob.name, knob.low, knob.high, log=knob.log)
    if knob.kind == "integer":
        return trial.suggest_int(knob.name, int(knob.low), int(knob.high), log=knob.log)
    return trial.suggest_categorical(knob.name, knob.values)


class Tpe(Optuna):
    """Optuna's default: the tree-structured Parzen estimator, since version 5 over all knobs together.

    A knob that exists only sometimes is drawn by itself.
    """

    def sampler(self) -> Any:
        return self.optuna.samplers.TPESampler(seed=self.seed)


class MultivariateTpe(Optuna):
    """The same with knobs grouped by the conditions under which they exist; without any, the default."""

    def sampler(self) -> Any:
        return self.optuna.samplers.TPESampler(
            seed=self.seed, multivariate=True, group=True, warn_independent_sampling=False
        )


class Gp(Optuna):
    """Gaussian process. It would draw a conditional knob at random, so it is given the flat space."""

    packages: ClassVar[tuple[str, ...]] = ("optuna", "torch")
    modules: ClassVar[tuple[str, ...]] = ("optuna", "torch", "scipy")
    conditional = False

    def sampler(self) -> Any:
        return self.optuna.samplers.GPSampler(seed=self.seed)
