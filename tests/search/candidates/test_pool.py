"""Candidates: what is predicted at is what is proposed."""

from __future__ import annotations

import numpy as np
import pytest

from autotune.search.candidates.pool import KEPT, Pool, Pools
from autotune.search.models.features import Features
from autotune.space.configuration import Configuration
from autotune.space.reading.reader import parse_spec
from autotune.space.space import Space

TEXT = """
autotune: 1
name: a
objective: a.py:A
knobs:
  rate: {range: [1.0e-4, 1.0], scale: log}
  decay: {range: [0.0, 1.0]}
  kind: {choices: [sgd, adam], default: sgd}
  momentum: {range: [0.5, 0.99], when: "kind == 'sgd'"}
  batch: {range: [8, 512], scale: log}
constraints: ["rate * batch <= 64"]
"""
SPACE = parse_spec(TEXT, "space.yaml").space


def around(space: Space, *centres: Configuration, seed: int = 0) -> tuple[Features, Pool]:
    features = Features(space)
    pool = Pools(features, seed=0, count=50).draw(features, due=0)
    pool.near(list(centres), np.random.default_rng(seed))
    return features, pool


@pytest.mark.parametrize("seed", range(5))
def test_what_is_near_is_predicted_where_it_lies(seed: int) -> None:
    centres = SPACE.sample(np.random.default_rng(seed), 3)
    features, pool = around(SPACE, *centres, seed=seed)
    assert len(pool.fresh) == len(pool.fresh.inputs) > 60
    made = {i: c for i in range(len(pool.fresh)) if (c := pool.fresh[i]) is not None}
    assert len(made) > 0.8 * len(pool.fresh)
    assert all(c in SPACE for c in made.values())
    alike = features.of(list(made.values()))
    assert pool.fresh.inputs.smooth[list(made)] == pytest.approx(alike.smooth)
    assert (pool.fresh.inputs.codes[list(made)] == alike.codes).all()


def test_what_moving_makes_infeasible_is_none() -> None:
    edge = Configuration({"rate": 0.125, "decay": 0.5, "kind": "adam", "batch": 512})
    _, pool = around(SPACE, edge)
    rates = [None if (c := pool.fresh[i]) is None else c["rate"] for i in range(len(pool.fresh))]
    assert None in rates
    assert max(rate for rate in rates if rate is not None) > 0.1


def test_what_is_not_moved_keeps_its_value_to_the_last_bit() -> None:
    centre = Configuration({"rate": 0.003, "decay": 0.1, "kind": "sgd", "momentum": 0.7, "batch": 64})
    _, pool = around(SPACE, centre)
    made = [c for i in range(len(pool.fresh)) if (c := pool.fresh[i]) is not None]
    for name in ("rate", "decay", "momentum"):
        assert sum(c.get(name) == centre[name] for c in made) > len(made) / 4


def test_a_knob_that_does_not_exist_is_not_moved() -> None:
    without = Configuration({"rate": 0.01, "decay": 0.5, "kind": "adam", "batch": 64})
    _, pool = around(SPACE, without)
    made = [c for i in range(len(pool.fresh)) if (c := pool.fresh[i]) is not None]
    assert {"momentum" in c for c in made if c["kind"] == "adam"} == {False}
    assert any("momentum" in c for c in made), "among the neighbours is one of the other kind"


def test_other_candidates_are_drawn_when_more_is_known() -> None:
    features = Features(SPACE)
    pools = Pools(features, seed=0, count=50)
    at = {due: pools.draw(features, due) for due in (11, 13, 40)}
    assert [at[11][i] for i in range(50)] == [at[13][i] for i in range(50)]
    assert at[11][0] != at[40][0]
    assert [Pools(features, 0, 50).draw(features, 40)[i] for i in range(50)] == [at[40][i] for i in range(50)]


def test_surroundings_are_kept_for_some() -> None:
    features = Features(SPACE)
    pools = Pools(features, seed=0, count=10)
    for n, centre in enumerate(SPACE.sample(np.random.default_rng(0), KEPT + 5)):
        pools.draw(features, due=n).near([centre], np.random.default_rng(n))
    assert len(pools._surroundings) == KEPT
