"""What earlier studies teach: followed where they are right, dropped where they mislead."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from autotune.search.contract import Observation, Problem, Proposal, Source
from autotune.search.models.features import Features
from autotune.search.models.source_model import CONSISTENT, SourceModel
from autotune.search.models.transfer import TAUGHT, Transfer
from autotune.search.strategies.bayes import Bayes
from autotune.space.configuration import Configuration
from autotune.space.knobs import Assignment, Flag, IntegerRange
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


def searched(sources: tuple[Source, ...], tries: int, default_first: bool = True) -> list[Proposal]:
    strategy = Bayes(Problem(SPACE, TIME, sources=sources, default_first=default_first), seed=0)
    found = []
    while len(found) < tries:
        found += (proposals := strategy.ask(1))
        strategy.tell([told(here, p.configuration) for p in proposals])
    return found


def beliefs(*sources: Source, tries: int = 8) -> dict[str, float]:
    transfer = Transfer(Problem(SPACE, TIME, sources=sources), Features(SPACE))
    drawn = SPACE.sample(np.random.default_rng(2), tries)
    belief = transfer.belief([told(here, c) for c in drawn])
    return dict(belief.reason.get("sources", {})) if belief else {}  # type: ignore[call-overload]


def test_a_source_that_is_right_but_slower_everywhere_is_followed() -> None:
    assert beliefs(source(slower))["elsewhere"] == pytest.approx(1.0, abs=0.25)


def test_a_source_that_says_the_opposite_is_dropped() -> None:
    assert beliefs(source(opposite)) == {}


def test_the_better_of_two_sources_counts_more() -> None:
    found = beliefs(source(slower, "right"), source(opposite, "wrong"))
    assert found.get("wrong", 0.0) < 0.5 * found["right"]


def test_the_first_try_owes_nothing_to_the_sources_and_the_second_is_the_best_elsewhere() -> None:
    default, second, *later = searched((source(slower),), 8)
    best = min(source(slower).observations, key=lambda o: o.metrics["time"]).configuration
    assert default.reason["kind"] == "default" and "sources" not in default.reason
    assert second.configuration == best
    assert second.reason["kind"] == "best elsewhere" and second.reason["sources"] == {"elsewhere": 1.0}
    assert any("sources" in p.reason and p.reason["kind"] == "expected improvement" for p in later)


def test_then_a_switch_is_turned_around_the_best() -> None:
    _, best, turned = (p.configuration for p in searched((source(slower),), 3))
    assert turned == {**best, "fused": not best["fused"]}


def test_where_a_single_item_goes_is_a_switch_too() -> None:
    space = Space([IntegerRange("x", 0, 15), Assignment("where", ("model",), ("gpu0", "gpu1"))])

    def elsewhere(configuration: Configuration) -> float:
        return float(1.0 + configuration["x"] + (configuration["where"]["model"] == "gpu0"))

    drawn = space.sample(np.random.default_rng(1), 60)
    transfer = Transfer(
        Problem(space, TIME, sources=(Source("a", tuple(told(elsewhere, c) for c in drawn)),)),
        Features(space),
    )
    default, best = space.configuration({"x": 9}), space.configuration({"x": 0, "where": {"model": "gpu1"}})
    tried = [default, best]
    found = transfer.opening([told(elsewhere, c) for c in tried], tried, {c.hash for c in tried})
    assert found is not None and found[0] == {"x": 0, "where": {"model": "gpu0"}}


def test_what_is_good_on_two_devices_comes_before_what_is_best_on_one() -> None:
    everywhere = SPACE.sample(np.random.default_rng(3), 200)
    slow = [c for c in everywhere if here(c) > 3.0]
    special = [min(slow, key=lambda c: c["x"]), max(slow, key=lambda c: c["x"])]  # best on one device each
    sources = tuple(
        Source(str(i), tuple(told(lambda c, one=one: 0.9 if c == one else here(c), c) for c in everywhere))
        for i, one in enumerate(special)
    )
    second = searched(sources, 2)[1]
    assert second.reason["kind"] == "best elsewhere" and set(second.reason["sources"]) == {"0", "1"}  # type: ignore[call-overload]
    assert second.configuration == min(everywhere, key=here)


def test_a_source_that_misleads_costs_one_try() -> None:
    # The default lies where this source is at its best, and would not tell.
    proposals = searched((source(opposite),), 12, default_first=False)
    informed = [p for p in proposals if "sources" in p.reason]
    assert [p.reason["kind"] for p in informed] == ["best elsewhere"]


def test_a_source_whose_times_are_shuffled_is_left_out() -> None:
    right = source(slower)
    times = np.random.default_rng(4).permutation([o.metrics["time"] for o in right.observations])
    shuffled = tuple(
        Observation(o.configuration, o.status, {"time": float(t)})
        for o, t in zip(right.observations, times, strict=True)
    )
    problem, features = Problem(SPACE, TIME), Features(SPACE)
    assert SourceModel.of(problem, features, Source("shuffled", shuffled)) is None
    model = SourceModel.of(problem, features, right)
    assert model is not None and model.consistency > 2.0 * CONSISTENT


def test_the_sources_are_left_aside_once_they_have_been_heard() -> None:
    assert beliefs(source(slower), tries=TAUGHT - 1) and not beliefs(source(slower), tries=TAUGHT)


def test_tries_that_differ_in_a_switch_alone_count_as_one_for_the_level_of_the_rest() -> None:
    turned = [Configuration({"x": 3, "y": 4, "fused": fused}) for fused in (False, True)]
    others = [Configuration({"x": x, "y": 0, "fused": True}) for x in range(10)]
    problem = Problem(SPACE, TIME, sources=(source(slower),))
    shares = Transfer(problem, Features(SPACE)).shares([others[0], *turned, *others[1:], turned[0]])
    assert shares is not None
    assert shares.tolist() == [1.0, 0.5, 0.5, *[1.0] * 10], "and those tried later count as they are"
    assert Transfer(Problem(SPACE, TIME), Features(SPACE)).shares(others) is None


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
