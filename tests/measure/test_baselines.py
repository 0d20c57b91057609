"""Baselines that could not be told apart, sent or stored are refused before anything is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.measure.baselines import baselines_of
from autotune.measure.objective import Baseline, Context, Objective


class Vendors(Objective):
    given: tuple[Baseline, ...] = ()

    def baselines(self) -> tuple[Baseline, ...]:
        return self.given


def found(*given: Baseline) -> tuple[Baseline, ...]:
    objective = Vendors(Context({}, {}, Path()))
    objective.given = given
    return baselines_of(objective)


def test_what_is_named_comes_as_plain_texts() -> None:
    tuned = Baseline("blas", "tuned", {"THREADS": 2})  # type: ignore[dict-item]
    assert found(tuned, Baseline("other")) == (Baseline("blas", "tuned", {"THREADS": "2"}), Baseline("other"))
    assert found() == ()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((Baseline("blas"), Baseline("blas")), "2 baselines are called 'blas'"),
        ((Baseline("the default"),), "a baseline cannot be called 'the default'"),
        ((Baseline("trial 12"),), "a baseline cannot be called 'trial 12'"),
        ((Baseline("blas", "", {"A": "x\0y"}),), "the environment of the baseline 'blas' has 'A'"),
        ((Baseline("blas", "", {"A=B": "x"}),), "has 'A=B': 'x'"),
    ],
)
def test_what_could_not_be_told_apart_or_set_is_refused(given: tuple[Baseline, ...], said: str) -> None:
    with pytest.raises(InputError, match=r"Vendors\.baselines\(\)") as refused:
        found(*given)
    assert said in str(refused.value) and "expected" in str(refused.value)
