"""scikit-optimize's Optimizer as it comes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from benchmarks.peers.contract import Knob, Peer, Worst


class Skopt(Peer):
    """``skopt.Optimizer`` with ten initial points, as ``gp_minimize`` (hedged acquisition functions) and
    ``forest_minimize`` (expected improvement) set it up. A failure is told as the worst result so far.

    Ordered values are integers (their places). The space is flat.
    """

    packages: ClassVar[tuple[str, ...]] = ("scikit-optimize", "scikit-learn")
    modules: ClassVar[tuple[str, ...]] = ("skopt",)
    estimator: ClassVar[str]
    acquisition: ClassVar[str] = "EI"

    def __init__(self, knobs: Sequence[Knob], seed: int, tries: int) -> None:
        super().__init__(knobs, seed, tries)
        import skopt

        warnings.simplefilter("ignore")
        dimensions = [_dimension(skopt.space, knob) for knob in self.knobs]
        self.optimizer = skopt.Optimizer(
            dimensions, base_estimator=self.estimator, acq_func=self.acquisition, random_state=seed
        )
        self.worst = Worst()

    def ask(self) -> dict[str, Any]:
        point = self.optimizer.ask()
        return {knob.name: _value(knob, code) for knob, code in zip(self.knobs, point, strict=True)}

    def tell(self, told: Sequence[tuple[Mapping[str, Any], float | None]]) -> None:
        numbers = self.worst.numbers(told)
        for number, (configuration, loss) in enumerate(numbers, 1):
            point = [_code(knob, configuration[knob.name]) for knob in self.knobs]
            self.optimizer.tell(point, loss, fit=number == len(numbers))


class SkoptGp(Skopt):
    """Gaussian process, Matern 5/2."""

    estimator = "GP"
    acquisition = "gp_hedge"


class SkoptEt(Skopt):
    """Extremely random trees."""

    estimator = "ET"


class SkoptRf(Skopt):
    """Random forest."""

    estimator = "RF"


def _dimension(space: Any, knob: Knob) -> Any:
    prior = "log-uniform" if knob.log else "uniform"
    if knob.kind == "float":
        return space.Real(knob.low, knob.high, prior=prior, name=knob.name)
    if knob.kind == "integer":
        return space.Integer(int(knob.low), int(knob.high), prior=prior, name=knob.name)
    if knob.kind == "ordered":
        return space.Integer(0, len(knob.values) - 1, name=knob.name)
    return space.Categorical(range(len(knob.values)), name=knob.name)


def _value(knob: Knob, code: Any) -> Any:
    if knob.kind == "float":
        return min(max(float(code), knob.low), knob.high)  # rounding may step over a bound
    return int(code) if knob.kind == "integer" else knob.values[int(code)]


def _code(knob: Knob, value: Any) -> Any:
    return knob.values.index(value) if knob.values else value
