"""Which unwritten rules outcomes give away."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.search.models.arrays import Flags, Floats
from autotune.search.models.hypotheses import MOST_RULES, Suspects, suspected
from autotune.search.models.rule_text import constraint

KNOBS: dict[str, tuple[int, ...]] = {
    "tile": (16, 32, 48, 64, 96, 128),
    "lanes": (1, 2, 4, 8),
    "threads": (32, 64, 128, 256, 512),
    "vector": (1, 2, 3, 4),
}
NAMES = tuple(KNOBS)
ALL = np.array(list(product(*KNOBS.values())))

Holds = Callable[[Mapping[str, int]], bool]


def outcomes(holds: Holds, tries: int, seed: int = 0) -> tuple[Floats, Flags]:
    """Logarithms of the knobs of tries at random, and which of them succeeded."""
    drawn = np.random.default_rng(seed).permutation(len(ALL))[:tries]
    good = np.array([holds(dict(zip(NAMES, row, strict=True))) for row in ALL[drawn].tolist()])
    return np.log2(ALL[drawn]), good


def said(found: list[Suspects], logs: Floats, good: Flags) -> list[str]:
    return [constraint(NAMES, each, logs[good]) for each in found]


@pytest.mark.parametrize(
    ("holds", "text"),
    [
        (lambda at: at["tile"] % (at["lanes"] * at["vector"]) == 0, "tile % (lanes * vector) == 0"),
        (lambda at: at["lanes"] * at["threads"] <= 512, "lanes * threads <= 512"),
        (lambda at: at["tile"] * at["vector"] >= 96, "tile * vector >= 96"),
        (lambda at: at["lanes"] <= at["vector"], "lanes <= vector"),
        (lambda at: at["lanes"] < at["vector"], "lanes < vector"),
        (lambda at: at["threads"] == 2 * at["tile"], "2 * tile == threads"),
    ],
)
def test_a_rule_is_found_by_name(holds: Holds, text: str) -> None:
    logs, good = outcomes(holds, 160)
    found = list(suspected(logs, good))
    assert said(found, logs, good) == [text]
    assert found[0].probabilities[0] > 0.5


def test_two_rules_are_told_apart() -> None:
    def holds(at: Mapping[str, int]) -> bool:
        return at["tile"] % (at["lanes"] * at["vector"]) == 0 and at["threads"] * at["vector"] <= 512

    logs, good = outcomes(holds, 240)
    found = list(suspected(logs, good))
    assert set(said(found, logs, good)) == {"tile % (lanes * vector) == 0", "threads * vector <= 512"}


@pytest.mark.parametrize("seed", range(20))
def test_where_chance_decides_no_rule_is_believed(seed: int) -> None:
    logs, _ = outcomes(lambda at: True, 60, seed)
    good = np.random.default_rng(seed).random(len(logs)) < 0.6
    for each in suspected(logs, good):
        assert each.probabilities.sum() < 0.5


def test_bounds_need_not_be_looked_for() -> None:
    logs, good = outcomes(lambda at: at["lanes"] * at["threads"] <= 512, 160)
    assert not list(suspected(logs, good, bounds=False))


def test_a_success_refutes() -> None:
    logs, good = outcomes(lambda at: at["lanes"] * at["threads"] <= 512, 160)
    (suspects,) = suspected(logs, good)
    breaks = ~suspects.kept(np.log2([[16, 8, 512, 1]]))[0]
    assert breaks[0]
    left = suspects.without(breaks)
    assert len(left.odds) == len(suspects.odds) - breaks.sum()
    assert left.probabilities.sum() < suspects.probabilities.sum()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_rule_contradicts_a_success(data: st.DataObject) -> None:
    """Whatever is told, all that succeeded keeps every hypothesis, and no probability is past its range."""
    tries = data.draw(st.integers(1, 40))
    rows = data.draw(st.lists(st.integers(0, len(ALL) - 1), min_size=tries, max_size=tries))
    good = np.array(data.draw(st.lists(st.booleans(), min_size=tries, max_size=tries)))
    if not good.any():
        return
    logs = np.log2(ALL[rows])
    found = list(suspected(logs, good))
    assert len(found) <= MOST_RULES
    for each in found:
        believed = each.odds > 0.0
        assert each.kept(logs[good])[:, believed].all()
        assert 0.0 <= each.probabilities.min() <= each.probabilities.sum() <= 1.0


def of_facts(holds: Holds, tries: int, **facts: int) -> list[str]:
    """The rules found where a workload has these ``facts``, in words."""
    logs, good = outcomes(holds, tries)
    logs = np.column_stack([logs, *(np.full(len(logs), np.log2(fact)) for fact in facts.values())])
    found = suspected(logs, good, facts=len(facts))
    return [constraint((*NAMES, *facts), each, logs[good]) for each in found]


@pytest.mark.parametrize(
    ("holds", "text"),
    [
        (lambda at: 480 % at["tile"] == 0, "rows % tile == 0"),
        (lambda at: 960 % (at["tile"] * at["lanes"]) == 0, "columns % (tile * lanes) == 0"),
    ],
)
def test_a_fact_of_the_workload_may_have_to_be_divided(holds: Holds, text: str) -> None:
    """A tile that does not divide the rows was learned value by value."""
    assert of_facts(holds, 120, rows=480, columns=960) == [text]


def test_what_is_only_too_large_need_not_divide_a_fact() -> None:
    """Of powers of two, those that divide 96 are those up to 32. Who believes it never tries 64 again."""
    logs, good = outcomes(lambda at: at["threads"] <= 128, 160)
    logs = np.column_stack([logs, np.full(len(logs), np.log2(128 * 9))])
    for each in suspected(logs, good, facts=1, bounds=False):
        assert not each.exponents[-1].any()


def test_one_knob_alone_is_no_product() -> None:
    assert list(suspected(np.log2([[1.0], [2.0], [4.0], [8.0]]), np.array([True, False, False, False]))) == []
