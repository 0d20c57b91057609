"""index-c finds every place exactly, whatever the index, and says what the index takes."""

from __future__ import annotations

import shutil
from bisect import bisect_left
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune.measure.objective import WrongAnswer
from autotune.space.configuration import Configuration
from tests.objectives.planted import Kernel, load_changed
from tests.objectives.ready import Ready, ready

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="index-c is compiled by gcc")

DISTRIBUTIONS = ("uniform", "lognormal", "clustered")
TREE = {"scheme": "tree", "width": 8, "vector": 4, "group": 4, "leaves": None, "logs": None}
LEARNED = {"scheme": "learned", "leaves": 6, "logs": True, "group": 4, "width": None, "vector": None}


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Ready:
    return ready("index-c", tmp_path_factory.mktemp("index"))


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_oracle_is_the_definition(space: Ready, distribution: str) -> None:
    objective = space.objective(keys=500, lookups=400, distribution=distribution)
    inputs = objective.make_inputs(np.random.default_rng(0))
    keys, queries = inputs["keys"].tolist(), inputs["queries"].tolist()
    assert objective.reference(inputs)["places"].tolist() == [bisect_left(keys, query) for query in queries]
    assert all(a < b for a, b in pairwise(keys)), "sorted, and none of them twice"
    present = sum(query in set(keys) for query in queries)
    assert 100 < present < 300, "half of the queries are keys"
    assert min(queries) == 0 and max(queries) == 2**64 - 1


def test_distributions_are_what_they_are_called(space: Ready) -> None:
    shares = {}
    for distribution in DISTRIBUTIONS:
        objective = space.objective(keys=20_000, lookups=1, distribution=distribution)
        keys = objective.make_inputs(np.random.default_rng(3))["keys"].astype(float)
        halves = np.histogram(keys, bins=2)[0] / len(keys)
        logs = np.log(keys)
        within = np.mean(np.abs(logs - logs.mean()) < logs.std())
        shares[distribution] = (halves[0], within)
    assert abs(shares["uniform"][0] - 0.5) < 0.02
    assert shares["lognormal"][0] > 0.99 and abs(shares["lognormal"][1] - 0.683) < 0.02
    assert abs(shares["clustered"][0] - 0.5) > 0.02


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32 - 1),
    keys=st.integers(1, 5000),
    lookups=st.integers(1, 200),
    distribution=st.sampled_from(DISTRIBUTIONS),
)
def test_any_configuration_finds_every_place(
    space: Ready, seed: int, keys: int, lookups: int, distribution: str
) -> None:
    (configuration,) = space.spec.space.sample(np.random.default_rng(seed), 1)
    assert space.error(configuration, {"keys": keys, "lookups": lookups, "distribution": distribution}) == 0


def bytes_of(space: Ready, configuration: Configuration, keys: int) -> float:
    objective = space.objective(keys=keys, lookups=10)
    loaded = objective.load(objective.prepare(configuration))
    return float(objective.measure(loaded, np.random.default_rng(0))["bytes"])


def test_it_says_what_its_index_takes(space: Ready) -> None:
    assert bytes_of(space, space.spec.space.default(), 1000) == 0
    # 125 blocks of keys, of which 16 blocks know the last ones, of which two do, of which one does.
    assert bytes_of(space, space.configuration(**TREE), 1000) == (16 + 2 + 1) * 8 * 8
    # 64 lines of 32 bytes, and the one that leads to them.
    assert bytes_of(space, space.configuration(**LEARNED), 1000) == 64 * 32 + 16


def test_every_baseline_is_right(space: Ready) -> None:
    objective = space.objective(keys=3000, lookups=500)
    for baseline in objective.baselines():
        loaded = objective.load_baseline(baseline)
        assert objective.check(loaded, np.random.default_rng(1))["error"] == 0, baseline


FAULTS = {
    "a window that is one place short": (
        LEARNED,
        "1 - off > l.behind ? 1 - off",
        "1 - off > l.behind ? -off",
    ),
    "a window that begins one place late": (
        LEARNED,
        "from = place - l->before,",
        "from = place - l->before + 1,",
    ),
    "a last block that is not there": (
        TREE,
        "smaller(next, in->blocks[level - 1] - 1)",
        "next % WIDTH ? next : 0",
    ),
    "a last block that is read where it would begin": (
        TREE,
        "smaller(block[g] * WIDTH, in->n - WIDTH)",
        "block[g] * WIDTH % (in->n - WIDTH + 1)",
    ),
    "an index that is said to take less than it does": (
        TREE,
        "return blocks * WIDTH * sizeof(key)",
        "return blocks * WIDTH * sizeof(key) - 8",
    ),
    "last queries that are left out": (TREE, "if (i < count)", "if (0)"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_line_is_always_caught(space: Ready, fault: str, tmp_path: Path) -> None:
    knobs, old, new = FAULTS[fault]
    kernel = Kernel("index-c", "", "", "", "", "", {"keys": 4000, "lookups": 256}, {**knobs, "optimize": 1})
    objective, changed = load_changed(space, kernel, old, new, tmp_path)
    for seed in range(20):
        with pytest.raises(WrongAnswer):
            objective.check(changed, np.random.default_rng((seed, 0)))


def test_a_distribution_that_is_not_known_is_refused(space: Ready) -> None:
    with pytest.raises(Exception, match="one of uniform, lognormal, clustered, not zipf"):
        space.objective(distribution="zipf")
