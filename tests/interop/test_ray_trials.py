"""What a trial of Ray Tune teaches; this part needs no Ray."""

from __future__ import annotations

from autotune.interop.for_ray.trials import ITERATION, TuneTrial
from autotune.space.knobs import IntegerRange
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status

RATE = MetricSpec("rate", goal="maximize")
MEMORY = MetricSpec("memory", at_most=8.0)


def test_how_far_past_its_bound_a_trial_is_told() -> None:
    """Else a search that begins past a bound does not learn in which direction it holds."""
    trial = TuneTrial(Space([IntegerRange("batch", 1, 64)]).configuration({"batch": 64}))
    trial.report({"rate": 3.0, "memory": 12.0, ITERATION: 2}, [RATE, MEMORY])
    whole = trial.observation([RATE, MEMORY], 2)
    assert whole.status is Status.WRONG
    assert (whole.metrics, whole.bounded) == ({}, {"rate": 3.0, "memory": 12.0})
    assert trial.observation([RATE, MEMORY], 9).bounded == {"memory": 12.0}
    trial.report({"rate": 3.0, "memory": float("inf"), ITERATION: 2}, [RATE, MEMORY])
    assert trial.observation([RATE, MEMORY], 2).bounded == {"rate": 3.0}
