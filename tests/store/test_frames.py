"""Trials as a DataFrame."""

from __future__ import annotations

import io

import pytest

from autotune.space.configuration import Configuration
from autotune.status import Status
from autotune.store.frames import trials_frame
from autotune.store.records import TrialRecord
from autotune.store.store import Store
from tests.store.build import bench


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
