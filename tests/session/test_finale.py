"""Who enters the re-measurement."""

from __future__ import annotations

from autotune.measure.objective import Baseline
from autotune.session.finale import Contender, _with_guests
from autotune.space.configuration import Configuration


def test_guests_enter_before_the_baselines_and_no_configuration_twice() -> None:
    own = [
        Contender("the default", Configuration({"x": 1})),
        Contender("trial 3", Configuration({"x": 3})),
        Contender("vendor", Baseline("vendor")),
    ]
    guests = {
        "other tuner": Configuration({"x": 5}),
        "agrees": Configuration({"x": 3}),
        "agrees with the other": Configuration({"x": 5}),
    }
    labels = [contender.label for contender in _with_guests(own, guests)]
    assert labels == ["the default", "trial 3", "other tuner", "vendor"]
    assert [contender.label for contender in _with_guests(own, {})] == ["the default", "trial 3", "vendor"]
