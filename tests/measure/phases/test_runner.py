"""The phases of a trial, in this process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.measure.facts import MISTAKE
from autotune.measure.objective import Baseline, Code, Context, Infeasible, Objective, WrongAnswer
from autotune.measure.outcome import Estimate, Outcome
from autotune.measure.phases.raised import failed
from autotune.measure.phases.runner import Runner
from autotune.measure.readings import MOST_DISCARDED, Sample
from autotune.measure.workers.channel import frame, loads_plain
from autotune.space.configuration import Configuration
from autotune.space.spec import MeasureSettings, MetricSpec
from autotune.status import Status

METRICS = (MetricSpec("time", "minimize", "s"), MetricSpec("error", at_most=0.1), MetricSpec("size"))
SETTINGS = MeasureSettings(min_readings=5, max_readings=20, warmup=2)
CONFIGURATION = Configuration({"a": 1})


class Tape(Objective):
    """Plays readings; remembers what it was asked."""

    def __init__(self, readings: list[Any], checked: Any = None) -> None:
        super().__init__(Context({}, {}, Path(), seed=3))
        self.readings = iter(readings)
        self.checked = checked
        self.drawn: dict[str, list[float]] = {"check": [], "measure": []}

    def check(self, loaded: Any, rng: np.random.Generator) -> Any:
        self.drawn["check"].append(float(rng.random()))
        return self.checked

    def measure(self, loaded: Any, rng: np.random.Generator) -> Any:
        self.drawn["measure"].append(float(rng.random()))
        return next(self.readings)

    def load_baseline(self, baseline: Baseline) -> Any:
        return baseline.name


def noisy(middle: float = 1.0, n: int = 1000) -> list[float]:
    return [float(x) for x in middle * (1 + 0.1 * np.random.default_rng(0).random(n))]


def measure(
    objective: Objective, settings: MeasureSettings = SETTINGS, incumbent: Estimate | None = None
) -> Outcome:
    return Runner(objective, METRICS, settings).measure(lambda: CONFIGURATION, 1, incumbent)


def test_every_reading_is_kept_and_warm_ups_do_not_count() -> None:
    tape = noisy()
    outcome = measure(Tape(tape))
    assert outcome.status is Status.OK
    assert [r.value for r in outcome.readings] == tape[:22]
    assert [r.discarded for r in outcome.readings] == ["warm-up"] * 2 + [""] * 20
    assert outcome.metrics["time"].n == 20
    at = [r.at for r in outcome.readings]
    assert at[0] == 0 and at == sorted(at)
    assert all("wall" in r.context and "cpu" in r.context for r in outcome.readings)
    assert set(outcome.phases) == {"load", "check", "warmup", "measure"}
    assert outcome.peak_memory is not None and outcome.peak_memory > 1 << 20
    assert str(outcome.facts["stopped"]).startswith("capped")


def test_an_objective_may_put_clocks_of_its_own_in_the_place_of_python_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Clockless(Tape):
        def measure(self, loaded: Any, rng: np.random.Generator) -> Any:
            for name in ("perf_counter", "monotonic", "process_time"):
                monkeypatch.setattr(time, name, lambda: -1e9)
            return super().measure(loaded, rng)

    outcome = measure(Clockless(noisy()))
    assert outcome.status is Status.OK and len(outcome.phases) == 4
    assert all(0 <= seconds < 1e6 for seconds in outcome.phases.values())
    assert all(0 <= r.at < 1e6 and r.context["wall"] >= 0 for r in outcome.readings)


def test_a_metric_without_noise_is_not_repeated() -> None:
    assert measure(Tape([2.0] * 50)).metrics["time"].n == 3


def test_a_hopeless_configuration_is_pruned_and_still_known() -> None:
    incumbent = Estimate(0.1, 0.09, 0.11, 10)
    outcome = measure(Tape(noisy()), incumbent=incumbent)
    assert outcome.status is Status.PRUNED and outcome.metrics["time"].n < 20
    assert outcome.metrics["time"].low > 0.5 and outcome.phase == ""
    assert measure(Tape(noisy()), replace(SETTINGS, reject=False), incumbent).status is Status.OK


def test_several_metrics_a_reading() -> None:
    outcome = measure(Tape([{"time": t, "size": 7, "own": np.float32(2)} for t in noisy()]))
    assert outcome.metrics["size"].value == 7 and outcome.metrics["own"].value == 2
    assert type(outcome.readings[-1].value) is float


def test_a_bound_on_what_is_read() -> None:
    outcome = measure(Tape([{"time": t, "error": 0.3} for t in noisy()]))
    assert outcome.status is Status.WRONG and outcome.message == "error is 0.3, allowed is at most 0.1"
    assert outcome.metrics["error"].value == 0.3
    assert outcome.metrics["time"].n == 3, "it went on reading what is without noise past its bound"


def test_a_noisy_metric_past_its_bound_is_read_until_that_is_beyond_doubt() -> None:
    errors = [0.3, 0.2, 0.05, *(0.3 + 0.01 * i for i in range(50))]
    outcome = measure(Tape([{"time": t, "error": e} for t, e in zip(noisy(), errors, strict=False)]))
    assert outcome.status is Status.WRONG and 8 < outcome.metrics["error"].n < 20
    assert str(outcome.facts["stopped"]).startswith("bounded")


def test_a_bound_on_what_the_check_finds_ends_it_at_once() -> None:
    tape = Tape(noisy(), checked={"error": 0.3})
    outcome = measure(tape)
    assert (outcome.status, outcome.phase) == (Status.WRONG, "check")
    assert tape.drawn["measure"] == []
    assert measure(Tape(noisy(), checked={"error": 0.01})).metrics["error"].value == 0.01


def test_a_nan_of_another_metric_is_diverged() -> None:
    outcome = measure(Tape([{"time": t, "size": float("nan")} for t in noisy()]))
    assert outcome.status is Status.DIVERGED and outcome.metrics["time"].n == 1


def test_random_inputs_are_others_for_each_trial_and_for_check_and_readings() -> None:
    drawn = []
    for seed in (1, 2, 1):
        tape = Tape(noisy())
        Runner(tape, METRICS, SETTINGS).measure(lambda: CONFIGURATION, seed)
        drawn.append((tape.drawn["check"][0], *tape.drawn["measure"][:3]))
    assert drawn[0] == drawn[2] and len({*drawn[0], *drawn[1]}) == 8


def test_no_reading_is_begun_that_would_not_end_in_time() -> None:
    # With nothing left of its time it takes the one reading without which it would know nothing.
    outcome = Runner(Tape(noisy()), METRICS, SETTINGS).measure(lambda: CONFIGURATION, 1, seconds=0.0)
    assert outcome.status is Status.OK and outcome.metrics["time"].n == 1
    assert "time limit" in str(outcome.facts["stopped"])


def test_what_is_warm_is_warmed_up_only_where_somebody_asks_for_it() -> None:
    class Warm(Tape):
        is_warm = True

    def discarded(**settings: int) -> list[str]:
        outcome = measure(Warm(noisy()), MeasureSettings(max_readings=2, **settings))
        return [reading.discarded for reading in outcome.readings]

    assert discarded() == ["", ""]
    assert discarded(warmup=1) == ["warm-up", "", ""]
    runner = Runner(Warm([0.2, 0.3]), METRICS, MeasureSettings())
    assert runner.enter(CONFIGURATION, lambda: None, seed=0).status is Status.OK
    assert [reading.value for reading in runner.read(0).readings] == [0.2]


def test_a_warm_up_counts_where_the_time_allows_no_other_reading() -> None:
    def counted(**settings: int) -> list[float]:
        runner = Runner(Tape([1.0, 2.0, *noisy()]), METRICS, MeasureSettings(**settings))
        outcome = runner.measure(lambda: CONFIGURATION, 1, seconds=0.0)
        assert outcome.status is Status.OK
        return [reading.value for reading in outcome.readings if not reading.discarded]

    assert counted() == [1.0]
    assert counted(warmup=1) == [2.0]


def test_the_users_interrupt_goes_to_the_user() -> None:
    class Interrupted(Tape):
        def measure(self, loaded: Any, rng: np.random.Generator) -> float:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(Interrupted([]))
    runner = Runner(Interrupted([]), METRICS, SETTINGS, own_process=True)
    assert runner.measure(lambda: CONFIGURATION, 1).status is Status.CRASHED


def test_an_entrant_is_read_once_a_round_after_its_caches_are_warm() -> None:
    tape = Tape(noisy())
    runner = Runner(tape, METRICS, SETTINGS)
    assert runner.enter(Baseline("vendor"), lambda: None, seed=0).status is Status.OK
    for seed in range(3):
        readings = runner.read(seed).readings
        assert [r.discarded for r in readings] == ["warm-up", ""]


def test_an_entrant_that_was_not_warmed_up_is_so_by_its_first_reading() -> None:
    tape = Tape([1.0, 2.0])
    runner = Runner(tape, METRICS, SETTINGS)
    entered = runner.enter(CONFIGURATION, lambda: CONFIGURATION, seed=0, warm_up=False)
    assert entered.status is Status.OK and "warmup" not in entered.phases
    assert [(r.value, r.discarded) for r in runner.read(1).readings] == [(1.0, "warm-up"), (2.0, "")]


def test_the_first_reading_of_an_entrant_counts_where_the_time_limit_allows_no_other() -> None:
    """What takes more than half of the limit had been killed by it, every contender, when measured again."""
    for settings, discarded in ({}, [""]), ({"warmup": 1}, ["warm-up", ""]):
        runner = Runner(Tape([1.0, 2.0]), METRICS, MeasureSettings(timeout=1e-9, **settings))
        runner.enter(CONFIGURATION, lambda: CONFIGURATION, seed=0, warm_up=False)
        assert [r.discarded for r in runner.read(1).readings] == discarded


def test_a_long_reading_needs_no_warm_caches() -> None:
    runner = Runner(Tape(noisy()), METRICS, SETTINGS)
    runner.enter(CONFIGURATION, lambda: CONFIGURATION, seed=0)
    assert runner._entered is not None
    runner._entered[1].clock.last_seconds = 5.0
    assert [r.discarded for r in runner.read(1).readings] == [""]


def test_prepare_is_a_phase_with_an_outcome() -> None:
    class Broken(Tape):
        def prepare(self, configuration: Configuration) -> Any:
            raise OSError("no compiler")

    outcome, prepared = Runner(Tape([]), METRICS, SETTINGS).prepare(CONFIGURATION)
    assert outcome.status is Status.OK and prepared == CONFIGURATION and set(outcome.phases) == {"prepare"}
    outcome, prepared = Runner(Broken([]), METRICS, SETTINGS).prepare(CONFIGURATION)
    assert outcome.status is Status.CRASHED and outcome.phase == "prepare" and prepared is None
    assert outcome.message == "OSError: no compiler" and "Broken" not in outcome.message


def test_notes_are_written_while_it_goes() -> None:
    import os
    import time

    from autotune.measure.workers.notes import SharedNotes

    descriptor = SharedNotes.make()
    notes, reader = SharedNotes(descriptor), SharedNotes(descriptor)
    os.close(descriptor)

    def tape() -> Iterator[float]:
        yield from noisy(n=4)
        seen.append(reader.read(time.monotonic()))
        raise ValueError("enough")

    seen: list[Any] = []
    objective = Tape([])
    objective.readings = tape()
    Runner(objective, METRICS, SETTINGS, notes).measure(lambda: CONFIGURATION, 1)
    (noted,) = seen
    assert noted.phase == "measure" and len(noted.readings) == 4
    assert list(noted.phases) == ["load", "check", "warmup", "measure"]
    with notes.waiting():
        assert reader.waited(time.monotonic() + 5.0) >= 5.0
    assert 0.0 < reader.waited(time.monotonic() + 5.0) < 5.0
    notes.clear()
    assert reader.read(0.0).readings == () and reader.waited(time.monotonic()) == 0.0
    notes.close()
    reader.close()


def throttled(value: float) -> Sample:
    return Sample({"time": value}, {"sm_clock_mhz": 900.0}, "throttled", {"device": "hot"})


def test_a_discarded_reading_is_kept_counted_and_taken_again() -> None:
    tape = [throttled(9.0), *noisy()]
    outcome = measure(Tape([1.0, 1.0, *tape]), replace(SETTINGS, max_readings=5))
    assert outcome.status is Status.OK and outcome.metrics["time"].n == 5
    bad = [r for r in outcome.readings if r.discarded == "throttled"]
    assert [r.value for r in bad] == [9.0] and bad[0].context["sm_clock_mhz"] == 900
    assert outcome.facts["discarded"] == {"throttled": 1} and outcome.facts["device"] == "hot"
    assert outcome.metrics["time"].high < 2


def test_a_device_that_lets_nothing_count_is_no_fault_of_the_configuration() -> None:
    outcome = measure(Tape([throttled(9.0)] * 100))
    assert outcome.status is Status.LOST and not outcome.metrics
    assert outcome.message == f"nothing of it counts: {MOST_DISCARDED} readings were discarded as throttled"


def test_a_device_that_lets_nothing_count_in_time_is_no_fault_of_the_configuration() -> None:
    runner = Runner(Tape([throttled(9.0)] * 100), METRICS, SETTINGS)
    outcome = runner.measure(lambda: CONFIGURATION, 1, seconds=0.0)
    assert (
        outcome.status is Status.LOST
        and "1 reading was discarded as throttled; the time limit" in outcome.message
    )
    assert len(outcome.readings) == 3, "two that warm up, and one that was to count"


def test_readings_end_where_the_device_lets_few_count() -> None:
    outcome = measure(Tape([1.0, 1.0, 1.0, 1.1, *[throttled(9.0)] * 100]))
    assert outcome.status is Status.OK and outcome.metrics["time"].n == 2
    assert outcome.facts["stopped"] == f"capped: {MOST_DISCARDED} readings were discarded as throttled"


def test_scalars_of_numpy_in_what_is_kept_become_plain() -> None:
    """They cannot be sent to the session otherwise."""

    class Compiled(Tape):
        def code(self, prepared: Any) -> Code:
            return Code(facts={"lines": np.int64(3)})

    facts = {"seed": np.int64(7), "losses": [np.float32(0.5)], "by": {"name": (np.float64(1.5), None)}}
    outcome = measure(Tape([Sample({"time": 1.0}, {"clock": np.float64(900)}, facts=facts)] * 50))
    kept = {name: outcome.facts[name] for name in facts}
    assert repr(kept) == "{'seed': 7, 'losses': [0.5], 'by': {'name': [1.5, None]}}"
    assert type(outcome.readings[0].context["clock"]) is float
    loads_plain(frame(outcome)[8:])  # as the session reads it, behind its length
    prepared, _ = Runner(Compiled([]), METRICS, SETTINGS).prepare(CONFIGURATION)
    assert type(prepared.facts["lines"]) is int


NUMBERS = [
    np.float16(1.5),
    np.longdouble(1.5),
    np.array(1.5),
    np.array([1.5]),
    Decimal("1.5"),
    Fraction(3, 2),
]


@pytest.mark.parametrize("value", NUMBERS, ids=lambda value: type(value).__name__)
def test_whatever_is_a_number_is_one(value: Any) -> None:
    outcome = measure(Tape([value] * 50))
    assert outcome.status is Status.OK and outcome.readings[0].value == 1.5
    assert type(outcome.readings[0].value) is float


@pytest.mark.parametrize("value", [10**400, Decimal("sNaN"), 1j, np.complex64(1), "1.5", None, (1.0,)])
def test_what_is_no_number_is_said_so_by_name(value: Any) -> None:
    outcome = measure(Tape([{"time": value}] * 50))
    assert outcome.status is Status.CRASHED and "the metric 'time' must be a number" in outcome.message


@pytest.mark.parametrize("flag", [True, False, np.True_])
def test_a_flag_is_no_reading_of_a_goal_but_may_have_a_bound(flag: Any) -> None:
    """``return ok`` in the place of a time: all that had gone well took a second, and the rest nothing."""
    for reading in (flag, {"time": flag}):
        outcome = measure(Tape([reading] * 50))
        assert outcome.status is Status.CRASHED
        assert "the metric 'time' must be a number, not the flag" in outcome.message
    assert measure(Tape([{"time": 1.5, "passed": flag}] * 50)).metrics["passed"].value == float(flag)


def test_the_mean_of_nothing_is_not_0() -> None:
    outcome = measure(Tape([np.ma.array([1.0], mask=True).mean()] * 50))
    assert outcome.status is Status.DIVERGED and outcome.message == "time is nan"


@pytest.mark.parametrize("checked", [True, False, np.bool_(False), 0.5, "ok"])
def test_a_check_that_returns_no_metrics_by_name_is_told_what_to_do(checked: object) -> None:
    outcome = measure(Tape([1.0] * 50, checked))
    assert (outcome.status, outcome.phase) == (Status.CRASHED, "check")
    assert "where the answer is wrong it raises WrongAnswer" in outcome.message


class Text(str):
    """A text that the session does not know."""


class Refused(Infeasible):
    def __init__(self, exit_code: int) -> None:
        super().__init__("no")
        self.exit_code = exit_code


@pytest.mark.parametrize("taken", ["12", None, [1, 2]])
def test_a_resource_that_is_no_number_is_named(taken: Any) -> None:
    """A text of digits passed for a number, and of any other value only the type was said."""

    class Compiled(Tape):
        def code(self, prepared: Any) -> Code:
            return Code(resources={"registers": taken})

    outcome, _ = Runner(Compiled([]), METRICS, SETTINGS).prepare(CONFIGURATION)
    assert outcome.status is Status.CRASHED
    assert "the resource 'registers' must be a number, not" in outcome.message


def test_what_an_objective_says_in_words_becomes_plain_text() -> None:
    class Compiled(Tape):
        def code(self, prepared: Any) -> Code:
            return Code(Text("1a"), hopeless=Text("too large"))

    class Refusing(Tape):
        def prepare(self, configuration: Configuration) -> Any:
            refusal = Infeasible("no")
            refusal.exit_code, refusal.signal = np.int64(3), Text("KILL")  # type: ignore[assignment]
            raise refusal

    outcome, _ = Runner(Compiled([]), METRICS, SETTINGS).prepare(CONFIGURATION)
    loads_plain(frame(outcome)[8:])  # as the session reads it, behind its length
    assert (outcome.status, outcome.message, outcome.facts["code"]) == (Status.PRUNED, "too large", "1a")
    outcome, _ = Runner(Refusing([]), METRICS, SETTINGS).prepare(CONFIGURATION)
    loads_plain(frame(outcome)[8:])
    assert (outcome.exit_code, outcome.signal) == (3, None)
    assert failed(Refused(2**70)).exit_code is None, "no store holds it"
    outcome = measure(Tape([Sample({"time": 9.0}, discarded=Text("hot")), *noisy()]))  # type: ignore[list-item]
    loads_plain(frame(outcome)[8:])


@pytest.mark.parametrize(
    "sample, message",
    [
        (Sample({"time": 1.0}, facts={"when": Path("x")}), "the fact 'when' must be JSON"),
        (Sample({"time": 1.0}, facts={"all": np.ones(2)}), "the fact 'all' must be JSON"),
        (Sample({"time": 1.0}, {"clock": "fast"}), "the context 'clock' must be a number"),  # type: ignore[dict-item]
    ],
)
def test_what_cannot_be_kept_fails_the_trial_by_name(sample: Sample, message: str) -> None:
    outcome = measure(Tape([sample] * 50))
    assert (outcome.status, outcome.phase) == (Status.CRASHED, "warmup") and message in outcome.message


def test_a_wrong_answer_is_wrong_whatever_is_said_with_it() -> None:
    class Wrong(Tape):
        def check(self, loaded: Any, rng: np.random.Generator) -> Any:
            said = {"error": None, "size": np.float32(2), "all": np.ones(2), "huge": 10**400}
            raise WrongAnswer("off", said)  # type: ignore[arg-type]

    outcome = measure(Wrong([]))
    assert (outcome.status, outcome.message, outcome.phase) == (Status.WRONG, "off", "check")
    assert {name: found.value for name, found in outcome.metrics.items()} == {"size": 2}


def test_an_entrants_discarded_reading_is_taken_again() -> None:
    runner = Runner(Tape([1.0, 1.0, 1.0, throttled(9.0), 1.0]), METRICS, SETTINGS)
    runner.enter(CONFIGURATION, lambda: CONFIGURATION, seed=0)
    assert [r.discarded for r in runner.read(1).readings] == ["warm-up", "throttled", ""]


def test_what_cuda_says_decides_what_came_of_a_trial() -> None:
    class OutOfResources(Exception):  # noqa: N818 - as Triton calls it
        __module__ = "triton.runtime.errors"

    class Refused(Tape):
        def measure(self, loaded: Any, rng: np.random.Generator) -> Any:
            raise OutOfResources("shared memory")

    outcome = measure(Refused([]))
    assert outcome.status is Status.INFEASIBLE
    assert outcome.message == "OutOfResources (OutOfResources: shared memory)"


@pytest.mark.parametrize("goals", [("energy",), ("time", "energy")])
def test_why_a_metric_is_missing_is_said_where_the_objective_knows(goals: tuple[str, ...]) -> None:
    """A GPU of a laptop does not count energy: the kernel had been blamed for not returning it."""
    sample = Sample({"time": 1.0}, facts={"energy": "this device does not count it"})
    metrics = tuple(MetricSpec(name, "minimize") for name in goals)
    outcome = Runner(Tape([sample] * 10), metrics, SETTINGS).measure(lambda: CONFIGURATION, 1)
    assert outcome.status is Status.CRASHED
    assert outcome.message.endswith("returned time (this device does not count it)")


def test_a_trial_without_one_of_several_goals_is_not_ok() -> None:
    goals = (MetricSpec("time", "minimize", "s"), MetricSpec("energy", "minimize", "J"))

    def outcome(reading: object, checked: object = None) -> Outcome:
        runner = Runner(Tape([reading] * 10, checked), goals, SETTINGS)
        return runner.measure(lambda: CONFIGURATION, 1)

    missing = outcome({"time": 1.0, "enrgy": 2.0})
    assert missing.status is Status.CRASHED and "must return the metric 'energy'" in missing.message
    assert missing.facts[MISTAKE] and len(missing.readings) == 2 * 5, "what was read is kept"
    assert outcome({"time": 1.0, "energy": 2.0}).status is Status.OK
    assert outcome({"time": 1.0}, {"energy": 2.0}).status is Status.OK, "a check may give it"
    assert outcome({"time": float("nan")}).status is Status.DIVERGED
