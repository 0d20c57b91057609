"""A parameter of an Optuna study that is drawn by itself: it is no part of what was planned."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import RandomSampler
from optuna.trial import FrozenTrial

from autotune.interop.for_optuna.parameters import Parameter
from autotune.space.language.binding import bind_rule
from autotune.space.language.rule import Rule

DRAWS = 64
"""How often a parameter is drawn until it will do."""


@dataclass(frozen=True)
class SoFar:
    """The parameters that a trial has, a new one among them, and the constraints over just these."""

    parameters: Mapping[str, Parameter]
    rules: Sequence[Rule]

    @classmethod
    def of(
        cls,
        trial: FrozenTrial,
        name: str,
        distribution: BaseDistribution,
        rules: Sequence[Rule],
        called: Mapping[str, str],
    ) -> SoFar:
        """``name`` is the new one; ``called`` is what the rules call each of them."""
        parameters: dict[str, Parameter] = {}
        for each, its in {**trial.distributions, name: distribution}.items():
            try:
                parameter = Parameter.of(each, its, called[each])
            except ValueError:
                continue
            if each == name or parameter.allows(trial.params[each]):
                parameters[each] = parameter
        knobs = [parameter.knob for parameter in parameters.values()]
        known = {knob.name for knob in knobs}
        own = parameters[name].knob.name if name in parameters else ""
        bound = [bind_rule(r, knobs=knobs) for r in rules if own in r.knobs and r.knobs <= known]
        return cls(parameters, bound)

    def violated(self, params: Mapping[str, Any]) -> Rule | None:
        """The first constraint that these parameters violate."""
        values = {p.knob.name: p.value(params[name]) for name, p in self.parameters.items()}
        return next((rule for rule in self.rules if not rule.holds(values)), None)

    def said(self, rule: Rule, params: Mapping[str, Any], name: str) -> str:
        """That nothing drawn for ``name`` keeps the rule beside the others that it speaks of."""
        about = (each for each, p in self.parameters.items() if each != name and p.knob.name in rule.knobs)
        beside = " and ".join(f"{each} = {params[each]!r}" for each in about)
        nothing = f"no value drawn for {name!r} keeps {rule.text!r}"
        return f"{nothing} beside {beside}" if beside else nothing


def draw(
    study: optuna.Study,
    trial: FrozenTrial,
    name: str,
    distribution: BaseDistribution,
    seed: int,
    refused: Callable[[Any], bool],
) -> Any:
    """A random value, the same for the same seed, number of the trial and name; drawn again while it is
    ``refused``, in the end with the last one as it is."""
    entropy = (seed, trial.number, zlib.crc32(name.encode()))
    random = RandomSampler(seed=int(np.random.SeedSequence(entropy).generate_state(1)[0]))
    for _ in range(DRAWS):
        param = random.sample_independent(study, trial, name, distribution)
        if not refused(param):
            break
    return param
