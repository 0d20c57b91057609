"""A reading that was lost is taken again, in a search and in a finale."""

from __future__ import annotations

from typing import Any

import numpy as np

from autotune.measure.objective import Lost
from autotune.measure.outcome import Outcome
from autotune.measure.phases.runner import Runner
from autotune.measure.readings import MOST_DISCARDED
from autotune.measure.reports import Curve
from autotune.space.spec import MeasureSettings
from autotune.status import Status
from tests.measure.phases.test_runner import CONFIGURATION, METRICS, Tape, measure, noisy


class Flaky(Tape):
    """Some of its readings are lost."""

    def measure(self, loaded: Any, rng: np.random.Generator) -> Any:
        found = super().measure(loaded, rng)
        if found is None:
            raise Lost("connection reset")
        return found


def test_a_reading_that_was_lost_is_taken_again() -> None:
    """A trial that failed once in seven runs of its program hardly ever came to its end."""
    outcome = measure(Flaky([value if place % 3 else None for place, value in enumerate(noisy())]))
    assert outcome.status is Status.OK and len([r for r in outcome.readings if not r.discarded]) == 20
    assert outcome.facts["discarded"] == {"lost (connection reset)": 10}


def test_what_is_lost_each_time_is_lost() -> None:
    outcome = measure(Flaky([None] * 100))
    assert outcome.status is Status.LOST
    assert (
        outcome.message
        == f"nothing of it counts: {MOST_DISCARDED} readings were discarded as lost (connection reset)"
    )


def test_a_lost_reading_of_an_entrant_is_taken_again_while_its_time_limit_allows_one() -> None:
    def read(*tape: float | None, timeout: float = 30.0, curve: Curve | None = None) -> Outcome:
        settings = MeasureSettings(timeout=timeout, warmup=0)
        runner = Runner(Flaky([*tape]), METRICS, settings, curve=curve)
        assert runner.enter(CONFIGURATION, lambda: CONFIGURATION, seed=0).status is Status.OK
        return runner.read(1)

    training = Curve(9, "time", None)
    for curve in None, training:
        assert [r.value for r in read(None, None, 1.0, curve=curve).readings] == [1.0]
    late = read(None, 1.0, timeout=1e-9)
    assert late.status is Status.LOST and "the time limit allows no more" in late.message
