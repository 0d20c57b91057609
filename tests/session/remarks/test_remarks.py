"""What outcomes show of a whole search is said once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autotune
from autotune.measure.facts import CONSTANT_INPUTS, LEFT_RUNNING, OWN_DEFAULTS, READY_THREADS, UNREACHED
from autotune.measure.objective import Context
from autotune.measure.outcome import Estimate, Outcome
from autotune.measure.readings import Sample
from autotune.session.remarks.remarks import Remarks
from autotune.space.reading.reader import parse_family, parse_spec
from autotune.space.spec import MetricSpec
from autotune.status import Status
from tests.session.heard import Heard

SPEC = parse_spec("""
autotune: 1
name: tiles
objective: given.py:Given
knobs: {tiled: {flag: true}, tile: {range: [1, 8], when: tiled}, depth: {range: [1, 4]}}
search: {early_stopping: {policy: asha, max: 27}}
budget: {trials: 4}
""")


def heard(remarks: Remarks, *unreached: str) -> list[str]:
    outcome = Outcome(Status.OK, facts={UNREACHED: list(unreached)} if unreached else {})
    return list(remarks.on(0, outcome, SPEC))


def test_each_knob_that_never_gets_there_is_named_once() -> None:
    remarks = Remarks()
    assert heard(remarks) == []
    assert "the knob 'depth' never" in heard(remarks, "depth")[0]
    assert heard(remarks, "depth") == []
    assert "the knob 'tile' never" in heard(remarks, "tile", "depth")[0]


def test_one_that_decides_whether_another_exists_acts_by_that() -> None:
    assert heard(Remarks(), "tiled") == []
    assert "the knob 'depth' never" in heard(Remarks(), "tiled", "depth")[0]


def test_inputs_that_are_one_number_are_said_once() -> None:
    remarks, outcome = Remarks(), Outcome(Status.OK, facts={CONSTANT_INPUTS: {"a": 0.0, "b": 1.5}})
    [text] = remarks.on(0, outcome, SPEC)
    assert text.startswith("of the inputs, 'a' is 0, 'b' is 1.5 throughout: ")
    assert list(remarks.on(1, outcome, SPEC)) == []


PACKED = parse_spec("""
autotune: 1
name: packed
command:
  run: [./pack]
  metrics: {pattern: {pack: 'pack (.+) s', unpack: 'unpack (.+) s', count: '(.+) files'}}
metrics: {pack: {goal: minimize, unit: s}, unpack: {}, count: {}}
knobs: {level: {range: [1, 9]}}
budget: {trials: 4}
""")


@pytest.mark.parametrize(
    ("pack", "unpack", "is_said"), [(0.25, 0.25, True), (0.25, 0.5, False), (2.0, 2.0, False)]
)
def test_patterns_that_find_one_number_are_said(pack: float, unpack: float, is_said: bool) -> None:
    """The packing time of a whole campaign was that of unpacking."""
    found = {"pack": pack, "unpack": unpack, "count": 2.0}
    outcome = Outcome(Status.OK, {name: Estimate(at, at, at, 3) for name, at in found.items()})
    said = list(Remarks().on(4, outcome, PACKED))
    assert [text.partition(":")[0] for text in said] == (
        ["pack and unpack of trial 4 are the same number, 0.25"] if is_said else []
    )


def test_other_defaults_of_the_script_are_said_since_the_speed_up_is_over_those_of_the_space() -> None:
    """A space without defaults had begun at the lower ends: 171x over what nobody ran."""

    def said(**own: object) -> list[str]:
        outcome = Outcome(Status.OK, facts={OWN_DEFAULTS: own})
        assert list(Remarks().on(3, outcome, SPEC)) == []
        return list(Remarks().on(0, outcome, SPEC, is_default=True))

    assert said(tiled=True, tile=1.0, depth=1, other=3) == []
    [text] = said(tiled=True, tile=4, depth=3)
    assert "than the space (in brackets): tile = 4 (1), depth = 3 (1). The speed-up is over" in text


def test_what_runs_leave_running_is_said_once() -> None:
    remarks, outcome = Remarks(), Outcome(Status.OK, facts={LEFT_RUNNING: ["redis-server"]})
    assert "the program of trial 3 left redis-server running" in next(remarks.on(3, outcome, SPEC))
    assert not list(remarks.on(4, outcome, SPEC))


def test_one_run_that_early_stopping_did_not_hear_whole_speaks_for_all() -> None:
    def followed(**facts: object) -> Outcome:
        return Outcome(Status.OK, facts=facts)

    remarks = Remarks()
    assert list(remarks.on(0, followed(), SPEC)) == []
    assert list(remarks.on(1, followed(reports=27, step=27), SPEC)) == []
    assert "before it reported step 27" in next(remarks.on(2, followed(reports=5, step=5), SPEC))
    assert list(remarks.on(3, followed(reports=0), SPEC)) == []
    assert "without any report" in next(Remarks().on(0, followed(reports=0), SPEC))


def test_a_time_below_zero_is_said_once() -> None:
    remarks = Remarks()
    better = Outcome(Status.OK, metrics={"time": Estimate.of_one(-0.5)})
    assert list(remarks.on(1, Outcome(Status.OK, metrics={"time": Estimate.of_one(0.5)}), SPEC)) == []
    assert "the time of trial 2 is -0.5 s: below 0" in next(remarks.on(2, better, SPEC))
    assert list(remarks.on(3, better, SPEC)) == []
    for value in (0.0, 5e-324, 1e-13):
        nothing = Outcome(Status.OK, metrics={"time": Estimate.of_one(value)})
        assert "less than any clock can tell" in next(Remarks().on(0, nothing, SPEC))
    endless = Outcome(Status.DIVERGED, metrics={"time": Estimate.of_one(float("-inf"))})
    assert list(Remarks().on(1, endless, SPEC)) == []
    loss = replace(SPEC, metrics=(MetricSpec("loss", "minimize"),))
    assert list(Remarks().on(0, Outcome(Status.OK, metrics={"loss": Estimate.of_one(-1)}), loss)) == []
    rate = replace(SPEC, metrics=(MetricSpec("rate", "maximize", "1/s"),))
    slowest = Outcome(Status.OK, metrics={"rate": Estimate.of_one(-1)})
    assert list(Remarks().on(0, slowest, rate)) == [], "which was said to count as faster than any other"


def test_that_a_trial_is_read_for_long_without_a_limit_of_time_is_said_once() -> None:
    def read(times: int, seconds: float) -> Outcome:
        return Outcome(
            Status.OK, metrics={"time": Estimate(0.5, 0.3, 0.8, times)}, phases={"measure": seconds}
        )

    remarks = Remarks()
    assert [*remarks.on(0, read(5, 60.0), SPEC), *remarks.on(1, read(100, 2.0), SPEC)] == []
    assert "trial 2 was read 100 times, in 52 s" in next(remarks.on(2, read(100, 52.0), SPEC))
    assert list(remarks.on(3, read(100, 52.0), SPEC)) == []
    limited = replace(SPEC, budget=replace(SPEC.budget, time=600.0))
    assert list(Remarks().on(0, read(100, 52.0), limited)) == []


class Crowded(autotune.Objective):
    def measure(self, loaded: Any, rng: np.random.Generator) -> Sample:
        return Sample({"time": float(loaded["x"])}, facts={READY_THREADS: 2, "cores": [0]})


def test_a_family_says_it_once_however_many_sessions_it_has(tmp_path: Path) -> None:
    text = """
autotune: 1
name: crowded
objective: given.py:Given
workloads: [{n: 1}, {n: 2}]
knobs: {x: {range: [1, 40]}}
measure: {min_readings: 3, max_readings: 3, finalists: 0}
budget: {trials: 40}
"""
    notes, given = Heard(), Crowded(Context({}, {}, tmp_path))
    family = parse_family(text, tmp_path / "space.yaml")
    autotune.search_many(family, objective=given, store=tmp_path / "s.db", strategy="random", progress=notes)
    assert len([note for note in notes.notes if "threads ready to run" in note]) == 1


def test_a_default_that_fails_is_said_at_once() -> None:
    """That there is nothing to compare the winner with had been said when all was over."""
    failed, fine = Outcome(Status.CRASHED), Outcome(Status.OK)
    remarks = Remarks()
    (text,) = remarks.on(0, failed, SPEC, is_default=True)
    assert "trial 0 is the default, and it failed (crashed)" in text
    assert not [*remarks.on(1, failed, SPEC), *remarks.on(0, fine, SPEC, is_default=True)]
