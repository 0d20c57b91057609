"""What earlier studies teach: followed where they are right, dropped where they mislead."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from autotune.search.bayes import Bayes
from autotune.search.contract import Observation, Problem, Proposal, Source
from autotune.search.features import Features
from autotune.search.transfer import Transfer
from autotune.space.configuration import Configuration
from autotune.space.knobs import Flag, IntegerRange
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status

SPACE = Space([IntegerRange("x", 0, 15), IntegerRange("y", 0, 15), Flag("fused")])
TIME = (MetricSpec("time", "minimize", "s"),)
Timing = Callable[[Configuration], float]


def here(configuration: Configuration) -> float:
    far = (configuration["x"] - 11) ** 2 + (configuration["y"] - 4) ** 2
    return float(1.0 + 0.05 * far + 0.5 * configuration["fused"])


def slower(configuration: Configuration) -> float:
    return 3.0 * here(configuration)


def opposite(configuration: Configuration) -> float:
    return 1.0 / here(configuration)


def told(timing: Timing, configuration: Configuration) -> Observation:
    return Observation(configuration, Status.OK, {"time": timing(configuration)})


def source(timing: Timing, label: str = "elsewhere", count: int = 60) -> Source:
    drawn = SPACE.sample(np.random.default_rng(1), count)
    return Source(label, tuple(told(timing, c) for c in drawn))


def searched(sources: tuple[Source, ...], tries: int) -> list[Proposal]:
    strategy = Bayes(Problem(SPACE, TIME, sources=sources), seed=0)
    found = []
    while len(found) < tries:
        found += (proposals := strategy.ask(1))
        strategy.tell([told(here, p.configuration) for p in proposals])
    return found


def beliefs(*sources: Source, tries: int = 8) -> dict[str, float]:
    transfer = Transfer(Problem(SPACE, TIME, sources=sources), Features(SPACE))
    drawn = SPACE.sample(np.random.default_rng(2), tries)
    belief = transfer.belief([told(here, c) for c in drawn], turn=0)
    return dict(belief.reason.get("sources", {})) if belief else {}  # type: ignore[call-overload]


def test_a_source_that_is_right_but_slower_everywhere_is_followed() -> None:
    assert beliefs(source(slower))["elsewhere"] == pytest.approx(1.0, abs=0.25)


def test_a_source_that_says_the_opposite_is_dropped() -> None:
    assert beliefs(source(opposite)) == {}


def test_the_better_of_two_sources_counts_more() -> None:
    found = beliefs(source(slower, "right"), source(opposite, "wrong"))
    assert found.get("wrong", 0.0) < 0.5 * found["right"]


def test_the_best_elsewhere_comes_first_and_the_trials_name_the_source() -> None:
    proposals = searched((source(slower),), 8)
    best = min(source(slower).observations, key=lambda o: o.metrics["time"]).configuration
    assert proposals[1].configuration == best  # the default is first
    assert proposals[1].reason["kind"] == "best elsewhere"
    assert any("sources" in p.reason and p.reason["kind"] == "expected improvement" for p in proposals)


def test_it_needs_fewer_tries_than_a_search_that_begins_from_nothing() -> None:
    taught, alone = (min(here(p.configuration) for p in searched(s, 7)) for s in ((source(slower),), ()))
    assert taught < alone


def test_a_misleading_source_does_not_keep_the_search_from_the_optimum() -> None:
    assert min(here(p.configuration) for p in searched((source(opposite),), 45)) <= 1.05


def test_trials_outside_this_space_are_left_aside() -> None:
    strange = tuple(Observation(Configuration({"x": 99}), Status.OK, {"time": 1.0}) for _ in range(20))
    assert not Transfer(Problem(SPACE, TIME, sources=(Source("strange", strange),)), Features(SPACE))


def test_sources_with_too_few_successes_or_none_are_left_out() -> None:
    failures = tuple(Observation(c, Status.CRASHED) for c in SPACE.sample(np.random.default_rng(0), 20))
    sources = (source(slower, count=5), Source("failing", failures))
    assert not Transfer(Problem(SPACE, TIME, sources=sources), Features(SPACE))


def test_several_goals_are_searched_without_sources() -> None:
    goals = (*TIME, MetricSpec("energy", "minimize", "J"))
    assert not Transfer(Problem(SPACE, goals, sources=(source(slower),)), Features(SPACE))


def test_a_resumed_search_proposes_the_same() -> None:
    whole = searched((source(slower),), 14)
    resumed = Bayes(Problem(SPACE, TIME, sources=(source(slower),)), seed=0)
    before = [p.configuration for p in whole[:12]]
    resumed.restore(12, before, [told(here, c) for c in before])
    assert [p.configuration for p in resumed.ask(1)] == [whole[12].configuration]
