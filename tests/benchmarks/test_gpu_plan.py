"""A plan in time: shares, failures, what is left out and what is ended. The clock is mostly a number."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import pytest

from benchmarks.gpu_plan import UNFINISHED, Done, Findings, OutOfTime, Part, carry_out, limited


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now

    def part(self, name: str, weight: float, takes: Callable[[float], float], least: float = 0.0) -> Part:
        def run(seconds: float, found: Findings) -> None:
            self.now += takes(seconds)
            found["given"] = seconds

        return Part(name, weight, run, least)


def test_the_time_is_shared_by_weight() -> None:
    clock = Clock()
    parts = [clock.part(name, weight, lambda s: s) for name, weight in (("a", 3.0), ("b", 2.0), ("c", 1.0))]
    done = carry_out(parts, 60.0, lambda _: None, clock)
    assert [one.given for one in done] == [30.0, 20.0, 10.0]
    assert clock.now == 60.0


def test_what_one_part_leaves_goes_to_those_behind_it() -> None:
    clock = Clock()
    parts = [
        clock.part("quick", 1.0, lambda _: 2.0),
        clock.part("a", 1.0, lambda s: s),
        clock.part("b", 1.0, lambda s: s),
    ]
    done = carry_out(parts, 30.0, lambda _: None, clock)
    assert [one.given for one in done] == [10.0, 14.0, 14.0]


def test_a_part_that_overruns_takes_it_from_those_behind_it() -> None:
    clock = Clock()
    parts = [clock.part("slow", 1.0, lambda _: 28.0), clock.part("needs", 1.0, lambda s: s, least=5.0)]
    slow, left_out = carry_out(parts, 30.0, lambda _: None, clock)
    assert slow.result is not None and slow.took == 28.0
    assert left_out.result is None and "2 s were left" in left_out.problem and "takes 5" in left_out.problem


def test_a_part_that_fails_is_written_down_and_the_others_go_on() -> None:
    def fails(seconds: float, found: Findings) -> None:
        found["until then"] = 1
        raise RuntimeError("no such kernel")

    seen: list[list[Done]] = []
    clock = Clock()
    parts = [Part("bad", 1.0, fails), clock.part("good", 1.0, lambda s: s)]
    done = carry_out(parts, 10.0, lambda d: seen.append(list(d)), clock)
    assert "RuntimeError: no such kernel (test_gpu_plan.py:" in done[0].problem
    assert done[0].result == {"until then": 1}, "what it had found is kept"
    assert done[1].result == {"given": 10.0}
    assert [len(d) for d in seen] == [1, 2], "written after each part"


def test_a_part_gets_the_least_that_it_needs_while_there_is_as_much() -> None:
    clock = Clock()
    parts = [clock.part(name, 1.0, lambda s: s, least=20.0) for name in "abcde"]
    done = carry_out(parts, 50.0, lambda _: None, clock)
    assert [one.given for one in done if not one.problem] == [20.0, 20.0]
    assert all("10 s were left for it" in one.problem for one in done[2:]) and clock.now == 40.0


def test_what_is_found_is_written_within_a_part() -> None:
    def run(seconds: float, found: Findings) -> None:
        found.keep(first=1)
        found["second"] = 2

    seen: list[Done] = []
    carry_out([Part("long", 1.0, run)], 10.0, lambda d: seen.append(d[-1]))
    assert [(one.result, one.problem) for one in seen] == [
        ({"first": 1}, UNFINISHED),
        ({"first": 1, "second": 2}, ""),
    ]


def test_a_part_that_does_not_end_is_ended_and_the_others_go_on() -> None:
    def run(seconds: float, found: Findings) -> None:
        found["until then"] = 1
        signal.pause()

    parts = [Part("hangs", 1.0, run), Part("next", 1.0, lambda s, found: found.keep(more=1))]
    hung, following = carry_out(parts, 0.05, lambda _: None, grace=0.05)
    assert hung.result == {"until then": 1} and "was not done" in hung.problem
    assert following.result == {"more": 1}, "what takes no time is still done"


def test_a_part_that_takes_its_end_for_an_interrupt_goes_no_further_than_what_it_keeps() -> None:
    def run(seconds: float, found: Findings) -> None:
        with suppress(KeyboardInterrupt):  # as a search does
            signal.pause()
        found.keep(first=1)
        found["second"] = 2

    def search(seconds: float, found: Findings) -> None:
        with suppress(KeyboardInterrupt):
            signal.pause()
        found["all of it"] = 1

    parts = [Part("steps", 1.0, run), Part("search", 1.0, search)]
    steps, whole = carry_out(parts, 0.05, lambda _: None, grace=0.05)
    assert steps.result == {"first": 1} and "was not done" in steps.problem
    assert whole.result == {"all of it": 1} and "was not done" in whole.problem


def raise_out_of_time() -> None:
    raise OutOfTime


def test_nothing_is_limited_beside_the_main_thread_nor_without_an_end() -> None:
    def beside() -> None:
        with limited(0.0, raise_out_of_time):
            done.append(True)

    done: list[bool] = []
    thread = threading.Thread(target=beside)
    thread.start()
    thread.join()
    assert done == [True]
    with limited(float("inf"), raise_out_of_time):
        assert signal.getitimer(signal.ITIMER_REAL)[1] == 0.0


def test_the_timer_of_whoever_had_one_goes_on() -> None:
    with limited(60.0, raise_out_of_time):
        handler = signal.getsignal(signal.SIGALRM)
        with pytest.raises(OutOfTime), limited(0.01, raise_out_of_time):
            signal.pause()
        assert signal.getsignal(signal.SIGALRM) is handler
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 60.0
