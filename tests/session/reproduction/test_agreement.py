"""When two results agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest

from autotune.measure.outcome import Estimate, Outcome, Reading
from autotune.measure.rules.statistics import estimate
from autotune.report.words.verdicts import say_intervals
from autotune.session.finale.contender import DEFAULT, Contender
from autotune.session.reproduction.agreement import (
    Claim,
    Run,
    Sides,
    Verification,
    compared,
    decisive,
    judge_again,
)
from autotune.session.reproduction.causes import state_of
from autotune.session.reproduction.paced import Past, series_of
from autotune.space.configuration import Configuration
from autotune.space.reading.reader import parse_spec
from autotune.space.spec import TIME, MetricSpec
from autotune.status import Status


@pytest.mark.parametrize(
    ("then", "now", "verdict", "why"),
    [
        ({"speedup": (2, 1.9, 2.1)}, {"speedup": (2.05, 2, 2.1)}, "agrees", "the speed-up is as it was"),
        ({"speedup": (2, 1.9, 2.1)}, {"speedup": (3.0, 2.9, 3.1)}, "differs", "better than it was"),
        ({"speedup": (2, 1.9, 2.1)}, {"speedup": (1.5, 1.4, 1.6)}, "differs", "worse than it was"),
        (
            {"speedup": (2, 1.9, 2.1)},
            {"speedup": (1.0, 0.9, 1.1)},
            "differs",
            "no better than the default any",
        ),
        ({"metric": (2, 1.9, 2.1)}, {"metric": (3, 2.9, 3.1)}, "differs", "the measured value is worse"),
        (
            {"metric": (2, 1.9, 2.1), "speedup": (2, 2, 2)},
            {"metric": (2, 1.9, 2.1)},
            "agrees",
            "measured value",
        ),
    ],
)
def test_what_is_said(then: Any, now: Any, verdict: str, why: str) -> None:
    sides = decisive(then, now)
    assert sides is not None
    found = judge_again(sides, 0.01, TIME[0])
    assert found[0] == verdict and why in found[1]


def test_what_is_not_known_on_both_sides_decides_nothing() -> None:
    two, three = (2.0, 1.9, 2.1), (3.0, 2.9, 3.1)
    assert decisive({}, {"metric": two}) is None
    assert decisive({"metric": two}, {"speedup": three}) is None
    both = {"metric": two, "speedup": three}
    assert decisive(both, both) == Sides("speedup", three, three)
    assert decisive(both, both, by="metric") == Sides("metric", two, two)
    assert decisive(both, {"speedup": three}, by="metric") == Sides("speedup", three, three)


def test_more_is_better_where_the_goal_is_to_maximise() -> None:
    sides = Sides("metric", (2, 1.9, 2.1), (3, 2.9, 3.1))
    assert "better" in judge_again(sides, 0.01, MetricSpec("accuracy", "maximize"))[1]


def test_the_ratio_has_the_name_that_its_metric_gives_it() -> None:
    then, now = (2, 1.9, 2.1), (3.0, 2.9, 3.1)
    said = judge_again(Sides("speedup", then, now), 0.01, MetricSpec("accuracy", "maximize"))
    assert said == ("differs", "the gain is better than it was")
    result = Verification("differs", "", "accuracy", "", "maximize", {"speedup": then}, {"speedup": now})
    assert say_intervals(result) == ["  gain       2x [1.9, 2.1] then, 3x [2.9, 3.1] now"]
    fast = replace(result, metric="time", unit="s", goal="minimize")
    assert say_intervals(fast)[0].startswith("  speed-up ")


# -- a trial's value, read at another pace of the machine

TEXT = """
autotune: 1
name: small
objective: objective.py:measure
metrics: {time: {goal: minimize, unit: s}}
knobs: {tile: {values: [1, 2]}}
"""
SPEC = parse_spec(TEXT)
OWN, PLAIN = Configuration({"tile": 2}), Configuration({"tile": 1})


def readings(rng: np.random.Generator, value: float, pace: float, count: int) -> list[Reading]:
    """Of something that takes ``value`` seconds at a pace of 300 us, and answers to it in proportion."""
    paces = pace * np.exp(0.05 * rng.standard_normal(count))
    times = value * paces / 300.0 * np.exp(0.01 * rng.standard_normal(count))
    return [
        Reading("time", float(time), context={"pace_us": float(own)})
        for time, own in zip(times, paces, strict=True)
    ]


def again(now: float, pace: float, by: Literal["metric", "speedup"] = "metric") -> Verification:
    """A trial of 1 s at a pace of 300 us, replayed where it takes ``now`` seconds of these, at ``pace``."""
    rng = np.random.default_rng(1)
    then = readings(rng, 1.0, 300.0, 40)
    said = estimate([reading.value for reading in then])
    past = series_of(then, "time")
    assert past is not None
    claim = Claim(OWN, (said.value, said.low, said.high), label="trial 3", by=by, past=Past(past, []))
    runs = []
    for _ in range(5):
        contenders = [
            Contender(DEFAULT, PLAIN, readings=readings(rng, 3.0, pace, 12)),
            Contender("trial 3", OWN, readings=readings(rng, now, pace, 12)),
        ]
        runs.append(Run(contenders, {c.label: Outcome(Status.OK, METRICS) for c in contenders}, 12))
    return compared(SPEC, claim, runs)


METRICS = {"time": Estimate(1.0, 1.0, 1.0, 12)}


def while_busy(now: float, waited: float, by: Literal["metric", "speedup"], text: str = TEXT) -> Verification:
    """A trial of 1 s (a third of the default), replayed while tasks waited a part of the time."""
    spec = parse_spec(text)

    def read(value: float, cpu_stall: float) -> list[Reading]:
        context = {"wall": 1.0, "cpu": 1.0, "cpu_stall": cpu_stall}
        return [Reading("time", value, float(at), context=context) for at in range(12)]

    claim = Claim(OWN, (1.0, 1.0, 1.0), (3.0, 3.0, 3.0), "trial 3", by, state=state_of(read(1.0, 0.02)))
    runs = []
    for _ in range(5):
        default = Contender(DEFAULT, PLAIN, readings=read(3.0, waited))
        contenders = [default, Contender("trial 3", OWN, readings=read(now, waited))]
        runs.append(Run(contenders, {c.label: Outcome(Status.OK, METRICS) for c in contenders}, 12))
    return compared(spec, claim, runs)


@pytest.mark.parametrize("by", ["metric", "speedup"])
def test_what_a_busier_machine_explains_cannot_be_told(by: Literal["metric", "speedup"]) -> None:
    busy = while_busy(1.4, 0.42, by)
    assert busy.verdict == "cannot be told"
    assert "worse than it was, but the machine was busier: tasks waited for a processor 42% of" in busy.why
    assert while_busy(1.4, 0.02, by).verdict == "differs"
    assert while_busy(2.5, 0.42, by).verdict == "differs", (
        "a machine that waits for 0.4 takes 1.7 times as long"
    )


def test_a_busier_machine_makes_nothing_faster_and_no_loss_worse() -> None:
    assert while_busy(0.8, 0.42, "metric").verdict == "differs"
    assert while_busy(1.4, 0.42, "metric", TEXT.replace(", unit: s", "")).verdict == "differs"


def test_the_pace_of_the_machine_is_allowed_for_and_said() -> None:
    found = again(1.0, 390.0)
    assert (found.verdict, found.slower) == ("agrees", pytest.approx(1.3, rel=0.05))
    assert found.why == "the measured value is as it was, at the same pace of the machine"
    assert found.now["metric"][0] == pytest.approx(1.3, rel=0.05)
    assert found.now["at_pace"][0] == pytest.approx(1.0, rel=0.05)
    assert found.to_document()["slower"] == found.slower


def test_a_change_at_the_same_pace_is_a_difference() -> None:
    found = again(1.3, 300.0)
    assert found.verdict == "differs" and "worse than it was, at the same pace" in found.why


def test_a_change_that_the_pace_hides_is_seen() -> None:
    found = again(1.3, 300.0 / 1.3)
    assert found.verdict == "differs"
    assert found.now["metric"][0] == pytest.approx(1.0, rel=0.05)


def test_a_machine_that_is_much_slower_is_a_difference() -> None:
    found = again(1.0, 600.0)
    assert (found.verdict, found.slower) == ("differs", None)


def test_a_speed_up_needs_no_pace() -> None:
    assert again(1.0, 390.0, by="speedup").slower is None


# -- what the runs say together


def replayed(
    claim: Claim, own: list[float], default: list[float], refused: int | None = None
) -> Verification:
    """One number for each run, read in three rounds; the default's run number ``refused`` is wrong."""
    runs = []
    for number, (mine, theirs) in enumerate(zip(own, default, strict=True)):
        contenders = [
            Contender(DEFAULT, PLAIN, readings=[Reading("time", theirs)] * 3),
            Contender("trial 3", OWN, readings=[Reading("time", mine)] * 3),
        ]
        outcomes = {c.label: Outcome(Status.OK, METRICS) for c in contenders}
        if number == refused:
            outcomes[DEFAULT] = Outcome(Status.WRONG, METRICS)
        runs.append(Run(contenders, outcomes, 3))
    return compared(SPEC, claim, runs)


def claimed(**changed: Any) -> Claim:
    return replace(Claim(OWN, (1.0, 1.0, 1.0), (2.0, 2.0, 2.0), "trial 3", "metric"), **changed)


def test_both_results_are_as_uncertain_as_runs_of_the_same_thing() -> None:
    """Ten runs of five configurations, whose logarithms deviate by 0.05: two results by 0.18 at 95 %."""
    replicates = [[time * 0.9653, time / 0.9653] for time in (1.0, 2.0, 3.0, 4.0, 5.0)]
    for factor, verdict in ((1.16, "agrees"), (1.24, "differs"), (1 / 1.16, "agrees"), (1 / 1.24, "differs")):
        found = replayed(claimed(replicates=replicates), [factor], [2.0])
        assert found.verdict == verdict and found.noticeable == pytest.approx(0.21, abs=0.01), factor
    steady = [[1.0, 1.001]] * 5
    assert replayed(claimed(replicates=steady), [1.16], [2.0]).verdict == "differs"


def test_of_a_speed_up_each_run_counts_once_however_many_there_are() -> None:
    def speed_up(*default: float) -> float:
        found = replayed(claimed(by="speedup"), [1.0] * len(default), [*default])
        return found.now["speedup"][0]

    assert speed_up(2.0) == pytest.approx(2.0)
    assert speed_up(2.0, 3.0) == pytest.approx(6.0**0.5)
    assert speed_up(2.0, 3.0, 2.0 * 9 / 4) == pytest.approx(3.0)


def test_a_gain_that_is_no_longer_shown_is_not_said_to_agree() -> None:
    claim = claimed(by="speedup", speedup=(1.03, 1.02, 1.04))
    found = replayed(claim, [1.0] * 6, [1.0, 1.03] * 3)
    assert found.verdict == "cannot be told" and found.why.endswith("no gain over the default is shown now")
    assert replayed(replace(claim, by="metric"), [1.0] * 6, [1.0, 1.03] * 3).verdict == "agrees"
    assert replayed(claim, [1.0] * 6, [1.01, 1.03] * 3).verdict == "agrees"
    no_gain = replace(claim, speedup=(1.03, 0.99, 1.07))
    assert replayed(no_gain, [1.0] * 6, [1.0, 1.03] * 3).verdict == "agrees"


def test_a_default_that_failed_in_a_run_is_compared_with_in_none() -> None:
    found = replayed(claimed(by="speedup"), [1.0, 1.0], [2.0, 2.0], refused=0)
    assert found.now.keys() == {"metric"} and found.readings.keys() == {"trial 3"}
    assert found.verdict == "agrees", "by the measured value"


def test_what_is_not_above_0_has_no_speed_up() -> None:
    for count in (1, 2):
        found = replayed(claimed(metric=(-1.0, -1.0, -1.0), by="speedup"), [-1.0] * count, [1.0] * count)
        assert found.now.keys() == {"metric", "default"} and found.verdict == "agrees"


def test_all_of_it_is_in_the_document() -> None:
    found = replayed(claimed(), [1.0, 1.0], [2.0, 2.5])
    assert found.to_document() == {
        "verdict": "agrees",
        "why": "the measured value is as it was",
        "metric": "time",
        "unit": "s",
        "then": {
            "metric": {"value": 1.0, "low": 1.0, "high": 1.0},
            "speedup": {"value": 2.0, "low": 2.0, "high": 2.0},
        },
        "now": {
            name: dict(zip(("value", "low", "high"), own, strict=True)) for name, own in found.now.items()
        },
        "noticeable": pytest.approx(0.01, abs=0.001),
        "slower": None,
        "runs": 2,
        "rounds": 6,
        "readings": {DEFAULT: [2.0] * 3 + [2.5] * 3, "trial 3": [1.0] * 6},
        "remark": "",
    }
    assert len(found.taken) == 6 and found.now.keys() == {"metric", "default", "speedup"}


def test_a_failure_agrees_if_it_ends_as_it_did() -> None:
    def ends(then: Status, now: Status) -> Verification:
        outcome = Outcome(now, message="out of registers\nat line 3")
        claim = claimed(status=then, metric=None, speedup=None)
        return compared(SPEC, claim, [Run([Contender("trial 3", OWN)], {"trial 3": outcome}, 0)] * 2)

    same, other = ends(Status.CRASHED, Status.CRASHED), ends(Status.CRASHED, Status.INFEASIBLE)
    assert (same.verdict, same.runs) == ("agrees", 2)
    assert same.why == "it ends as crashed, as it did: out of registers"
    assert (other.verdict, other.runs) == ("differs", 2)
    assert other.why == "it ended as crashed, and ends as infeasible now: out of registers"
