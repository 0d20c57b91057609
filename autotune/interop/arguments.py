"""What the samplers and searchers for other tools are given, checked where it is given.

Else it would show only in a study that runs, far from the line at fault and as an error of some library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from autotune.arguments import is_whole, not_whole
from autotune.errors import InputError, Problem
from autotune.search.contract import Option
from autotune.search.registry import strategy_class
from autotune.session.opening.loading import load_spec
from autotune.space.language.rule import Rule
from autotune.space.spec import StudySpec


@dataclass(frozen=True)
class Engine:
    """Which strategy, and how it is set."""

    strategy: str
    seed: int
    options: Mapping[str, Option]

    @classmethod
    def of(cls, strategy: object, seed: object, options: object) -> Engine:
        """As a user says it; without a seed a random one. :class:`InputError` for what cannot be had."""
        if not isinstance(strategy, str):
            raise InputError(
                Problem(f"the strategy cannot be {strategy!r}", expected="a name, such as 'auto'")
            )
        made = strategy_class(strategy)
        given = {} if options is None else options
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            raise InputError(Problem(f"the options cannot be {options!r}", expected="a dictionary by name"))
        made.checked(given)
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        return cls(strategy, checked_seed(seed), dict(given))


def checked_seed(seed: object) -> int:
    """``seed``, if strategies can be seeded with it; else raises :class:`autotune.errors.InputError`."""
    if not is_whole(seed, 0):
        raise InputError(not_whole("seed", seed, 0))
    return int(seed)  # type: ignore[call-overload,no-any-return]


def rules_of(constraints: object) -> tuple[Rule, ...]:
    """The rules that a list of texts says."""
    if isinstance(constraints, str):
        raise InputError(f"constraints must be a list of rules: [{constraints!r}]")
    rules = list(constraints) if isinstance(constraints, Iterable) else [constraints]
    return tuple(map(_rule, rules))


def _rule(text: object) -> Rule:
    if not isinstance(text, str):
        raise InputError(Problem(f"a constraint cannot be {text!r}", expected="a list of texts"))
    return Rule.parse(text)


def spec_of(space: object, expected: str = "a Space, or the path of a space.yaml") -> StudySpec:
    """The study that ``space``, which is no Space, says or is the path of."""
    if not isinstance(space, (StudySpec, str, Path)):
        raise InputError(Problem(f"the space cannot be of type {type(space).__name__}", expected=expected))
    return load_spec(space)
