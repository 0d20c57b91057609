"""The rules of successive halving: who goes on, how many, and that only the record decides."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from autotune.session.early_stopping.halving import (
    Asha,
    AsyncHyperband,
    Brackets,
    hyperband,
    successive_halving,
)
from autotune.session.early_stopping.rules import Board, Rule, Verdict, place, say_steps
from autotune.space.spec import EarlyStopping

SETTINGS = EarlyStopping(max=27, resource="epochs")
LOSSES = st.floats(-1e6, 1e6)
LADDERS = st.builds(
    lambda low, factor, rungs, extra: EarlyStopping(
        max=low * factor**rungs + extra % (low * factor**rungs), min=low, factor=factor
    ),
    st.integers(1, 4),
    st.integers(2, 4),
    st.integers(1, 3),
    st.integers(0, 10**6),
)


def bracket(rule: Brackets, numbers: range, final: dict[int, float], seed: int) -> tuple[Counter[int], int]:
    """Run a bracket to its end in a random order: how many passed each rung, and the steps that they took.

    Losses fall with the steps and never cross. Promoted trials go on from where they were paused.
    """
    order = random.Random(seed)
    steps = dict.fromkeys(numbers, 0)
    passed: Counter[int] = Counter()
    for number in numbers:
        rule.joined(number)
    running, over, total = list(numbers), set(), rule._settings.max
    while running:
        number = running.pop(order.randrange(len(running)))
        before = steps[number]
        rungs = [rung for rung in rule.decide_at(number) if rung > before]
        steps[number] = rungs[0] if rungs else total
        rule.heard(number, steps[number], final[number] + 1.0 / steps[number])
        if steps[number] == total:
            rule.ended(number, final[number])
            over.add(number)
        else:
            decision = rule.decide(number, steps[number])
            if decision.verdict is Verdict.GO:
                passed[steps[number]] += 1
                running.append(number)
            elif decision.verdict is Verdict.STOP:
                rule.ended(number, None)
                over.add(number)
        moves = rule.moves(closed=False)
        for promoted in moves.promoted:
            if promoted not in running:
                passed[steps[promoted]] += 1
                running.append(promoted)
        for stopped in moves.stopped:
            rule.ended(stopped, None)
            over.add(stopped)
    assert over == set(numbers), "somebody is paused for ever"
    return passed, sum(steps.values())


def test_rungs_are_powers_of_the_factor_that_leave_room_to_the_top() -> None:
    assert SETTINGS.rungs == (1, 3, 9)
    assert EarlyStopping(max=30).rungs == (1, 3, 9)
    assert EarlyStopping(max=26).rungs == (1, 3)
    assert EarlyStopping(max=100, min=5, factor=4).rungs == (5, 20)


@given(LADDERS)
def test_the_last_rung_is_at_least_a_factor_below_the_whole(ladder: EarlyStopping) -> None:
    rungs = ladder.rungs
    assert rungs and rungs[0] == ladder.min and rungs[-1] * ladder.factor <= ladder.max
    assert ladder.max < rungs[-1] * ladder.factor**2


# -- asynchronous --------------------------------------------------------------------------------


@given(st.lists(LOSSES, min_size=1, max_size=60), st.integers(2, 5))
def test_asha_passes_the_best_part_of_those_that_are_there(losses: list[float], factor: int) -> None:
    rule = Asha(EarlyStopping(max=100, factor=factor))
    for number, loss in enumerate(losses):
        rule.heard(number, 1, loss)
        goes = rule.decide(number, 1).verdict is Verdict.GO
        better = sum(other <= loss for other in losses[:number])
        assert goes == (better < max(1, (number + 1) // factor))


@given(st.lists(LOSSES, min_size=2, max_size=60, unique=True), st.integers(2, 5), st.randoms())
def test_asha_decides_by_who_is_there_and_not_by_their_order(
    losses: list[float], factor: int, order: random.Random
) -> None:
    last = len(losses) - 1
    others = list(range(last))
    verdicts = set()
    for _ in range(3):
        rule = Asha(EarlyStopping(max=100, factor=factor))
        for number in [*others, last]:
            rule.heard(number, 1, losses[number])
        verdicts.add(rule.decide(last, 1).verdict)
        order.shuffle(others)
    assert len(verdicts) == 1


def test_of_a_random_order_about_one_in_a_factor_passes() -> None:
    order = random.Random(0)
    rule = Asha(SETTINGS)
    passed = 0
    for number in range(900):
        rule.heard(number, 1, order.random())
        passed += rule.decide(number, 1).verdict is Verdict.GO
    assert 250 < passed < 350


def test_a_report_past_several_rungs_is_judged_at_the_last() -> None:
    rule = Asha(SETTINGS)
    rule.heard(0, 4, 1.0)
    rule.heard(1, 4, 2.0)
    decision = rule.decide(1, 4)
    assert decision.verdict is Verdict.STOP and "2nd of 2 at 3 epochs" in decision.reason


def test_before_the_first_rung_nobody_is_stopped() -> None:
    rule = Asha(EarlyStopping(max=100, min=10))
    rule.heard(0, 9, 1.0)
    rule.heard(1, 9, 2.0)
    assert rule.decide(1, 9).verdict is Verdict.GO


# -- in brackets ---------------------------------------------------------------------------------


@settings(max_examples=60)
@given(LADDERS.filter(lambda ladder: ladder.factor ** len(ladder.rungs) <= 64), st.integers(0, 10**6))
def test_a_bracket_halves_by_the_book(ladder: EarlyStopping, seed: int) -> None:
    rule = successive_halving(ladder)
    size = ladder.factor ** len(ladder.rungs)
    final = {n: float(loss) for n, loss in enumerate(random.Random(seed).sample(range(10**6), size))}
    passed, steps = bracket(rule, range(size), final, seed)
    levels = [0, *ladder.rungs, ladder.max]
    expected = 0
    left = size
    for lower, upper in itertools.pairwise(levels):
        expected += left * (upper - lower)
        if upper in ladder.rungs:
            left //= ladder.factor
            assert passed[upper] == left
    assert steps == expected, "the budget of a bracket is known beforehand"


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_who_wins_a_bracket_does_not_depend_on_the_order(values: int, seed: int) -> None:
    final = {n: float(loss) for n, loss in enumerate(random.Random(values).sample(range(1000), 27))}
    rule = successive_halving(SETTINGS)
    bracket(rule, range(27), final, seed)
    best = sorted(final, key=final.__getitem__)
    assert rule._board.ranking(9) == best[:3]
    assert rule._board.ranking(3) == best[:9]


def test_the_brackets_of_hyperband_cost_alike() -> None:
    rule = hyperband(SETTINGS)
    shapes = [(27, (1, 3, 9)), (12, (3, 9)), (6, (9,)), (4, ())]
    first, costs = 0, []
    for size, rungs in [*shapes, shapes[0]]:
        numbers = range(first, first + size)
        final = {n: float(n * 7919 % 1000) for n in numbers}
        _, steps = bracket(rule, numbers, final, seed=first)
        assert rule.decide_at(first) == rungs
        first += size
        costs.append(steps)
    assert costs == [81, 78, 90, 108, 81]


def test_a_bracket_that_nobody_joins_any_more_is_complete() -> None:
    rule = successive_halving(SETTINGS)
    for number in range(4):
        rule.joined(number)
        rule.heard(number, 1, float(number))
        assert rule.decide(number, 1).verdict is Verdict.PAUSE
    assert rule.moves(closed=False).promoted == ()
    moves = rule.moves(closed=True)
    assert moves.promoted == (0,) and set(moves.stopped) == {1, 2, 3}
    assert "2nd of 4 at 1 epoch," in moves.stopped[1]


def test_one_of_the_resource_is_said_in_the_singular() -> None:
    words = {"epochs": "epoch", "batches": "batch", "passes": "pass", "boxes": "box", "sizes": "size"}
    assert [say_steps(1, many) for many in words] == [f"1 {one}" for one in words.values()]
    assert say_steps(2, "boxes") == "2 boxes"


def test_a_trial_that_failed_holds_nobody_up_and_is_not_replaced() -> None:
    rule = successive_halving(EarlyStopping(max=9))
    for number in range(9):
        rule.joined(number)
    for number in range(3):
        rule.ended(number, None)
    for number in range(3, 9):
        rule.heard(number, 1, float(number))
    assert rule.moves(closed=False).promoted == (3, 4, 5)


def test_a_trial_that_was_lost_for_good_and_is_tried_after_all_is_decided_upon() -> None:
    """Another search may try it as well, and leave it. It had been paused at its rung for ever."""
    rule = successive_halving(EarlyStopping(max=9))
    for number in range(9):
        rule.joined(number)
        rule.heard(number, 1, float(number))
    rule.ended(0, None)
    assert rule.moves(closed=False).promoted == (1, 2)
    rule.joined(0)
    assert rule.moves(closed=False).promoted == (1, 2, 0)
    for number in (1, 2):
        rule.heard(number, 3, float(number))
    assert rule.moves(closed=False).promoted == (0,), "the others wait for it"


def test_the_last_one_to_arrive_is_not_paused() -> None:
    rule = successive_halving(EarlyStopping(max=3))
    for number in range(3):
        rule.joined(number)
        rule.heard(number, 1, -float(number))
    assert rule.decide(2, 1).verdict is Verdict.GO


def test_a_run_that_begins_anew_does_not_undo_what_its_first_one_decided() -> None:
    rule = successive_halving(EarlyStopping(max=3))
    for number in range(3):
        rule.joined(number)
        rule.heard(number, 1, float(number))
    assert rule.moves(closed=False).promoted == (0,)
    rule.heard(0, 1, 99.0)
    assert rule.moves(closed=False).promoted == (0,)


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["joined", "heard", "heard", "ended"]), st.integers(0, 8), LOSSES, st.booleans()
    ),
    max_size=60,
)


COMES_BACK = [
    ("joined", 0, 0.0, False),
    ("joined", 1, 0.0, False),
    ("heard", 0, 0.0, False),
    ("ended", 1, 0.0, True),
    ("joined", 1, 0.0, True),
]
"""To a bracket that counted as complete without it."""

HEARD_OF_AFTER_ITS_END = [
    ("joined", 0, 0.0, False),
    ("joined", 1, 0.0, False),
    ("heard", 0, 0.0, False),
    ("ended", 1, 0.0, True),
    ("heard", 1, -1.0, True),
]
"""From another search, which goes on with what was lost here. Its value is the better one."""


@settings(max_examples=60)
@given(EVENTS)
@example(COMES_BACK)
@example(HEARD_OF_AFTER_ITS_END)
def test_what_is_asked_in_between_changes_nothing(events: list[tuple[str, int, float, bool]]) -> None:
    """Also where a trial joins a bracket that was closed, or is heard of after its end."""
    asked = successive_halving(EarlyStopping(max=9))
    for told in range(len(events)):
        fresh = successive_halving(EarlyStopping(max=9))
        tell(asked, events[told : told + 1])
        tell(fresh, events[: told + 1])
        closed = events[told][3]
        assert asked.moves(closed) == fresh.moves(closed)


def tell(rule: Brackets, events: list[tuple[str, int, float, bool]]) -> None:
    for kind, number, value, high in events:
        if kind == "joined":
            rule.joined(number)
        elif kind == "heard":
            rule.heard(number, 3 if high else 1, value)
        else:
            rule.ended(number, None)


def test_a_bracket_is_ranked_once_and_not_for_each_member(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = successive_halving(SETTINGS)
    for number in range(27):
        rule.joined(number)
        rule.heard(number, 1, float(number))
    ranked = []
    ranking = rule._board.ranking
    monkeypatch.setattr(rule._board, "ranking", lambda *of: ranked.append(of[0]) or ranking(*of))
    moves = rule.moves(closed=False)
    assert rule.moves(closed=False) == moves and len(moves.promoted) == 9
    for number in moves.stopped:
        rule.ended(number, None)
    rule.heard(0, 2, 0.0)
    assert rule.moves(closed=False).promoted == moves.promoted and ranked == [1]


# -- asynchronous, in brackets -------------------------------------------------------------------


def test_the_asynchronous_brackets_are_as_large_as_those_of_hyperband() -> None:
    rule = AsyncHyperband(SETTINGS)
    period = 27 + 12 + 6 + 4
    rungs = [rule.decide_at(number) for number in range(2 * period)]
    assert Counter(rungs[:period]) == {(1, 3, 9): 27, (3, 9): 12, (9,): 6, (): 4}
    assert rungs[:period] == rungs[period:]
    for begin in range(0, period - 12, 4):
        assert (1, 3, 9) in rungs[begin : begin + 4], "they are spread"
    assert rungs[0] == (1, 3, 9)


def test_a_trial_is_held_against_its_own_bracket() -> None:
    rule = AsyncHyperband(SETTINGS)
    early = [n for n in range(49) if rule.decide_at(n) == (1, 3, 9)]
    late = [n for n in range(49) if rule.decide_at(n) == (3, 9)]
    for number in late:
        rule.heard(number, 3, 0.0)
    rule.heard(early[0], 3, 5.0)
    assert rule.decide(early[0], 3).verdict is Verdict.GO, "the first of its own"
    rule.heard(early[1], 3, 6.0)
    decision = rule.decide(early[1], 3)
    assert decision.verdict is Verdict.STOP and "2nd of 2 at 3 epochs" in decision.reason


def test_some_are_never_stopped() -> None:
    rule = AsyncHyperband(SETTINGS)
    free = next(n for n in range(49) if not rule.decide_at(n))
    for number in range(49):
        rule.heard(number, 9, 100.0 if number == free else 0.0)
    assert rule.decide(free, 9).verdict is Verdict.GO


# -- all of them ---------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [Asha, AsyncHyperband, successive_halving, hyperband])
@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 11), st.sampled_from([1, 2, 3, 9, 27]), LOSSES), max_size=60))
def test_a_rule_that_is_told_the_record_decides_the_same(
    make: type[Rule], record: list[tuple[int, int, float]]
) -> None:
    live = make(SETTINGS)  # type: ignore[call-arg]
    for number in range(12):
        live.joined(number)
    for told in range(len(record)):
        live.heard(*record[told])
        number, step, _ = record[told]
        decided = live.decide(number, step)
    if record:
        resumed = make(SETTINGS)  # type: ignore[call-arg]
        for number in range(12):
            resumed.joined(number)
        for report in record:
            resumed.heard(*report)
        assert resumed.decide(record[-1][0], record[-1][1]) == decided
        assert resumed.moves(closed=True) == live.moves(closed=True)


def test_a_board_keeps_what_is_finite() -> None:
    board = Board((1, 3))
    board.heard(0, 1, math.nan)
    board.heard(1, 3, 2.0)
    assert board.values == {1: {1: 2.0}, 3: {1: 2.0}}


def test_places() -> None:
    assert [place(n) for n in (1, 2, 3, 4, 11, 12, 21, 113)] == [
        "1st",
        "2nd",
        "3rd",
        "4th",
        "11th",
        "12th",
        "21st",
        "113th",
    ]
