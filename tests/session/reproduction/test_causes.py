"""What may have made two measurements differ."""

from __future__ import annotations

from collections.abc import Mapping

from autotune.measure.outcome import Reading
from autotune.session.reproduction.causes import MOST_SHARE, busier, common_shift, pressures, state_of
from autotune.session.reproduction.replicates import Interval


def readings(n: int = 5, discarded: str = "", **context: float) -> list[Reading]:
    return [Reading("time", 1.0, float(i), discarded, {"wall": 2.0, **context}) for i in range(n)]


def said(then: Mapping[str, float], now: Mapping[str, float]) -> list[str]:
    return list(pressures(state_of(readings(**then)), state_of(readings(**now))))


def test_a_process_that_lost_its_core_is_named() -> None:
    found = said({"cpu": 1.98}, {"cpu": 1.0, "cpu_stall": 0.9})
    assert found == [
        "its process had 50% of a core, and 99% then",
        "tasks waited for a processor 45% of the time, and 0% then",
    ]


def test_small_changes_and_waiting_processes_are_not() -> None:
    assert said({"cpu": 1.98, "steal": 0.02}, {"cpu": 1.95, "steal": 0.04}) == []
    assert said({"cpu": 0.1}, {"cpu": 0.9}) == []  # it waits for a program: its share says nothing


def test_how_much_busier_is_the_most_that_shows_it() -> None:
    then, now = state_of(readings(cpu=1.98)), state_of(readings(cpu=1.0, cpu_stall=0.9))
    share, shows = busier(then, now)
    assert (round(share, 2), shows) == (0.49, "its process had 50% of a core, and 99% then")
    assert busier(now, then) == (0.0, "")
    assert busier(then, state_of(readings(cpu=1.98, cpu_stall=9.0)))[0] == MOST_SHARE


def test_where_nothing_is_known_of_then_the_machine_may_have_been_idle() -> None:
    now = state_of(readings(cpu=0.2, cpu_stall=0.9))
    for unknown in (None, state_of([])):
        share, shows = busier(unknown, now)
        assert (round(share, 2), shows) == (
            0.45,
            "tasks waited for a processor 45% of the time, and it is not known how it was then",
        )
    assert busier(None, state_of(readings(cpu=0.2))) == (0.0, "")


def test_clocks_and_temperatures_are_named() -> None:
    found = said(
        {"sm_clock_mhz": 1980.0, "temperature_c": 40.0}, {"sm_clock_mhz": 1200.0, "temperature_c": 41.0}
    )
    assert found == ["the GPU's clock was 1200 MHz, and 1980 then"]


def test_each_level_that_doubled_is_named() -> None:
    levels = ("pace_us", "frequency_mhz", "sm_clock_mhz", "memory_clock_mhz", "temperature_c", "power_watts")
    assert len(said(dict.fromkeys(levels, 40.0), dict.fromkeys(levels, 80.0))) == len(levels)


def test_short_readings_count_and_those_without_a_length_do_not() -> None:
    short = Reading("time", 1.0, context={"wall": 0.002, "cpu": 0.001})
    none = Reading("time", 1.0, context={"wall": 0.0, "cpu": 0.001})
    unknown = Reading("time", 1.0, context={"cpu": 0.001})
    assert state_of([short, none, unknown]).shares["cpu"] == 0.5


def test_without_contexts_nothing_is_said() -> None:
    none = state_of([Reading("time", 1.0)])
    assert list(pressures(none, state_of(readings(cpu=2.0)))) == []
    assert state_of(readings(discarded="warm-up")) == state_of([])


def shift(own: float, default: float, *, edited: bool = False) -> list[str]:
    then: dict[str, Interval] = {"metric": (1.0, 0.99, 1.01), "default": (4.0, 3.96, 4.04)}
    now: dict[str, Interval] = {
        "metric": (own, own * 0.99, own * 1.01),
        "default": (4 * default, 3.96 * default, 4.04 * default),
    }
    return list(common_shift(then, now, 0.01, edited=edited))


def test_a_default_that_moved_as_well_means_the_machine() -> None:
    assert shift(2.0, 1.9) == [
        "the default moved as well, to 1.9 times what it was: the machine as a whole did"
    ]
    assert shift(2.0, 1.0) == ["the default is as it was, so it is not the machine as a whole"]
    assert shift(2.0, 0.5) == []
    assert shift(1.0, 1.0) == shift(1.0, 0.5) == [], "nothing has changed that needs a cause"
    alone: tuple[dict[str, Interval], ...] = ({"metric": (1.0, 1.0, 1.0)}, {"metric": (2.0, 2.0, 2.0)})
    assert list(common_shift(*alone, 0.0, edited=False)) == []
    nothing: Interval = (0.0, 0.0, 0.0)
    for names in (("metric",), ("default",), ("metric", "default")):
        then: dict[str, Interval] = {"metric": (1.0, 1.0, 1.0), "default": (1.0, 1.0, 1.0)}
        then |= dict.fromkeys(names, nothing)
        now: dict[str, Interval] = {"metric": (2.0, 2.0, 2.0), "default": (2.0, 2.0, 2.0)}
        assert list(common_shift(then, now, 0.0, edited=False)) == [], "there is no factor"


def test_a_default_that_moved_with_an_edited_source_may_have_moved_by_it() -> None:
    """An edit that made all configurations slower had been put down to the machine."""
    [said] = shift(7.0, 7.2, edited=True)
    assert said.endswith("the machine as a whole did, or the edited source is the cause")


def test_a_wait_that_began_before_a_short_reading_is_no_more_than_all_of_it() -> None:
    """Several threads have more than one core, though."""
    shares = state_of(readings(cpu=7.0, cpu_stall=80.0, steal=1.0)).shares
    assert shares["cpu_stall"] == 1.0 and shares["steal"] == 0.5 and shares["cpu"] == 3.5
