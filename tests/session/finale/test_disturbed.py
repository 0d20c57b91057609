"""A reading in whose midst another program had the core is taken again, a few times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from autotune.measure.outcome import Reading
from autotune.session.finale.disturbed import (
    DISTURBED,
    MOST_TRIES,
    SHORT,
    TOLERATED,
    say_busy,
    scattered,
    undisturbed,
    usual_stall,
    usual_wait,
    waited,
)
from autotune.space.spec import MetricSpec

TIME = MetricSpec("time", "minimize", "s")


def reading(value: float, share: float, metric: str = "time") -> Reading:
    return Reading(metric, value, context={"wall": value / 100, "own_wait": share * value / 100})


WARM_UP = Reading("time", 9.0, discarded="warm-up", context={"wall": 9.0, "own_wait": 8.0})


def taken(
    *tries: tuple[Reading, ...], seconds: int = 100
) -> tuple[tuple[Reading, ...], Iterator[tuple[Reading, ...]]]:
    """What counts and what does not of ``tries``, as long as there is time, and the tries that are left."""
    left = iter(tries)
    clock = iter(range(seconds))
    return undisturbed(lambda: next(left), lambda: next(clock, None) is not None), left


def test_what_waited_for_a_core_is_known_from_the_readings_that_count() -> None:
    assert waited((WARM_UP, reading(2.0, 0.25))) == 0.25
    assert waited((WARM_UP,)) == 0.0 and waited(()) == 0.0
    assert waited((Reading("time", 2.0),)) == 0.0, "a replay has no context"
    assert waited((Reading("time", 2.0, context={"wall": 2.0}),)) == 0.0


def test_no_reading_waited_for_longer_than_it_was() -> None:
    """The samples of what the machine did take longer than a reading of 0.1 ms."""
    assert waited((reading(0.01, 100.0),)) == 1.0
    assert say_busy(usual_wait([reading(0.01, 100.0)]), 0.0).startswith(
        "other programs had the core for practically all of the time"
    )


def test_an_undisturbed_reading_is_taken_once() -> None:
    alone = (WARM_UP, reading(1.0, TOLERATED / 2))
    found, left = taken(alone, (reading(2.0, 0.0),))
    assert found == alone and next(left) == (reading(2.0, 0.0),)


def test_a_disturbed_one_is_kept_and_does_not_count() -> None:
    longer, usual = (WARM_UP, reading(3.0, 0.5), reading(0.1, 0.5, "error")), (reading(1.0, 0.0),)
    found, _ = taken(longer, usual)
    assert [r.discarded for r in found] == ["warm-up", DISTURBED, DISTURBED, ""]
    assert [r.value for r in found] == [9.0, 3.0, 0.1, 1.0]


def test_where_all_are_disturbed_the_one_counts_that_waited_least() -> None:
    shares = [0.5, 0.2, 0.4, 0.3, 0.0]
    found, left = taken(*((reading(1.0 + share, share),) for share in shares))
    assert len(found) == MOST_TRIES and list(left) == [(reading(1.0, 0.0),)]
    assert [r.value for r in found if not r.discarded] == [1.2]


def test_no_other_is_taken_where_there_is_no_time_or_it_is_long_or_failed() -> None:
    found, _ = taken((reading(3.0, 0.5),), (reading(1.0, 0.0),), seconds=0)
    assert [(r.value, r.discarded) for r in found] == [(3.0, "")]
    long = (reading(100 * SHORT, 0.5),)
    assert taken(long, (reading(1.0, 0.0),))[0] == long
    found, left = taken((reading(3.0, 0.5),), (), (reading(1.0, 0.0),))
    assert [(r.value, r.discarded) for r in found] == [(3.0, "")] and len(list(left)) == 1
    assert taken(())[0] == ()


def test_a_busy_machine_is_said_where_half_of_the_readings_have_waited() -> None:
    readings = [reading(1.0, share) for share in (0.4, 0.5, 0.0)]
    assert usual_wait([*readings, *[WARM_UP] * 4]) == 0.4 and usual_wait([]) == 0.0
    assert say_busy(0.4, 0.0).startswith("other programs had the core for 40% of the time or more")
    assert say_busy(0.01, 0.01) == ""
    for all_of_it in (0.996, 1.0):
        for said in (say_busy(all_of_it, 0.0), say_busy(0.0, all_of_it)):
            assert "for practically all of the time in half of the readings of one that was compared" in said
            assert said.endswith("and the speed-up may be another"), "31 times as fast was 5 times alone"


def of_program(share: float, **more: float) -> Reading:
    return Reading("time", 1.0, context={"wall": 1.0, "cpu": 0.01, "cpu_stall": share, **more})


def test_of_a_program_it_is_said_that_the_machine_had_more_to_do_than_processors() -> None:
    """Nothing had been: how long a program itself has waited is not known."""
    readings = [of_program(share) for share in (0.9, 1.1, 0.0)]
    warm_ups = [replace(of_program(0.0), discarded="warm-up")] * 4
    assert usual_stall([*readings, *warm_ups]) == 0.9 and usual_wait(readings) == 0.0
    assert "waited for a processor for 90% of the time" in say_busy(0.0, usual_stall(readings))
    assert "other programs" in say_busy(0.4, 0.9)


def test_where_it_is_known_what_was_measured_or_it_needed_no_processor_that_says_nothing() -> None:
    assert usual_stall([of_program(0.9, cpu=0.9), of_program(0.9, sm_clock_mhz=1700.0)]) == 0.0
    assert usual_stall([Reading("time", 1.0), Reading("time", 1.0, context={"wall": 1.0})]) == 0.0


def test_readings_that_are_all_the_same_were_not_disturbed() -> None:
    same, other = [reading(1.0, 0.4), reading(1.0, 0.5)], [reading(1.0, 0.4), reading(1.1, 0.5)]
    assert scattered([*same, WARM_UP], TIME) == ()
    assert scattered([*other, WARM_UP], TIME) == (*other, WARM_UP)
    assert scattered(other, MetricSpec("rate", "maximize", "op/s")) == ()


def test_a_value_that_is_no_speed_was_not_disturbed() -> None:
    readings = [reading(1.0, 0.4, "loss"), reading(1.1, 0.5, "loss")]
    assert scattered(readings, MetricSpec("loss", "minimize")) == ()
    assert len(scattered(readings, MetricSpec("loss", "minimize", "s"))) == 2
