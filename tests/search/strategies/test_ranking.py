"""Trials by rank and by age, whichever way they were told."""

from __future__ import annotations

from autotune.search.contract import Observation, Problem
from autotune.search.strategies.ranking import Ranking
from autotune.space.configuration import Configuration
from autotune.space.knobs import IntegerRange
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status

SPACE = Space([IntegerRange("n", 0, 99)])


def of(n: int, value: float | None, **rest: object) -> Observation:
    configuration = Configuration({"n": n})
    if value is None:
        return Observation(configuration, Status.CRASHED)
    return Observation(configuration, Status.OK, {"time": value}, **rest)  # type: ignore[arg-type]


def ranking(goal: str = "minimize") -> Ranking:
    return Ranking(Problem(SPACE, (MetricSpec("time", goal, "s"),)))  # type: ignore[arg-type]


def test_ranks_successes_alone() -> None:
    found = ranking()
    found.learn([of(0, 3.0), of(1, None), of(2, 1.0), of(3, 2.0)])
    assert [(loss, c["n"]) for loss, c in found.best(2)] == [(1.0, 2), (2.0, 3)]
    assert [c["n"] for _, c in found.latest(2)] == [2, 3]
    assert len(found) == 3


def test_the_largest_is_the_best_where_it_is_to_be_maximised() -> None:
    found = ranking("maximize")
    found.learn([of(0, 3.0), of(1, 5.0)])
    assert found.best(1)[0][1]["n"] == 1


def test_what_was_told_at_once_is_as_what_was_told_one_by_one() -> None:
    told = [of(n, float(n * 7 % 5)) for n in range(20)] + [of(20, 1.0, fraction=0.5, curve=((0.5, 1.0),))]
    whole, parts = ranking(), ranking()
    whole.learn(told)
    for one in told:
        parts.learn([one])
    assert whole.best(30) == parts.best(30)
    assert whole.latest(30) == parts.latest(30)
