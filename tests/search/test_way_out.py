"""Out of a plateau: when a search has made no progress for a while, and what it tries then."""

from __future__ import annotations

from itertools import pairwise

from autotune.search.acquisition.ambition import PATIENCE, WAY_OUT
from autotune.search.contract import Observation, Problem, Proposal
from autotune.search.registry import make_strategy
from autotune.space.knobs import FloatRange, OrderedValues
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status
from tests.search.spaces import Case, observe, problem

LEVELS = tuple(range(12))


def proposals(case: Case, tries: int) -> list[Proposal]:
    strategy = make_strategy("bayes", problem(case), seed=3)
    made: list[Proposal] = []
    while len(made) < tries:
        made += strategy.ask(1)
        strategy.tell([observe(case, made[-1])])
    return made


def kinds(made: list[Proposal]) -> list[str]:
    return [proposal.reason["kind"] for proposal in made]


def best_is_the_default(space: Space, size: int | None) -> Case:
    """Nothing comes near what is tried first."""
    knobs = space.default()
    return Case(space, lambda c: 0.5 if c == knobs else 1.0 + 0.01 * sum(c.values()), size)


def test_on_a_plateau_much_is_asked_for_now_and_then() -> None:
    space = Space([OrderedValues(name, LEVELS) for name in "abcd"])
    made = proposals(best_is_the_default(space, len(LEVELS) ** 4), 60)
    far = [place for place, kind in enumerate(kinds(made)) if kind == "large improvement"]
    assert len(far) > 5 and far[0] >= PATIENCE
    assert {later - sooner for sooner, later in pairwise(far)} == {WAY_OUT}
    assert all("spread" in made[place].reason for place in far), "the model has chosen it"


def test_a_search_that_gets_on_needs_no_way_out() -> None:
    steep = Case(Space([OrderedValues("a", tuple(range(200)))]), lambda c: 1.0 + (200 - c["a"]) ** 2, 200)
    assert not {"large improvement", "way out"} & {*kinds(proposals(steep, 3 + PATIENCE))}


def test_where_nothing_beyond_an_improvement_is_asked_for_it_is_random() -> None:
    space = Space([FloatRange("x", 0.0, 1.0), FloatRange("y", 0.0, 1.0)])
    found = {*kinds(proposals(best_is_the_default(space, None), 40))}
    assert "large improvement" not in found and "way out" in found


def test_where_bounds_may_keep_from_the_best_it_goes_across_them() -> None:
    """The model of the bounds chooses, in the place of chance."""
    space = Space([FloatRange("x", 0.0, 1.0), FloatRange("y", 0.0, 1.0)])
    given = Problem(space, (MetricSpec("time", "minimize"), MetricSpec("error", at_most=0.5)))
    strategy = make_strategy("bayes", given, seed=3)
    made: list[Proposal] = []
    while len(made) < 40:
        made += strategy.ask(1)
        configuration = made[-1].configuration
        error = float(str(configuration["x"]))
        time = 0.5 if configuration == space.default() else 1.0 + 0.01 * error
        metrics = {"time": time, "error": error}
        if metrics["error"] > 0.5:
            strategy.tell([Observation(configuration, Status.WRONG, bounded=metrics)])
        else:
            strategy.tell([Observation(configuration, Status.OK, metrics)])
    found = {*kinds(made)}
    assert "across a bound" in found and "way out" not in found
    assert all("spread" in one.reason for one in made if one.reason["kind"] == "across a bound")
