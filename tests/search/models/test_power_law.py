"""A goal that is a product of powers is told from one that only looks like it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from autotune.search.models.features import Features
from autotune.search.models.gaussian_process import GaussianProcess
from autotune.search.models.posterior import Posterior
from autotune.search.models.power_law import law_of
from autotune.space.knobs import IntegerRange
from autotune.space.space import Space

SPACE = Space([IntegerRange("batch", 1, 1024)])
FEATURES = Features(SPACE)
SEEN = (8, 3, 64, 16, 128)
Goal = Callable[[Mapping[str, Any]], float]


def found(goal: Goal, cut: int = 0, seen: Sequence[int] = SEEN) -> tuple[GaussianProcess, Any, Any] | None:
    """The law of a goal to maximise, and what it was learned from; the ``cut`` worst count as the next."""
    configurations = [SPACE.configuration({"batch": b}) for b in seen]
    uncut = -np.log([goal(c) for c in configurations])
    targets = np.minimum(uncut, np.sort(uncut)[len(uncut) - 1 - cut])
    uncut, targets = (uncut - targets.mean()) / targets.std(), (targets - targets.mean()) / targets.std()
    inputs, known = FEATURES.of(configurations), np.zeros(len(seen))
    usual = GaussianProcess(FEATURES.columns)
    usual.fit(inputs, targets, known)
    law = law_of(usual, FEATURES, inputs, targets, uncut, known)
    return None if law is None else (law, inputs, uncut)


@pytest.mark.parametrize("cut", [0, 1])
def test_a_product_orders_what_was_not_tried(cut: int) -> None:
    law = found(lambda v: 3.0 * v["batch"], cut)
    assert law is not None
    process, inputs, targets = law
    batches = [200, 190, 100, 50]
    there = FEATURES.of([SPACE.configuration({"batch": b}) for b in batches])
    mean, spread = Posterior(process, inputs).predict_at(targets[:, None], there)
    assert np.all(np.diff(mean[:, 0]) > 0.0) and spread.max() < 0.1


@pytest.mark.parametrize(
    "goal",
    [
        lambda v: 1.0 / (1.0 + 30.0 / v["batch"]),
        lambda v: 2.0 + np.sin(v["batch"]),
    ],
    ids=["saturates", "waves"],
)
def test_others_have_no_law(goal: Goal) -> None:
    assert found(goal) is None


def test_two_values_are_not_enough() -> None:
    assert found(lambda v: v["batch"], seen=SEEN[:2]) is None
