"""Trials as a DataFrame."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from autotune.measure.outcome import Estimate, Reading
from autotune.space.configuration import Configuration
from autotune.status import Status
from autotune.store.frames import readings_frame, trials_frame
from autotune.store.records import TrialRecord
from autotune.store.store import Store
from tests.store.build import bench, outcome


def trial(number: int, **knobs: int | float | bool) -> TrialRecord:
    configuration = Configuration(knobs)
    return TrialRecord(number, 1, number, 1, 1, "search", configuration, configuration.hash, Status.OK)


@pytest.mark.parametrize(
    ("value", "text"),
    [(2, "2"), (2**62 + 1, str(2**62 + 1)), (2**70, str(2**70)), (0.5, "0.5"), (True, "True")],
)
def test_a_knob_that_is_missing_in_a_trial_keeps_its_values(
    store: Store, value: int | float | bool, text: str
) -> None:
    frame = trials_frame(bench(store).study, [trial(0, a=1, b=value), trial(1, a=2)])
    written = io.StringIO()
    frame[["knob.a", "knob.b"]].to_csv(written, index=False)
    assert written.getvalue().splitlines()[1:] == [f"1,{text}", "2,"]


def test_trials_come_one_at_a_time_and_without_what_only_a_look_at_one_needs(store: Store) -> None:
    """An order, an assignment and a metric that some have not are as in the records of whole trials."""
    made = bench(store)
    for tile in (1, 2):
        trial = made.trial(tile)
        if tile == 2:
            store.finish(trial.id, outcome())
    whole = trials_frame(made.study, store.trials(made.study.id))
    assert trials_frame(made.study, iter(store.brief_trials(made.study.id))).equals(whole)
    assert whole["knob.order"].tolist() == ['["i", "j"]'] * 2
    assert whole["metric.time"].isna().tolist() == [True, False]


def test_what_only_some_readings_know_is_missing_in_the_others(store: Store) -> None:
    made = bench(store)
    trial = made.trial(1)
    first = Reading("time", 1.0, 0.0)
    readings = [
        (trial.id, [first, replace(first, context={"clock": 2.5}), replace(first, discarded="throttled")])
    ]
    frame = readings_frame(made.study, [trial], readings)
    assert frame["seq"].tolist() == [0, 1, 2] and frame["discarded"].tolist() == ["", "", "throttled"]
    assert frame["context.clock"].isna().tolist() == [True, False, True]
    assert readings_frame(made.study, [trial], []).columns[:3].tolist() == ["study", "trial", "purpose"]


def test_a_trial_that_a_search_adds_meanwhile_is_left_out(store: Store) -> None:
    made = bench(store)
    store.finish(made.trial(1).id, outcome())
    there = list(store.brief_trials(made.study.id))
    store.finish(made.trial(2).id, outcome())
    assert set(readings_frame(made.study, there, store.readings_of(made.study.id))["trial"]) == {0}


@pytest.mark.parametrize("names", [("time", "time.low"), ("time.low", "time")])
def test_what_an_objective_returns_beside_its_metrics_is_no_interval_of_theirs(
    store: Store, names: tuple[str, ...]
) -> None:
    """The lower end of ``time`` was exported as the number ``time.low``."""
    made = bench(store)
    metrics = {name: Estimate(2.0 if name == "time" else 7.0, 1.5, 2.5, 3, 0.1) for name in names}
    store.finish(made.trial(1).id, outcome(metrics=metrics))
    frame = trials_frame(made.study, store.trials(made.study.id))
    assert frame[["metric.time", "metric.time.low"]].to_numpy().tolist() == [[2.0, 1.5]]
