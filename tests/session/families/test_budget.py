"""Which workload is searched next: the first gets more, each its opening, the rest goes where it pays."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from autotune.likeness import distance
from autotune.session.families.budget import (
    LEAD,
    OPENING,
    SLICE,
    Slice,
    Standing,
    next_slice,
    order_of,
)


def standing(tries: int, bests: tuple[float, ...] | None = None, **fields: float) -> Standing:
    return Standing((0.0,) * tries if bests is None else bests, tries, **fields)  # type: ignore[arg-type]


def spend(shapes: int, trials: int) -> dict[int, int]:
    """Tries of each workload when nothing ever improves, by place."""
    standings = {place: standing(0) for place in range(shapes)}
    while given := next_slice(standings, range(shapes), trials, None):
        standings[given.workload] = standing(standings[given.workload].tries + given.tries)
    return {place: one.tries for place, one in standings.items()}


def test_the_first_gets_twice_its_share_before_any_other_begins() -> None:
    standings = {place: standing(0) for place in range(5)}
    assert next_slice(standings, range(5), 120, None) == Slice(0, 40)


def test_the_first_does_not_take_more_than_it_needs_to_teach() -> None:
    assert next_slice({0: standing(0), 1: standing(0)}, range(2), 1000, None) == Slice(0, LEAD)


def test_a_single_workload_gets_everything() -> None:
    assert next_slice({0: standing(0)}, [0], 100, None) == Slice(0, 100)


def test_what_was_begun_is_finished_after_an_interruption() -> None:
    standings = {0: standing(40), 1: standing(10), 2: standing(3), 3: standing(0)}
    assert next_slice(standings, [0, 1, 2, 3], 100, None) == Slice(2, OPENING - 3)


def test_a_small_budget_shortens_all_openings_alike() -> None:
    tries = spend(6, 30)
    assert sum(tries.values()) == 30
    others = [tries[place] for place in range(1, 6)]
    assert max(others) - min(others) <= 1
    assert min(others) >= 4


def test_what_is_left_goes_to_who_still_improves() -> None:
    flat, falling = standing(16), standing(16, tuple(1.0 - 0.05 * i for i in range(16)))
    given = next_slice({0: standing(40), 1: flat, 2: falling}, [0, 1, 2], 80, None)
    assert given == Slice(2, SLICE)


def test_who_stands_still_longest_waits_longest() -> None:
    given = next_slice({0: standing(60), 1: standing(30), 2: standing(16)}, [0, 1, 2], 120, None)
    assert given is not None
    assert given.workload == 2


def test_a_closed_workload_gets_nothing() -> None:
    standings = {0: standing(4, closed=True), 1: standing(20)}
    assert next_slice(standings, [0, 1], 100, None) == Slice(1, SLICE)
    assert next_slice({0: standing(4, closed=True)}, [0], 100, None) is None


def test_time_is_shared_like_tries() -> None:
    standings = {place: standing(0) for place in range(3)}
    assert next_slice(standings, range(3), None, 60.0) == Slice(0, LEAD, 30.0)
    standings[0] = standing(12, seconds=31.0)
    assert next_slice(standings, range(3), None, 60.0) == Slice(1, OPENING, 14.5)
    standings[1] = standing(10, seconds=29.5)
    assert next_slice(standings, range(3), None, 60.0) is None


def test_slow_tries_leave_time_for_every_workload() -> None:
    standings = {place: standing(0) for place in range(4)}
    while given := next_slice(standings, range(4), None, 100.0):
        own = standings[given.workload]
        assert given.seconds is not None
        tries = math.ceil(given.seconds / 5.0)
        standings[given.workload] = standing(own.tries + tries, seconds=own.seconds + 5.0 * tries)
    assert [one.tries for one in standings.values()] == [8, 4, 4, 4]


def test_an_opening_that_was_broken_off_gets_the_rest_of_its_time() -> None:
    standings = {0: standing(6, seconds=30.0), 1: standing(2, seconds=10.0), 2: standing(0)}
    assert next_slice(standings, range(3), None, 60.0) == Slice(1, OPENING - 2, 5.0)


def test_a_slice_is_worth_the_start_of_its_workers() -> None:
    standings = {0: standing(40, seconds=4.0), 1: standing(40, seconds=4.0)}  # ten tries a second
    assert next_slice(standings, [0, 1], None, 100.0, starting=0.1) == Slice(0, SLICE, 92.0)
    assert next_slice(standings, [0, 1], None, 100.0, starting=3.0) == Slice(0, 120, 92.0)
    assert next_slice(standings, [0, 1], 280, None, starting=3.0) == Slice(0, 100), "an even share"
    assert next_slice(standings, [0, 1], None, 18.0, starting=3.0) == Slice(0, 50, 10.0), "an even share"
    assert next_slice(standings, [0, 1], 84, None, starting=3.0) == Slice(0, 4), "all that is left"


def test_without_any_budget_it_goes_on() -> None:
    standings = {0: standing(400), 1: standing(400)}
    assert next_slice(standings, [0, 1], None, None) is not None


def test_a_workload_without_a_success_does_not_take_everything() -> None:
    fails = standing(20, (math.inf,) * 20)
    assert fails.gain == standing(20).gain


def test_a_first_success_counts_as_an_improvement_by_a_whole_logarithm() -> None:
    first = standing(4, (math.inf, math.inf, math.inf, 0.0))
    assert first.gain == standing(4, (1.0, 1.0, 1.0, 0.0)).gain < math.inf


def test_what_the_later_half_of_the_tries_brought_is_expected_of_the_next() -> None:
    nothing = standing(4, (1.5,) * 4)
    assert standing(4, (2.0, 1.5, 1.5, 1.5)).gain == nothing.gain
    assert standing(4, (2.0, 2.0, 1.5, 1.5)).gain == standing(4, (2.0, 2.0, 2.0, 1.5)).gain > nothing.gain


@given(st.integers(1, 12), st.integers(1, 300))
def test_exactly_the_budget_is_given_out_and_everybody_gets_some(shapes: int, trials: int) -> None:
    tries = spend(shapes, trials)
    assert sum(tries.values()) == trials
    if trials >= 3 * shapes:
        assert min(tries.values()) >= 1
    if trials >= OPENING * shapes:
        assert min(tries.values()) >= OPENING


def test_the_middle_begins_and_the_nearest_follow() -> None:
    workloads = [{"m": 4096}, {"m": 64}, {"m": 512}, {"m": 32}]
    assert order_of(workloads) == (1, 3, 2, 0)
    assert order_of([]) == ()


@given(st.lists(st.fixed_dictionaries({"m": st.integers(1, 64), "n": st.integers(1, 64)}), max_size=8))
def test_the_next_one_is_the_nearest_to_any_before(workloads: list[dict[str, int]]) -> None:
    order = order_of(workloads)
    assert sorted(order) == list(range(len(workloads)))

    def to_any(place: int, before: tuple[int, ...]) -> float:
        return min(distance(workloads[place], workloads[other]) for other in before)

    for turn in range(1, len(order)):
        before, later = order[:turn], order[turn:]
        assert to_any(later[0], before) == min(to_any(place, before) for place in later)
