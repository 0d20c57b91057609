"""Fresh starts: when a search begins anew, with what, and where it never does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from autotune.search.acquisition.ambition import LAST
from autotune.search.contract import Observation, Problem, Proposal, Strategy
from autotune.search.registry import make_strategy
from autotune.search.strategies.fresh_starts import BESIDE, PATIENCE
from autotune.space.knobs import Choice, FloatRange
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status

SPACE = Space([FloatRange(name, 0.0, 1.0, default=0.85) for name in "xyz"])
CHOICES = Space([*SPACE.knobs, Choice("kind", ("a", "b"))])
LOSS, COST = MetricSpec("loss", "minimize"), MetricSpec("cost", "minimize")
SIZE = MetricSpec("size", at_most=2.0)
ONE = {"loss": 1.0}
TRIES = 200
OPENING = 3
"""The option ``initial``."""
SHALLOW, DEEP = (0.8, 0.8, 0.8), (0.2, 0.3, 0.2)


def loss(knobs: Mapping[str, Any]) -> float:
    """A well around the default, and a deeper one."""
    wells = ((SHALLOW, 1.0), (DEEP, 2.0))
    return 3.0 - sum(
        depth
        * math.exp(-sum(((knobs[name] - at) / 0.2) ** 2 for name, at in zip("xyz", centre, strict=True)))
        for centre, depth in wells
    )


def separable(knobs: Mapping[str, Any]) -> float:
    """Each knob has two wells of its own, of which the narrow one is the deeper."""
    return sum(
        2.0 - math.exp(-(((x - 0.75) / 0.2) ** 2)) - 2.0 * math.exp(-(((x - 0.2) / 0.05) ** 2))
        for x in knobs.values()
    )


def searching(
    name: str = "auto",
    in_flight: int = 1,
    seed: int = 0,
    loss: Callable[[Mapping[str, Any]], float] = loss,
    timed: bool = False,
) -> Iterator[tuple[Strategy, list[Proposal]]]:
    """A search of :data:`TRIES` tries, or of as many seconds, and what it has proposed, after each."""
    budget, limit = (None, 1.0 * TRIES) if timed else (TRIES, None)
    strategy = make_strategy(name, Problem(SPACE, (LOSS,), budget, seconds=limit), seed)
    made: list[Proposal] = []
    for told in range(TRIES):
        made += strategy.ask(min(in_flight - (len(made) - told), TRIES - len(made)))
        configuration = made[told].configuration
        found = {"loss": loss(configuration)}
        strategy.tell([Observation(configuration, Status.OK, found, began=told, ended=told + 1.0)])
        yield strategy, made


@cache
def searched(
    name: str = "auto",
    seed: int = 0,
    loss: Callable[[Mapping[str, Any]], float] = loss,
    timed: bool = False,
) -> tuple[Strategy, list[Proposal]]:
    """The whole of such a search: several tests look at the same ones."""
    *_, ended = searching(name, seed=seed, loss=loss, timed=timed)
    return ended


def starts(made: list[Proposal]) -> list[int]:
    return [proposal.reason.get("start", 1) for proposal in made]  # type: ignore[misc]


def lowest(strategy: Strategy) -> float:
    return min(o.metrics["loss"] for o in strategy.told)


@pytest.mark.long
def test_from_a_standstill_it_comes_down_into_a_deeper_well() -> None:
    found = {name: [lowest(searched(name, seed=seed)[0]) for seed in (1, 2)] for name in ("auto", "bayes")}
    assert max(found["auto"]) < 1.01
    assert min(found["bayes"]) > 1.9, "it stays where it is"


def test_a_fresh_start_comes_when_nothing_is_news_and_there_is_room_for_it() -> None:
    _, made = searched(seed=1)
    numbers = starts(made)
    begun = [place for place, (one, next_one) in enumerate(pairwise(numbers), 1) if next_one > one]
    assert begun and numbers[begun[0] - 1] == 1
    assert all(later - sooner >= PATIENCE for sooner, later in pairwise([0, *begun]))
    first = made[begun[0] : begun[0] + OPENING]
    assert [proposal.reason["kind"] for proposal in first] == ["initial"] * OPENING
    assert set(numbers[math.ceil((1.0 - LAST) * TRIES) :]) == {1}, "the last part polishes the best of all"


def test_where_knobs_act_for_themselves_a_crossing_has_what_each_start_had_right() -> None:
    strategy, made = searched(loss=separable)
    crossed = [place for place, one in enumerate(made) if one.reason["kind"] == "crossover"]
    last = next(place for place in crossed if place >= (1.0 - LAST) * TRIES)
    before = strategy.told[:last]
    assert crossed[0] >= starts(made).index(2) + PATIENCE
    assert made[last].reason.keys() == {"strategy", "kind", "parent", "other"}
    parents = {made[last].reason[key] for key in ("parent", "other")}
    assert parents < {one.configuration.hash for one in before}
    assert min(o.metrics["loss"] for o in before) > 0.9
    assert lowest(strategy) < 0.01


@pytest.mark.long
def test_a_budget_of_time_is_divided_as_one_of_tries() -> None:
    numbered, timed = (searched(loss=separable, timed=timed)[1] for timed in (False, True))
    assert [one.configuration for one in timed] == [one.configuration for one in numbered]


def test_tries_that_crowd_around_the_best_are_no_news() -> None:
    """The median of all tries had come so near to the best that a last digit counted as news."""
    strategy = make_strategy("auto", Problem(SPACE, (LOSS,)), 0)
    made: list[Proposal] = []
    for number in range(2 * PATIENCE):
        made += strategy.ask()
        value = 1.0 / (number + 1) if number < 10 else 0.1 - 1e-6 * number
        strategy.tell([Observation(made[-1].configuration, Status.OK, {"loss": value})])
    assert starts(made).index(2) == 10 + PATIENCE


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_what_was_in_flight_does_not_lead_it_back(seed: int) -> None:
    reached = OPENING + 3  # tries of the fresh start; the first are proposed before any of its results is in
    for _, made in searching(in_flight=6, seed=seed):
        begun = next((place for place, start in enumerate(starts(made)) if start == 2), len(made))
        if len(made) >= begun + reached:
            break
    best = min((p.configuration for p in made[:begun]), key=loss)
    for proposal in made[begun : begun + reached]:
        apart = max(abs(proposal.configuration[name] - best[name]) for name in "xyz")  # type: ignore[operator]
        assert apart > BESIDE


@pytest.mark.long
def test_a_resumed_search_is_at_the_same_start() -> None:
    for tries, (strategy, made) in enumerate(searching(in_flight=3, loss=separable), 1):
        if tries in (30, 90, 123, 125, 127, 140, 175, 177, 190):
            resumed = make_strategy("auto", strategy.problem, strategy.seed)
            resumed.restore(strategy.asks, [p.configuration for p in made], strategy.told)
            assert resumed.ask(2) == deepcopy(strategy).ask(2)


def never_starts_anew(problem: Problem, told: Mapping[str, Any]) -> bool:
    strategy = make_strategy("auto", problem, 0)
    made: list[Proposal] = []
    for _ in range(2 * PATIENCE):
        made += strategy.ask()
        strategy.tell([Observation(made[-1].configuration, Status.OK, **told)])
    return set(starts(made)) == {1}


def test_without_news_it_starts_anew_also_without_a_budget_of_tries() -> None:
    assert not never_starts_anew(Problem(SPACE, (LOSS,)), {"metrics": ONE})


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        pytest.param(Problem(CHOICES, (LOSS,)), {"metrics": ONE}, id="choices"),
        pytest.param(Problem(SPACE, (LOSS,), 90), {"metrics": ONE}, id="no room"),
        pytest.param(Problem(SPACE, (LOSS,)), {"metrics": ONE, "fraction": 0.5}, id="stopped early"),
        pytest.param(Problem(SPACE, (LOSS, COST)), {"metrics": {**ONE, "cost": 1.0}}, id="two goals"),
        pytest.param(Problem(SPACE, (LOSS, SIZE)), {"metrics": {**ONE, "size": 1.0}}, id="a bound"),
    ],
)
def test_other_searches_go_on_as_they_began(problem: Problem, told: Mapping[str, Any]) -> None:
    assert never_starts_anew(problem, told)


@pytest.mark.parametrize("every", [1, 2, 5])
def test_where_many_fail_it_goes_on_with_what_it_knows(every: int) -> None:
    strategy = make_strategy("auto", Problem(SPACE, (LOSS,)), 0)
    for number in range(2 * PATIENCE):
        (proposal,) = strategy.ask()
        assert "start" not in proposal.reason
        status, metrics = (Status.CRASHED, {}) if number % every == 0 else (Status.OK, ONE)
        strategy.tell([Observation(proposal.configuration, status, metrics)])
