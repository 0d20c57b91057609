"""Several knobs changed at once: what is predicted is what is proposed, and what cannot change stays."""

from __future__ import annotations

import numpy as np
import pytest

from autotune.search.candidates.mutants import MUTANTS, Changes, Mutants
from autotune.search.candidates.pool import Pools, towards_default
from autotune.search.contract import Observation, Problem
from autotune.search.models.features import Features
from autotune.search.models.gaussian_process import MANY, GaussianProcess
from autotune.search.registry import make_strategy
from autotune.space.configuration import Configuration
from autotune.space.knobs import Choice, Flag, FloatRange, Permutation
from autotune.space.reading.reader import parse_spec
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status

TEXT = """
autotune: 1
name: a
objective: a.py:A
knobs:
  kind: {choices: [x, y], default: x}
  rate: {range: [1.0e-4, 1.0], scale: log}
  size: {range: [1, 4096], scale: log2}
  unroll: {values: [1, 2, 4, 8, 16], default: 4}
  how: {choices: [a, b, c]}
  only: {values: [3]}
  packed: {flag: false}
  momentum: {range: [0.5, 0.99], when: "kind == 'y'"}
  depth: {values: [1, 2, 3], when: "kind == 'x'"}
  order: {permutation: [i, j, k, l]}
  place: {assign: [p, q, r], to: [0, 1]}
constraints: ["unroll * size <= 16384"]
"""
SPACE = parse_spec(TEXT, "space.yaml").space
FEATURES = Features(SPACE)


def mutants(*centres: Configuration, seed: int = 0, step: float = 0.1) -> Mutants:
    return Mutants.of(Changes(FEATURES), centres, step, np.random.default_rng(seed))


@pytest.mark.parametrize("seed", range(5))
def test_what_is_predicted_is_what_is_proposed(seed: int) -> None:
    centres = SPACE.sample(np.random.default_rng(seed), 3)
    found = mutants(*centres, seed=seed)
    assert len(found) == len(found.inputs) == 3 * MUTANTS
    made = {row: c for row in range(len(found)) if (c := found[row]) is not None}
    assert len(made) > 0.8 * len(found)
    assert all(c in SPACE for c in made.values())
    alike = FEATURES.of(list(made.values()))
    assert found.inputs.smooth[list(made)] == pytest.approx(alike.smooth)
    assert (found.inputs.codes[list(made)] == alike.codes).all()


def test_every_knob_changes_but_what_decides_which_there_are() -> None:
    centre = SPACE.default()
    made = [c for row in range(MUTANTS) for s in range(6) if (c := mutants(centre, seed=s)[row]) is not None]
    changed = {name for c in made for name in c if c[name] != centre[name]}
    assert changed == {"rate", "size", "unroll", "how", "packed", "depth", "order", "place"}
    counts = [sum(c[name] != centre[name] for name in c) for c in made]
    assert {0, 1, 2, 3} <= set(counts) and np.mean(counts) == pytest.approx(1.5, abs=0.4)


def test_what_does_not_change_keeps_its_value_to_the_last_bit() -> None:
    centre = SPACE.configuration({"kind": "y", "rate": 0.003, "momentum": 0.7})
    made = [c for row in range(MUTANTS) if (c := mutants(centre)[row]) is not None]
    assert sum(c["rate"] == 0.003 for c in made) > MUTANTS / 2
    assert sum(c["momentum"] == 0.7 for c in made) > MUTANTS / 2


def test_an_order_of_one_item_never_changes() -> None:
    space = Space([Permutation("order", ("i",)), Flag("a"), Flag("b")])
    found = Mutants.of(Changes(Features(space)), [space.default()], 0.1, np.random.default_rng(0))
    made = [c for row in range(len(found)) if (c := found[row]) is not None]
    assert len(made) == MUTANTS and {c["order"] for c in made} == {("i",)} and len(set(made)) == 4


def flags(count: int) -> Space:
    return Space([Flag(f"f{i}") for i in range(count)])


def test_among_many_knobs_each_is_taken_to_matter_less() -> None:
    few, many = (GaussianProcess(Features(flags(n)).columns) for n in (MANY, 4 * MANY))
    assert np.exp(few.parameters[0]) == pytest.approx(4 * np.exp(many.parameters[0]))
    assert few.parameters[-3:] == pytest.approx(many.parameters[-3:])
    # Of knobs under conditions those count that there are at once, and none that has a single value.
    rare = [FloatRange(f"r{i}", 0.0, 1.0, when="kind == 'b'") for i in range(50)]
    space = Space([Choice("kind", ("a", "b")), Choice("one", ("a",)), *rare])
    assert Features(space).columns.knobs == 1


def test_only_spaces_of_many_knobs_that_cannot_be_listed_have_them() -> None:
    def draw(space: Space) -> bool:
        return Pools(Features(space), seed=0, count=10).draw(Features(space), due=0).many

    assert draw(flags(20)) and not draw(flags(MANY)) and not draw(SPACE)


def test_random_candidates_among_many_knobs_keep_some_of_the_default() -> None:
    space, rng = flags(64), np.random.default_rng(0)
    drawn = space.sample(rng, 200)
    found = [towards_default(space, one, rng) for one in drawn]
    default = space.default()
    changed = np.array([sum(one[name] != default[name] for name in one) for one in found])
    assert np.percentile(changed, 25) < 3 and 2 <= np.median(changed) < 8 and changed.max() > 20
    forbidden = Space([Flag("a"), Flag("b")], ["a == b"])
    both = forbidden.configuration({"a": True, "b": True})
    assert {towards_default(forbidden, both, rng) in forbidden for _ in range(50)} == {True}


@pytest.mark.long
def test_a_search_finds_the_few_flags_that_matter() -> None:
    """Ten of sixty, each by 4 %: a step a try, and a random one, come to half of that in as many tries."""
    space, rng = flags(60), np.random.default_rng(1)
    effects = np.zeros(60)
    effects[rng.choice(60, 10, replace=False)] = 0.04 * rng.choice((-1.0, 1.0), 10)
    searcher = make_strategy("auto", Problem(space, (MetricSpec("time", "minimize"),), 60), seed=0)
    found = []
    for _ in range(60):
        configuration = searcher.ask()[0].configuration
        on = np.array([configuration[f"f{i}"] for i in range(60)], dtype=float)
        found.append(float(effects @ on))
        searcher.tell([Observation(configuration, Status.OK, {"time": float(np.exp(found[-1]))})])
    assert min(found) < 0.9 * effects[effects < 0].sum()
