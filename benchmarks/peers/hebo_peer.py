"""HEBO (Cowen-Rivers et al., JAIR 2022), which won the black-box challenge of 2020.

It wants packages that are older than autotune's. To make an environment for it, whose ``bin/python`` is given
as ``--peer-python``::

    python3.11 -m venv HEBO
    HEBO/bin/pip install -r benchmarks/peers/hebo.txt
    HEBO/bin/pip install --no-build-isolation --no-deps pymoo==0.6.0 HEBO==0.3.6
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from benchmarks.peers.contract import Knob, Peer, Worst


class Hebo(Peer):
    """``HEBO`` with its defaults: a warped Gaussian process, three acquisition functions at once. The space
    is flat, ordered values are integers (their places), and a failure is told as the worst result so far.

    Where its model breaks down (a Cholesky factor that does not exist), a point of its quasi-random
    sequence is proposed, which is how it starts.
    """

    packages: ClassVar[tuple[str, ...]] = ("HEBO", "torch", "pymoo")
    modules: ClassVar[tuple[str, ...]] = ("hebo.optimizers.hebo",)

    def __init__(self, knobs: Sequence[Knob], seed: int, tries: int) -> None:
        super().__init__(knobs, seed, tries)
        import numpy
        import pandas
        import torch
        from hebo.design_space.design_space import DesignSpace
        from hebo.optimizers.hebo import HEBO

        warnings.simplefilter("ignore")
        random.seed(seed)
        numpy.random.seed(seed)
        torch.manual_seed(seed)
        self.frame, self.array = pandas.DataFrame, numpy.array
        space = DesignSpace().parse([_parameter(knob) for knob in self.knobs])
        self.optimizer = HEBO(space, scramble_seed=seed)
        self.worst = Worst()

    def ask(self) -> dict[str, Any]:
        try:
            proposed = self.optimizer.suggest(n_suggestions=1)
        except Exception:  # noqa: BLE001 (torch, gpytorch and linear_operator each have their own)
            proposed = self.optimizer.quasi_sample(1)
        codes = proposed.iloc[0].to_dict()
        return {knob.name: _value(knob, codes[knob.name]) for knob in self.knobs}

    def tell(self, told: Sequence[tuple[Mapping[str, Any], float | None]]) -> None:
        for configuration, loss in self.worst.numbers(told):
            codes = {knob.name: _code(knob, configuration[knob.name]) for knob in self.knobs}
            self.optimizer.observe(self.frame([codes]), self.array([[loss]]))


def _parameter(knob: Knob) -> dict[str, Any]:
    if knob.kind == "choice":
        return {"name": knob.name, "type": "cat", "categories": list(range(len(knob.values)))}
    if knob.kind == "ordered":
        return {"name": knob.name, "type": "int", "lb": 0, "ub": len(knob.values) - 1}
    kind = {("float", False): "num", ("float", True): "pow", ("integer", False): "int"}
    # Its 'pow_int' is the integer on a logarithmic scale.
    return {
        "name": knob.name,
        "type": kind.get((knob.kind, knob.log), "pow_int"),
        "lb": knob.low,
        "ub": knob.high,
    }


def _value(knob: Knob, code: Any) -> Any:
    if knob.values:
        return knob.values[int(code)]
    number = min(max(float(code), knob.low), knob.high)  # 10 ** log10(x) may step over a bound
    return number if knob.kind == "float" else round(number)


def _code(knob: Knob, value: Any) -> Any:
    return knob.values.index(value) if knob.values else value
