"""What a search believes of unwritten rules."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
import pytest

from autotune.search.contract import Observation
from autotune.search.models.features import Features
from autotune.search.models.rules import Rules
from autotune.search.models.thinning import MOST
from autotune.space.configuration import Configuration, Value
from autotune.space.knobs import IntegerRange, OrderedValues
from autotune.space.space import Space
from autotune.status import Status

SPACE = Space(
    [
        OrderedValues("tile", (16, 32, 48, 64, 96, 128), default=64),
        OrderedValues("lanes", (1, 2, 3, 4, 6, 8)),
        OrderedValues("vector", (1, 2, 3, 4)),
        OrderedValues("depth", (1, 2, 3, 4)),
    ]
)
FEATURES = Features(SPACE)
ALL = [dict(zip(("tile", "lanes", "vector", "depth"), row, strict=True)) for row in product(
    *(knob.cells[0].values for knob in SPACE.knobs)
)]  # fmt: skip


def divides(values: Mapping[str, Value]) -> bool:
    tile, lanes, vector = (int(str(values[name])) for name in ("tile", "lanes", "vector"))
    return tile % (lanes * vector) == 0


def told(rows: list[Mapping[str, Value]], failure: Status = Status.INFEASIBLE) -> list[Observation]:
    return [
        Observation(Configuration(row), Status.OK, {"time": 1.0})
        if divides(row)
        else Observation(Configuration(row), failure, {})
        for row in rows
    ]


def at_random(count: int, seed: int = 0) -> list[Mapping[str, Value]]:
    return [ALL[i] for i in np.random.default_rng(seed).permutation(len(ALL))[:count]]


def test_what_breaks_the_rule_is_not_expected_to_succeed() -> None:
    rules = Rules(FEATURES, told(at_random(100)))
    assert rules
    kept = np.exp(rules.log_kept(FEATURES.of(ALL).codes))
    even = np.array([divides(values) for values in ALL])
    assert kept[even].min() > 0.9
    assert np.median(kept[~even]) < 0.01


def test_only_failures_that_a_rule_accounts_for_are_explained() -> None:
    rules = Rules(FEATURES, told(at_random(100)))
    uneven, even = ({"tile": 16, "lanes": lanes, "vector": 1, "depth": 1} for lanes in (6, 4))
    assert rules.explains(Observation(Configuration(uneven), Status.CRASHED, {}))
    assert not rules.explains(Observation(Configuration(even), Status.CRASHED, {}))
    assert not rules.explains(Observation(Configuration(uneven), Status.TIMEOUT, {}))


@pytest.mark.parametrize("failure", [Status.OUT_OF_MEMORY, Status.TIMEOUT, Status.DIVERGED])
def test_what_runs_out_smoothly_has_no_rule(failure: Status) -> None:
    assert not Rules(FEATURES, told(at_random(100), failure))


def test_without_a_success_nothing_is_believed() -> None:
    assert not Rules(FEATURES, [o for o in told(at_random(100)) if o.status.failed])


def test_a_success_that_breaks_a_rule_refutes_it() -> None:
    rules = Rules(FEATURES, told(at_random(100)))
    broken = {"tile": 16, "lanes": 6, "vector": 1, "depth": 1}
    codes = FEATURES.of([broken]).codes
    assert rules.log_kept(codes)[0] < np.log(0.1)
    rules.learn(Observation(Configuration(broken), Status.OK, {"time": 1.0}))
    assert rules.log_kept(codes)[0] == 0.0


def test_no_success_is_forgotten_where_there_are_many_trials() -> None:
    """Also those that are left out when rules are looked for refute."""
    many = told([*ALL, *ALL])
    assert len(many) > 2 * MOST
    for odd in range(0, len(many), 97):
        one = many[odd]
        if one.status.failed:
            many[odd] = Observation(one.configuration, Status.OK, {"time": 1.0})
    rules = Rules(FEATURES, many)
    successes = [o.configuration for o in many if not o.status.failed]
    assert (rules.log_kept(FEATURES.of(successes).codes) == 0.0).all()


def test_a_bound_of_a_product_is_left_to_other_models() -> None:
    """However often it holds: what begins to fail there mostly depends on other knobs as well."""
    tried = [Configuration(values) for values in at_random(200)]
    assert not Rules(
        FEATURES,
        [
            Observation(one, Status.OK, {"time": 1.0})
            if int(str(one["tile"])) * int(str(one["depth"])) <= 128
            else Observation(one, Status.CRASHED)
            for one in tried
        ],
    )


def test_a_tile_that_does_not_divide_the_workload_is_not_expected_to_succeed() -> None:
    """Also where it is the only knob."""
    features = Features(Space([IntegerRange("tile", 1, 64, default=8)], workload={"rows": 720}))
    rows = np.random.default_rng(0).permutation(np.arange(1, 65))[:30].tolist()
    rules = Rules(
        features,
        [
            Observation(Configuration({"tile": tile}), Status.CRASHED, {})
            if 720 % tile
            else Observation(Configuration({"tile": tile}), Status.OK, {"time": 1.0})
            for tile in rows
        ],
    )
    kept = np.exp(rules.log_kept(features.of([{"tile": tile} for tile in range(1, 65)]).codes))
    even = np.array([720 % tile == 0 for tile in range(1, 65)])
    assert kept[even].min() > 0.9 and kept[~even].max() < 0.1
