"""What a process has by luck is no gain: the winner is read again in others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import autotune
from autotune.measure.objective import Baseline
from autotune.measure.outcome import Estimate, Outcome, Reading
from autotune.session.execution.executor import Entrant
from autotune.session.execution.inline import InlineExecutor
from autotune.session.finale import fresh_processes
from autotune.session.finale.contender import DEFAULT, Contender
from autotune.session.finale.finale import IN_ONE_PROCESS
from autotune.session.finale.fresh_processes import (
    EARLIEST,
    FEWEST,
    RUNS,
    FreshRuns,
    Plan,
    read_in_fresh_processes,
    say_warming,
)
from autotune.session.finale.rounds import ReadingSeconds
from autotune.session.finale.verdict import Standing, after_fresh_runs, judge
from autotune.session.result import Comparison
from autotune.space.configuration import Configuration
from autotune.space.reading.reader import parse_spec
from autotune.space.spec import MetricSpec
from autotune.status import Status
from autotune.store.store import Store

OBJECTIVE = """
import random
LUCK = random.SystemRandom().random()

def half(x):
    return (1.0 if x == 1 else 0.5) * (1.0 + 0.4 * LUCK + 0.001 * random.random())

CALLS = {}

def warms(x):
    CALLS[x] = CALLS.get(x, 0) + 1
    cold = 1.2 if x > 1 and CALLS[x] <= 8 else 1.0
    return (1.0 if x == 1 else 0.5 if cold == 1.0 else cold) * (1.0 + 0.01 * random.random())

def order(x):
    return 1.0 + abs(hash("a text")) % 1000 + 0.001 * random.random()
"""
FILE = """
autotune: 1
name: lucky
objective: lucky.py:WHAT
metrics: {time: {goal: minimize, unit: s}}
knobs: {x: {range: [1, 4], default: 1}}
budget: {time: 500s}
"""


def search(folder: Path, what: str) -> autotune.Result:
    (folder / "lucky.py").write_text(OBJECTIVE)
    (folder / "space.yaml").write_text(FILE.replace("WHAT", what))
    return autotune.search(folder / "space.yaml", store=folder / "s.db")


@pytest.mark.long
def test_a_winner_that_fresh_processes_read_before_it_was_warm_is_told_from_a_lucky_one(
    tmp_path: Path,
) -> None:
    """What was fastest from its ninth call on was no better than the default, as though it had been luck."""
    result = search(tmp_path, "warms")
    assert result.is_default
    assert "its first readings in that process took 2.4 times as long as later ones" in result.remark
    file = tmp_path / "space.yaml"
    file.write_text(file.read_text() + "measure: {warmup: 8}\n")
    warm = autotune.search(file, store=tmp_path / "s.db", fresh=True)
    assert not warm.is_default and "warm" not in warm.remark


@pytest.mark.parametrize(
    ("goal", "values", "says"),
    [
        (MetricSpec("time", "minimize", "s"), [2.4, 2.2, 2.3, 1.0, 1.1, 0.9, 1.0], True),
        (MetricSpec("time", "maximize", "items/s"), [1.0, 1.1, 1.2, 2.0, 2.2, 1.9, 2.1], True),
        (MetricSpec("time", "minimize", "s"), [2.4, 1.0, 2.3, 1.0, 1.1, 0.9, 1.0], False),  # one was not
        (MetricSpec("time", "minimize", "s"), [2.4, 2.2, 2.3, 2.4], False),  # it never became warm
        (MetricSpec("time", "minimize"), [2.4, 2.2, 2.3, 1.0, 1.1, 0.9, 1.0], False),  # a loss has no caches
    ],
)
def test_when_first_readings_were_cold(goal: MetricSpec, values: list[float], says: bool) -> None:
    fresh = [Reading("time", 9.0, context={"process": 1})] * 3
    assert bool(say_warming(goal, [*(Reading("time", value) for value in values), *fresh])) is says


def test_readings_that_warm_the_caches_are_compared_with_each_other() -> None:
    """They are slower in each round; and one that was disturbed says nothing."""
    warms = [Reading("time", 2.0, discarded="warm-up"), Reading("time", 1.0)]
    goal = MetricSpec("time", "minimize", "s")
    assert say_warming(goal, warms * 6) == ""
    cold = [replace(reading, value=1.5 * reading.value) for reading in warms]
    disturbed = Reading("time", 0.9, discarded="disturbed")
    assert "1.5 times as long" in say_warming(goal, [*cold, disturbed, *cold, *warms * 6])


def test_a_gain_is_that_of_runs_in_fresh_processes(tmp_path: Path) -> None:
    """By the luck of one, eleven of thirteen searches of a knob without any effect had found a winner."""
    result = search(tmp_path, "half")
    assert result.best is not None and result.best["x"] != 1 and result.speedup is not None
    assert 1.6 < result.speedup.estimate < 2.5 and result.processes == RUNS  # 2, by five deviations
    assert result.speedup.high / result.speedup.low > 1.02, (
        "one process of each would be told to a thousandth"
    )
    with Store.open(tmp_path / "s.db") as store:
        again = [t for t in store.trials(result.study.id) if t.purpose in ("default", "final")]
        runs = {
            t.configuration["x"]: {r.context.get("process", 0) for r in store.readings(t.id)} for t in again
        }
        verdict = store.verdicts(result.study.id)[-1].document
    assert runs[1] == runs[result.best["x"]] == set(range(RUNS + 1))
    assert verdict["in_one_process"]["high"] / verdict["in_one_process"]["low"] < 1.02


def test_hashes_of_texts_are_the_same_in_all_that_is_compared(tmp_path: Path) -> None:
    """They decide what a look-up in a set costs, and differ from process to process of Python."""
    result = search(tmp_path, "order")
    assert result.is_default and result.remark.startswith("no better than the default")


# -- without processes


class Fixed(Entrant):
    def __init__(self, value: float) -> None:
        self._value = value
        self.closed = False

    def read(self, seed: int) -> tuple[Reading, ...]:
        return (Reading("time", self._value),)

    def close(self) -> None:
        self.closed = True


MESSAGE = "no more\n" + "x" * 2000
"""As a compiler prints: it becomes a part of a remark, which has one line."""


def _clause(how: str) -> bool:
    return how.startswith("ended as crashed in another process: no more x") and len(how) < 300


class Runs(InlineExecutor):
    """In each run an entrant reads the next of its values; where there is none, it fails; NaN: it is lost."""

    def __init__(self, values: dict[str, Sequence[float]]) -> None:
        self._values = values
        self.asked: list[int] = []
        self.made: list[Fixed] = []

    def entrants(self, wanted: object, run: int = 0) -> list[Entrant]:
        self.asked.append(run)
        made: list[Entrant] = []
        for what in wanted:  # type: ignore[attr-defined]
            [label] = [c.label for c in contenders(baseline=True) if c.what == what]
            own = self._values[label]
            entrant = Fixed(own[run - 1] if run <= len(own) else 0.0)
            if run > len(own):
                entrant.failure = Outcome(Status.CRASHED, message=MESSAGE)
            elif math.isnan(own[run - 1]):
                entrant.failure = Outcome(Status.LOST, message="its guardian was killed")
            made.append(entrant)
            self.made.append(entrant)
        return made


SPEC = parse_spec(FILE)
ONE, TWO = Configuration({"x": 1}), Configuration({"x": 2})


def contenders(baseline: bool = False) -> list[Contender]:
    made = [Contender(DEFAULT, ONE), Contender("trial 1", TWO)]
    return [*made, Contender("vendor", Baseline("vendor"))] if baseline else made


def read(values: dict[str, Sequence[float]], each: float = 0.0) -> tuple[FreshRuns, Runs, list[Contender]]:
    """In ten seconds; ``each``: of a reading."""
    executor = Runs(values)
    asked = contenders("vendor" in values)
    plan = Plan.of(asked, ReadingSeconds(each), 10.0)
    found = read_in_fresh_processes(SPEC, executor, plan, 12, lambda: None)
    return found, executor, asked


NOISY = [1.0 + 0.1 * (run % 3) for run in range(RUNS)]


def test_there_are_as_many_runs_as_there_is_time_for() -> None:
    values = {DEFAULT: [2.0] * RUNS, "trial 1": NOISY}
    found, executor, asked = read(values)
    assert len(found.runs) == RUNS and executor.asked == list(range(1, RUNS + 1))
    assert [run["trial 1"] for run in found.runs] == [(value,) * 3 for value in NOISY]
    assert [r.context["process"] for r in asked[0].readings] == [n for n in range(1, RUNS + 1) for _ in "abc"]
    assert len(read(values, each=0.25)[0].runs) == 5
    assert not read(values, each=0.32)[0].runs
    vendor = {**values, "vendor": [3.0] * RUNS}
    assert read(vendor, each=0.2)[0].runs[0].keys() == {*values, "vendor"}
    assert read(vendor, each=0.25)[0].runs[0].keys() == {*values}, "rather without it than not at all"


def test_runs_end_once_the_gain_is_known() -> None:
    assert len(read({DEFAULT: [2.0] * RUNS, "trial 1": [1.0] * RUNS})[0].runs) == FEWEST, "without any noise"
    assert len(read({DEFAULT: [2.0] * RUNS, "trial 1": [1.0, 1.001] * RUNS})[0].runs) == EARLIEST
    together = {DEFAULT: [2.0 * value for value in NOISY], "trial 1": NOISY}
    assert len(read(together)[0].runs) == EARLIEST, "the same in both is none of the gain's"


def test_a_plan_says_who_and_how_long() -> None:
    plan = Plan.of(contenders(baseline=True), ReadingSeconds(0.25), 10.0)
    assert plan.labels == (DEFAULT, "trial 1") and plan.runs == 5
    assert plan.seconds == 5 * 2 * 4 * 0.25, "of two processes with three rounds and one that warms up"
    assert Plan.of(contenders(), ReadingSeconds(0.32), 10.0).seconds == 0.0


@pytest.mark.parametrize("runs", [2, FEWEST + 1])
def test_one_that_fails_in_another_process_ends_it(runs: int) -> None:
    found, _, _ = read({DEFAULT: [2.0] * RUNS, "trial 1": NOISY[:runs]})
    assert found.failed == "trial 1" and _clause(found.how)
    assert [set(run) for run in found.runs] == [{DEFAULT, "trial 1"}] * runs


def test_a_run_in_which_one_was_lost_does_not_count() -> None:
    """That a process had been killed was told as: no better than the default."""
    lost = [math.nan if run in (1, 5) else value for run, value in enumerate(NOISY)]
    found, executor, _ = read({DEFAULT: [2.0] * RUNS, "trial 1": lost})
    assert [run["trial 1"][0] for run in found.runs] == [v for v in lost if v > 0] and not found.failed
    assert all(entrant.closed for entrant in executor.made), "also those that others took the place of"


def test_a_baseline_that_fails_there_is_left_out() -> None:
    found, _, _ = read({DEFAULT: [2.0] * RUNS, "trial 1": NOISY, "vendor": [3.0]})
    assert len(found.runs) == RUNS and found.runs[-1].keys() == {DEFAULT, "trial 1"} and not found.failed


FRAGILE = """
import os
from pathlib import Path
COUNT = Path(__file__).parent / "count"
with COUNT.open("a") as count:  # of the processes so far; several start at once
    count.write(".")

def fragile(x):
    if x != 1 and COUNT.stat().st_size > 12:
        os.abort()
    return 1.0 if x == 1 else 0.5
"""


@pytest.mark.long
def test_a_winner_that_dies_in_another_process_is_none(tmp_path: Path) -> None:
    """In its fifth run and later the finale itself had ended so, and before that the win stood."""
    (tmp_path / "lucky.py").write_text(FRAGILE)
    (tmp_path / "space.yaml").write_text(FILE.replace("WHAT", "fragile"))
    result = autotune.search(tmp_path / "space.yaml", store=tmp_path / "s.db")
    assert result.defended and result.is_default
    assert "ended as crashed in another process" in result.remark


INEXACT = """
from pathlib import Path
COUNT = Path(__file__).parent / "count"
with COUNT.open("a") as count:
    count.write(".")
LATE = COUNT.stat().st_size > 6  # the search, and four that are measured again first

def inexact(x):
    return {"time": 1.0 if x == 1 else 0.5, "error": 5.0 if LATE and x != 1 else 0.0}
"""


@pytest.mark.long
def test_a_winner_that_is_past_a_bound_in_other_processes_is_none(tmp_path: Path) -> None:
    """Its own re-measurement was stored as wrong, and it won, with the metrics that the search had read."""
    (tmp_path / "lucky.py").write_text(INEXACT)
    file = FILE.replace("WHAT", "inexact").replace("unit: s}", "unit: s}, error: {at_most: 1.0}")
    (tmp_path / "space.yaml").write_text(file)
    result = autotune.search(tmp_path / "space.yaml", store=tmp_path / "s.db")
    assert result.defended and result.is_default and result.metrics["error"].value == 0.0
    assert "is wrong: error is 5, allowed is at most 1" in result.remark


Read = dict[str, Sequence[tuple[float, ...]]]


def as_runs(values: Read) -> list[dict[str, tuple[float, ...]]]:
    return [dict(zip(values, read, strict=True)) for read in zip(*values.values(), strict=True)]


def standing(label: str, configuration: Configuration | None, value: float) -> Standing:
    values = tuple(value * (1 + 0.001 * n) for n in range(12))
    return Standing(
        label, configuration, label == DEFAULT, values, {"time": Estimate(value, value, value, 12)}
    )


STANDINGS = [standing(DEFAULT, ONE, 2.0), standing("trial 1", TWO, 1.9), standing("vendor", None, 3.8)]


def test_what_holds_in_other_processes_is_the_gain_that_is_said() -> None:
    before = judge(SPEC, STANDINGS)
    values: Read = {DEFAULT: [(2.0, 2.0)] * 6, "trial 1": [(1.6, 1.6)] * 6, "vendor": [(3.2, 3.2)] * 6}
    verdict = after_fresh_runs(SPEC, before, as_runs(values), STANDINGS)
    assert before["speedup"]["estimate"] == pytest.approx(2.0 / 1.9)
    assert verdict["label"] == "trial 1" and verdict["processes"] == 6
    assert verdict["speedup"]["estimate"] == pytest.approx(1.25)
    assert verdict["in_one_process"] == before["speedup"]
    assert verdict["baselines"][0]["estimate"] == pytest.approx(2.0) and verdict["strongest"] == "vendor"


def test_what_does_not_hold_there_is_no_better_than_the_default() -> None:
    runs = [(1.9, 1.9), (2.1, 2.1)] * 3
    values: Read = {DEFAULT: [(2.0, 2.0)] * 6, "trial 1": runs, "vendor": [(3.0, 3.0)] * 6}
    verdict = after_fresh_runs(SPEC, judge(SPEC, STANDINGS), as_runs(values), STANDINGS)
    without = {label: own for label, own in values.items() if label != "vendor"}
    as_before = after_fresh_runs(SPEC, judge(SPEC, STANDINGS), as_runs(without), STANDINGS)
    assert as_before["baselines"][0]["estimate"] == pytest.approx(1.9) and not as_before["strongest"]
    assert verdict["is_default"] and verdict["configuration"] == {"x": 1}
    assert verdict["speedup"]["low"] == verdict["speedup"]["high"] == 1.0
    assert verdict["baselines"][0]["estimate"] == pytest.approx(1.5)
    assert verdict["remark"].startswith("no better than the default: trial 1 was 1.05 [1.05, 1.05] in its")


def test_the_baseline_that_was_read_in_fresh_processes_is_the_one_to_stand_beside(
    search: Callable[..., autotune.Result],
) -> None:
    """Another one, read in a single process, came off better by luck and was said to be of those runs."""
    result = search(trials=1)
    lucky, sure = Comparison("lucky", 0.99, 0.98, 1.0), Comparison("sure", 1.01, 1.0, 1.02)
    assert replace(result, baselines=(lucky, sure), strongest="sure").vendor == sure
    assert replace(result, baselines=(sure, lucky)).vendor == lucky


@pytest.mark.long
def test_where_there_is_no_time_for_it_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh_processes, "FEWEST", RUNS + 1)  # as where so many take too long
    result = search(tmp_path, "half")
    assert result.processes == 1 and result.speedup is not None and result.remark.endswith(IN_ONE_PROCESS)
