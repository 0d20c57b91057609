"""A plan in time: shares, failures, what is left out. The clock is a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.gpu_plan import Done, Part, carry_out


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now

    def part(self, name: str, weight: float, takes: Callable[[float], float], least: float = 0.0) -> Part:
        def run(seconds: float) -> Mapping[str, Any]:
            self.now += takes(seconds)
            return {"given": seconds}

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
    def fails(seconds: float) -> Mapping[str, Any]:
        raise RuntimeError("no such kernel")

    seen: list[list[Done]] = []
    clock = Clock()
    parts = [Part("bad", 1.0, fails), clock.part("good", 1.0, lambda s: s)]
    done = carry_out(parts, 10.0, lambda d: seen.append(list(d)), clock)
    assert "RuntimeError: no such kernel (test_gpu_plan.py:" in done[0].problem
    assert done[1].result == {"given": 10.0}
    assert [len(d) for d in seen] == [1, 2], "written after each part"
