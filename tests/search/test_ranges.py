"""Ranges, continuous or of many integers: near values are alike, and failures may lie at both ends."""

from __future__ import annotations

import math
import statistics

import pytest

from autotune.search.contract import Observation, Problem
from autotune.search.models.features import LONG, Features
from autotune.search.registry import make_strategy
from autotune.space.knobs import Choice, FloatRange, IntegerRange, OrderedValues
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status
from benchmarks.smooth_functions import Form, regrets

LOSS = (MetricSpec("loss", "minimize"),)


@pytest.mark.parametrize("form", ["continuous", "integer"])
def test_a_smooth_function_is_solved_in_some_tries(form: Form) -> None:
    ends = [regrets("Branin", "auto", seed, 25, form=form)[-1] for seed in range(5)]
    assert statistics.median(ends) < 0.1  # random search is at 1 after 30


def test_long_ranges_are_not_compared_value_by_value() -> None:
    knobs = (
        IntegerRange("long", 1, LONG + 1, default=1),
        IntegerRange("short", 1, LONG, default=1),
        OrderedValues("written", tuple(range(1, 2 * LONG)), default=1),
        FloatRange("rate", 1e-3, 1.0, scale="log", default=0.1),
    )
    columns = Features(Space(knobs)).columns
    assert columns.compared.tolist() == [False, True, True]
    # Beside the position of a written integer stands whether it is a power of two, which is no place.
    assert columns.ranges.tolist() == [True, False, False, False, True]


def test_tiles_that_leave_no_rest_are_found_to_be_fast() -> None:
    """A vector of eight numbers: all but multiples of it are done twice, once with vectors, once alone."""
    space = Space([IntegerRange("tile", 1, 256, default=1), Choice("way", ("rows", "columns"))])
    round_tries = []
    for seed in range(6):
        search = make_strategy("auto", Problem(space, LOSS, 30), seed)
        tried = []
        for _ in range(30):
            c = search.ask()[0].configuration
            tried.append(c["tile"])
            seconds = (1.0 + 8.0 / c["tile"]) * (1.0 if c["tile"] % 8 == 0 else 1.6)
            loss = seconds * (1.0 if c["way"] == "rows" else 1.2)
            search.tell([Observation(c, Status.OK, {"loss": loss})])
        round_tries.append(sum(tile % 8 == 0 for tile in tried))
    assert statistics.mean(round_tries) > 15  # of random tiles, one in eight


@pytest.mark.long
def test_failures_at_both_ends_are_foreseen() -> None:
    """A learning rate that is too small does not arrive in time, and one that is too large diverges."""
    knobs = (
        FloatRange("rate", 1e-4, 10.0, scale="log", default=0.05),
        FloatRange("momentum", 0.0, 0.9, default=0.0),
    )
    failed = []
    for seed in range(6):
        search = make_strategy("auto", Problem(Space(knobs), LOSS, 30), seed)
        statuses = []
        for _ in range(30):
            configuration = search.ask()[0].configuration
            effective = configuration["rate"] / (1.0 - configuration["momentum"])
            fits = 0.02 <= effective <= 1.0
            statuses.append(Status.OK if fits else Status.WRONG)
            metrics = {"loss": 1.0 + math.log(effective / 0.2) ** 2} if fits else {}
            search.tell([Observation(configuration, statuses[-1], metrics)])
        failed.append(sum(status is Status.WRONG for status in statuses))
    assert statistics.mean(failed) < 8  # of random configurations, two thirds


def test_more_configurations_than_a_float_can_hold() -> None:
    ranges = [IntegerRange(f"x{number}", 1, 10**6, default=5) for number in range(60)]
    space = Space((*ranges, Choice("way", ("a", "b"))))
    assert space.feasible.size == 2 * 10**360
    search = make_strategy("auto", Problem(space, LOSS, 10), 0)
    for number in range(5):
        configuration = search.ask()[0].configuration
        search.tell([Observation(configuration, Status.OK, {"loss": 1.0 + number})])


def test_integers_that_no_machine_word_holds() -> None:
    space = Space([OrderedValues("m", (1, 3, 2**62, 2**70, 10**30))])
    asked = make_strategy("auto", Problem(space, LOSS), 0).ask(2)
    assert len(asked) == 2
