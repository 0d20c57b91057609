"""What is kept with a trial beside its metrics."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import autotune
from autotune.measure.facts import OWN, given_facts, plain_facts
from autotune.space.knobs import IntegerRange
from autotune.space.spec import StudySpec


def test_facts_are_plain_json_whatever_types_they_had() -> None:
    facts = {"registers": np.int64(32), 1: {"spilled": np.float32(0.5)}, "order": OrderedDict(a=(1, 2))}
    plain = {"registers": 32, "1": {"spilled": 0.5}, "order": {"a": [1, 2]}}
    assert plain_facts(facts) == plain  # type: ignore[arg-type]


class Tensor:
    """As one of torch with several elements."""

    def item(self) -> float:
        raise RuntimeError("a Tensor with 2 elements cannot be converted to Scalar")


def test_a_fact_that_is_no_json_is_named() -> None:
    itself: list[Any] = []
    itself.append(itself)
    for fact in (object(), itself, np.zeros(2), Tensor()):
        with pytest.raises(TypeError, match="the fact 'odd' must be JSON"):
            plain_facts({"odd": fact})


@pytest.mark.parametrize("name", OWN)
def test_a_fact_with_a_name_of_our_own_is_refused(name: str) -> None:
    """``code`` made winner and default the same code, and ``curve`` ended the search in a traceback."""
    with pytest.raises(ValueError, match=f"'{name}' has a name of autotune's own"):
        given_facts({"path": "a", name: [0.5, 0.3]})


def test_it_is_refused_however_it_is_given() -> None:
    space = autotune.Space([IntegerRange("x", 0, 3)])
    found = autotune.search(
        space, objective=lambda x: autotune.Sample({"time": x + 1.0}, facts={"code": "a"}), store=":memory:"
    )
    assert set(found.statuses) == {"crashed"} and "the fact 'code'" in found.trials[0].message
    with autotune.ask_tell(StudySpec("told", space), store=":memory:") as session:
        [trial] = session.ask()
        with pytest.raises(autotune.InputError, match="the fact 'code'"):
            session.tell(trial, time=1.0, facts={"code": "a"})
        session.tell(trial, time=1.0, facts={"path": "a"})
