"""Out of a plateau: when a search has made no progress for a while, and what it tries then."""

from __future__ import annotations

from itertools import pairwise

from autotune.search.acquisition.ambition import PATIENCE, WAY_OUT
from autotune.search.contract import Proposal
from autotune.search.registry import make_strategy
from autotune.space.knobs import FloatRange, OrderedValues
from autotune.space.space import Space
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
