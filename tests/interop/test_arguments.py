"""What a sampler or searcher is given is checked before any study runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autotune.errors import InputError
from autotune.interop.arguments import Engine, checked_seed, rules_of, spec_of
from autotune.interop.optuna import AutotuneSampler


def test_an_engine_is_what_was_said() -> None:
    engine = Engine.of("bayes", np.int64(3), {"initial": 5})
    assert (engine.strategy, engine.seed, engine.options) == ("bayes", 3, {"initial": 5})
    assert type(engine.seed) is int
    assert Engine.of("auto", None, None).seed != Engine.of("auto", None, None).seed


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"seed": -1}, "seed is -1"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"seed": "0"}, "seed is '0'"),
        ({"options": {"inital": 5}}, "did you mean 'initial'"),
        ({"options": {"initial": "many"}}, "cannot be 'many'"),
        ({"options": "initial"}, "the options cannot be 'initial'"),
        ({"options": {1: 2}}, "expected: a dictionary by name"),
        ({"strategy": None}, "the strategy cannot be None"),
        ({"strategy": "bayse"}, "did you mean 'bayes'"),
        ({"space": {"a": [1, 2]}}, "the space cannot be of type dict"),
        ({"space": 5}, "expected: a Space, or the path of a space.yaml"),
        ({"constraints": "a > 1"}, "must be a list of rules"),
        ({"constraints": [5]}, "a constraint cannot be 5"),
    ],
)
def test_a_bad_argument_is_refused_at_once(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        AutotuneSampler(**arguments)


def test_rules_and_spaces_are_read() -> None:
    assert [rule.text for rule in rules_of(["a > 1", "b < 2"])] == ["a > 1", "b < 2"]
    with pytest.raises(InputError, match="there is no such file"):
        spec_of("nowhere.yaml")


@pytest.mark.parametrize("seed", [None, True, 0.5])
def test_what_no_strategy_can_be_seeded_with_is_named(seed: object) -> None:
    with pytest.raises(InputError, match=f"seed is {seed}"):
        checked_seed(seed)
