"""Who enters the re-measurement, and what is kept of who does not stand it."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import autotune
from autotune.measure.objective import Baseline, Lost
from autotune.measure.outcome import Outcome, Reading
from autotune.measure.phases import runner
from autotune.measure.readings import Sample
from autotune.report.words.summary import headline, summarize
from autotune.session.finale import disturbed, interleaved
from autotune.session.finale.contender import Contender
from autotune.session.finale.finale import _with_guests, in_turn, longest_silence
from autotune.session.finale.kept_readings import KeptReadings, take_up
from autotune.session.finale.rounds import FEWEST_RUNS, MIN_ROUNDS, ReadingSeconds
from autotune.session.progress import Progress
from autotune.space.configuration import Configuration
from autotune.space.reading.reader import parse_spec
from autotune.status import Status
from autotune.store.records import Place, TrialRecord
from autotune.store.store import LEASE_SECONDS, Store

SPACE = """
autotune: 1
name: small
objective: objective.py:unused
knobs: {x: {range: [1, 4], default: 1}}
measure: {min_readings: 3, max_readings: 3, finalists: 2}
"""
AMPLE = "budget: {time: 1000s}\n"
"""Of the 200 s for its finale a machine may stand still for some, and all rounds are read nevertheless."""


class Late(Progress):
    """Has ``breaks`` happen when ``x`` is read for the fifth time in the finale."""

    def __init__(self, x: int, breaks: Callable[[], None]) -> None:
        self.x, self.breaks = x, breaks
        self.happens = True
        self.left = -1

    def defending(self, labels: tuple[str, ...], seconds: float) -> None:
        self.left = (
            10 if self.happens else -1
        )  # a reading of so short a run comes after one that warms the caches

    def measure(self, x: int) -> float:
        if x == self.x and self.left > 0:
            self.left -= 1
            if self.left == 0:
                self.breaks()
        return 8.0 / x


KNOBS = "knobs: {x: {range: [1, 4], default: 1}}"


def search(folder: Path, late: Late, knobs: str = KNOBS, trials: int = 4) -> autotune.Result:
    (folder / "objective.py").write_text("")
    spec = parse_spec(SPACE.replace(KNOBS, knobs) + AMPLE, folder / "space.yaml", {})
    return autotune.search(spec, objective=late.measure, store=folder / "s.db", trials=trials, progress=late)


class CheckedAgain(autotune.Objective):
    """Looks closer in the finale, as one does that has held data back."""

    def check(self, loaded: Configuration, rng: np.random.Generator) -> dict[str, float]:
        return {"accuracy": 0.9} if self.final else {}

    def measure(self, loaded: Configuration, rng: np.random.Generator) -> float:
        return 8.0 / float(loaded["x"])  # type: ignore[arg-type]


def test_what_only_the_check_of_a_finale_tells_is_in_the_answer(tmp_path: Path) -> None:
    (tmp_path / "objective.py").write_text("")
    text = SPACE + "metrics: {time: {goal: minimize, unit: s}, accuracy: {at_least: 0.5}}\n"
    spec = parse_spec(text, tmp_path / "space.yaml", {})
    result = autotune.search(spec, objective=CheckedAgain, store=tmp_path / "s.db", trials=4)
    assert result.defended and result.metrics["accuracy"].value == 0.9
    assert "was not checked" not in result.remark


class Unlooked(autotune.Objective):
    """Is faster with a larger ``x``, and the largest is never looked at closely."""

    def measure(self, loaded: Configuration, rng: np.random.Generator) -> dict[str, float]:
        x = float(loaded["x"])  # type: ignore[arg-type]
        return {"time": 8.0 / x} if x == 4 else {"time": 8.0 / x, "accuracy": 0.9}


def test_nobody_wins_without_the_metric_that_has_a_bound(tmp_path: Path) -> None:
    (tmp_path / "objective.py").write_text("")
    text = SPACE + "metrics: {time: {goal: minimize, unit: s}, accuracy: {at_least: 0.5}}\n"
    spec = parse_spec(text, tmp_path / "space.yaml", {})
    result = autotune.search(spec, objective=Unlooked, store=tmp_path / "s.db", trials=4)
    assert result.best == {"x": 3} and result.metrics["accuracy"].value == 0.9
    assert "it has no accuracy, which the default has" in result.remark


def test_what_was_read_before_a_failure_is_kept(tmp_path: Path) -> None:
    def fails() -> None:
        raise RuntimeError("no more")

    result = search(tmp_path, Late(4, fails))
    assert result.defended and result.best == {"x": 3}
    assert ", a finalist, ended as crashed when it was measured again (" in result.remark
    with Store.open(tmp_path / "s.db") as store:
        [failed] = [t for t in store.trials(result.study.id) if t.status is Status.CRASHED]
        kept = [r for r in store.readings(failed.id) if not r.discarded]
        again = [t for t in store.trials(result.study.id) if t.purpose != "search"]
        assert all(store.environment(t.environment_hash) for t in again), "each number says where it is from"
    assert failed.purpose == "final" and failed.configuration == {"x": 4}
    assert 1 <= len(kept) <= 4, "four; less where others had the core and it was read again"
    assert [(r.value, r.context["round"]) for r in kept] == [(2.0, n) for n in range(len(kept))]


def interrupted() -> None:
    raise KeyboardInterrupt


def calm() -> Late:
    """What was interrupted before, and is not."""
    late = Late(4, interrupted)
    late.happens = False
    return late


def test_a_finale_in_which_one_was_lost_is_repeated_by_the_next_search(tmp_path: Path) -> None:
    """The second best had won, since a process was killed, and stayed the answer."""

    def is_lost() -> None:
        late.left = 1  # and stays so when it is read again
        raise Lost("its node has gone")

    late = Late(4, is_lost)
    assert search(tmp_path, late).best == {"x": 3}
    late.happens = False
    for _ in range(2):
        again = search(tmp_path, late)
        assert again.best == {"x": 4} and "ended as lost" not in again.remark
    with Store.open(tmp_path / "s.db") as store:
        assert len(store.verdicts(again.study.id)) == 2, "the second one was settled"


class AwayForAMoment(autotune.Objective):
    """The check of the best one is lost twice in the finale, as where a licence is taken."""

    def __init__(self, context: autotune.Context) -> None:
        super().__init__(context)
        self.left = 2

    def check(self, loaded: Configuration, rng: np.random.Generator) -> None:
        if self.final and loaded["x"] == 4 and self.left:
            self.left -= 1
            raise Lost("no licence is free")

    def measure(self, loaded: Configuration, rng: np.random.Generator) -> float:
        return 8.0 / float(loaded["x"])  # type: ignore[arg-type]


def test_what_is_lost_as_a_finale_begins_is_tried_again(tmp_path: Path) -> None:
    """The second best had won, or nobody, where the default was lost."""
    (tmp_path / "objective.py").write_text("")
    spec = parse_spec(SPACE, tmp_path / "space.yaml", {})
    result = autotune.search(spec, objective=AwayForAMoment, store=tmp_path / "s.db", trials=4)
    assert result.best == {"x": 4} and "lost" not in result.remark


def test_what_was_read_before_an_interrupt_is_kept_and_gone_on_with(tmp_path: Path) -> None:
    """It had been read anew: of trainings of an hour most of a day was lost."""
    result = search(tmp_path, Late(4, interrupted))
    assert result.reason == "interrupted" and not result.defended
    with Store.open(tmp_path / "s.db") as store:
        lost = [t for t in store.trials(result.study.id) if t.status is Status.LOST]
        rounds = {t.configuration["x"]: {r.context["round"] for r in store.readings(t.id)} for t in lost}
        assert all(r.discarded for t in lost for r in store.readings(t.id))
        before = {t.configuration["x"]: readings(store, t) for t in lost}
    assert sorted(t.purpose for t in lost) == ["default", "final", "final"]
    assert rounds[4] <= rounds[1] & rounds[3] and rounds[4] in [set(range(n)) for n in (1, 2, 3, 4)]
    again = search(tmp_path, calm())
    assert again.study.id == result.study.id
    assert again.defended and again.best == {"x": 4}
    assert len(again.trials) == 4
    with Store.open(tmp_path / "s.db") as store:
        ends = [t for t in store.trials(result.study.id) if t.purpose != "search" and t not in lost]
        after = {t.configuration["x"]: readings(store, t) for t in ends}
    assert all(after[x][: len(before[x])] == before[x] for x in (1, 3, 4))
    rounds = {x: {number for number, _ in found} for x, found in after.items()}
    assert rounds[1] == rounds[3] == rounds[4] == set(range(len(rounds[1]))) and len(rounds[1]) >= 12


def test_what_only_some_were_read_in_is_left_out(tmp_path: Path) -> None:
    """Read again, all of one would follow one another, and drift would fall on it alone."""
    result = search(tmp_path, Late(4, interrupted))
    study = result.study
    contenders = [Contender("the default", Configuration({"x": 1}))]
    contenders += [Contender(f"trial {n}", Configuration({"x": x})) for n, x in ((1, 2), (2, 3))]
    with Store.open(tmp_path / "s.db") as store:
        [old] = store.sessions(study.id)
        segment = store.trials(study.id)[0].segment_id
        last = store.open_session(study.id, {}, old.environment_hash, 1, "here")
        kept = KeptReadings(store, Place(study.id, last, segment), contenders, 4)
        for contender, rounds in zip(contenders, (11, 4, 2), strict=True):
            contender.readings += [Reading("time", 1.0, context={"round": n}) for n in range(rounds)]
        lost = Outcome(Status.LOST)
        outcomes = {c.label: replace(lost, readings=tuple(c.readings)) for c in contenders}
        kept.finish(outcomes, old.environment_hash)
        again = [Contender(c.label, c.what) for c in contenders]
        now = store.open_session(study.id, {}, old.environment_hash, 1, "here")
        assert take_up(store, Place(study.id, now, segment), again) == 3 + 3 + 2
    assert [contender.rounds for contender in again] == [3, 3, 2]


def test_what_a_lost_process_had_begun_to_read_is_in_no_round(tmp_path: Path) -> None:
    """A finale that is gone on with took such a reading for one of a round, and ended in an error."""
    study = search(tmp_path, Late(4, interrupted)).study
    contenders = [Contender("the default", Configuration({"x": 1}))]
    contenders += [Contender("trial 1", Configuration({"x": 2}))]
    for contender in contenders:
        contender.readings += [Reading("time", 1.0, context={"round": n}) for n in range(2)]
    gone = Outcome(Status.LOST, readings=(Reading("time", 9.0),))
    with Store.open(tmp_path / "s.db") as store:
        [old] = store.sessions(study.id)
        segment = store.trials(study.id)[0].segment_id
        last = store.open_session(study.id, {}, old.environment_hash, 1, "here")
        kept = KeptReadings(store, Place(study.id, last, segment), contenders, 4)
        outcomes = {c.label: interleaved.failed(c, gone) for c in contenders}
        kept.finish(outcomes, old.environment_hash)
        again = [Contender(c.label, c.what) for c in contenders]
        now = store.open_session(study.id, {}, old.environment_hash, 1, "here")
        assert take_up(store, Place(study.id, now, segment), again) == 4
    assert [contender.values("time") for contender in again] == [[1.0, 1.0]] * 2


def test_a_reading_that_lasts_longer_than_a_lease_is_no_lost_finale(tmp_path: Path) -> None:
    """Another search that cannot see this process had taken the finale for one that was cut short."""
    study = search(tmp_path, Late(4, interrupted)).study
    contenders = [Contender("the default", Configuration({"x": 1}))]
    seconds = ReadingSeconds(usual=90.0, entering=30.0)
    with Store.open(tmp_path / "s.db") as store:
        [old] = store.sessions(study.id)
        segment = store.trials(study.id)[0].segment_id
        last = store.open_session(study.id, {}, old.environment_hash, 1, "here")
        place, silence = Place(study.id, last, segment), longest_silence(contenders, seconds)
        began = time.time()
        KeptReadings(store, place, contenders, 4, longest_silence=silence)
        assert store.expire(study.id, began + LEASE_SECONDS + 30.0 + 4 * 90.0) == []
        [lost] = store.expire(study.id, began + LEASE_SECONDS + 10 * 90.0)
    assert lost.session_id == last


def readings(store: Store, of: TrialRecord) -> list[tuple[int, float]]:
    """The round and the moment of each."""
    return [(r.context["round"], r.at) for r in store.readings(of.id)]


def test_a_finale_of_others_is_not_gone_on_with(tmp_path: Path) -> None:
    """Nor one that was left behind by a verdict."""
    first = search(tmp_path, Late(4, interrupted))
    more = search(tmp_path, calm(), "knobs: {x: {range: [1, 5], default: 1}}", trials=5)
    assert more.defended and more.best == {"x": 5} and more.study.id == first.study.id
    with Store.open(tmp_path / "s.db") as store:
        kept = [r for t in store.trials(more.study.id) for r in store.readings(t.id)]
    assert not any("kept_of" in reading.context for reading in kept)


def trial(number: int) -> TrialRecord:
    own = Configuration({"x": number})
    return TrialRecord(number, 1, number, 1, 1, "search", own, own.hash, Status.OK)


def test_the_best_reading_enters_first_and_then_who_is_expected_to_be_best() -> None:
    as_read = [trial(number) for number in (7, 3, 5, 1, 2)]
    expected = {trial(number).hash: value for number, value in {7: 0.9, 5: 0.1, 1: 0.0, 3: 0.5}.items()}
    assert [t.number for t in in_turn(as_read, expected)] == [7, 1, 5, 3, 2]
    assert in_turn(as_read, {}) == as_read and in_turn([], expected) == []


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


def test_that_nobody_stood_the_finale_is_said_with_the_reason(tmp_path: Path) -> None:
    file = "autotune: 1\nname: once\nobjective: once.py:once\nknobs: {x: {range: [1, 4], default: 1}}\n"
    spec = parse_spec(
        file + "measure: {min_readings: 1, max_readings: 1, warmup: 0}", tmp_path / "s.yaml", {}
    )
    seen: set[int] = set()

    def once(x: int) -> float:
        if x in seen:
            raise RuntimeError("the file is taken")
        seen.add(x)
        return 8.0 / x

    result = autotune.search(spec, objective=once, store=tmp_path / "s.db", trials=4)
    assert not result.defended and result.best == {"x": 4}
    said = "no finalist could be measured again: trial "
    assert result.remark.startswith(said) and "crashed (RuntimeError: the file is taken" in result.remark
    assert headline(result) == "best so far of once, measured again without success"


def test_without_a_feasible_default_the_best_is_measured_again(tmp_path: Path) -> None:
    file = "autotune: 1\nname: alone\nobjective: alone.py:alone\nknobs: {x: {range: [1, 4], default: 1}}\n"
    text = file + "constraints: [x > 1]\nmeasure: {finalists: 1}"
    spec = parse_spec(text, tmp_path / "s.yaml", {})
    result = autotune.search(spec, objective=lambda x: 8.0 / x, store=tmp_path / "s.db", trials=3)
    assert result.defended and result.best == {"x": 4}
    assert result.remark == "the default is not feasible: there is nothing to compare with"


def test_a_metric_that_only_comes_with_readings_that_do_not_count_has_no_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "SHORT_SECONDS", math.inf)  # whatever holds one up, caches are warmed again

    class Sometimes(Late):
        def measure(self, x: int) -> dict[str, float]:  # type: ignore[override]
            self.left += 1  # since the last finale began: an odd call warms caches up, and an even one counts
            return {"time": 8.0 / x} | ({"extra": 1.0} if self.left % 2 else {})

        def defending(self, labels: tuple[str, ...], seconds: float) -> None:
            self.left = -len(labels)  # each is warmed up once as it enters

    result = search(tmp_path, Sometimes(0, lambda: None))
    assert result.defended and result.best == {"x": 4} and "extra" in result.metrics
    with Store.open(tmp_path / "s.db") as store:
        final = store.trials(result.study.id, purpose="final")
    assert final and all(set(trial.metrics) == {"time"} for trial in final)


def test_one_reading_past_a_bound_does_not_end_a_finalist(tmp_path: Path) -> None:
    """As in the search, where the median decides: a metric with a long tail had left no finalist."""
    file = "autotune: 1\nname: tail\nobjective: tail.py:tail\nknobs: {x: {range: [1, 4], default: 1}}\n"
    metrics = "metrics: {time: {goal: minimize, unit: s}, p99: {at_most: 1.5}}\n"
    spec = parse_spec(file + metrics, tmp_path / "s.yaml", {})
    calls = itertools.count()

    def tail(x: int) -> dict[str, float]:
        return {"time": 8.0 / x, "p99": 1.8 if next(calls) % 10 == 0 else 1.0}

    result = autotune.search(spec, objective=tail, store=tmp_path / "s.db", trials=4)
    assert result.defended and result.best == {"x": 4} and result.metrics["p99"].value == 1.0
    assert result.speedup is not None and result.speedup.estimate == pytest.approx(4.0)


def test_an_answer_names_the_confidence_that_was_asked_for(tmp_path: Path) -> None:
    file = "autotune: 1\nname: sure\nobjective: sure.py:sure\nknobs: {x: {range: [1, 4], default: 1}}\n"
    spec = parse_spec(file + "measure: {confidence: 0.8}", tmp_path / "s.yaml", {})
    result = autotune.search(spec, objective=lambda x: 8.0 / x, store=tmp_path / "s.db", trials=4)
    assert result.confidence == 0.8 and "(80% interval, finalists and default" in summarize(result)


@pytest.mark.parametrize(
    ("measure", "rounds"), [("", FEWEST_RUNS), ("measure: {min_readings: 3}", MIN_ROUNDS)]
)
def test_what_has_no_noise_is_read_three_times(tmp_path: Path, measure: str, rounds: int) -> None:
    """A size of a program that takes minutes to build had been measured eight times again."""
    file = "autotune: 1\nname: exact\nobjective: size.py:size\nknobs: {x: {range: [1, 4], default: 1}}\n"
    spec = parse_spec(f"{file}{AMPLE}{measure}", tmp_path / "s.yaml", {})
    result = autotune.search(spec, objective=lambda x: 8.0 / x, store=tmp_path / "s.db", trials=4)
    assert result.speedup is not None and result.speedup.low == pytest.approx(4.0)
    with Store.open(tmp_path / "s.db") as store:
        assert store.verdicts(result.study.id)[-1].document["rounds"] == rounds


def test_a_noisy_bound_is_read_on_where_the_goal_has_no_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the best size under a limit of time three readings had said that it keeps the limit."""
    monkeypatch.setattr(disturbed, "MOST_TRIES", 1)  # on a busy machine others would be drawn
    file = "autotune: 1\nname: limit\nobjective: size.py:size\nknobs: {x: {range: [1, 4], default: 1}}\n"
    metrics = "metrics: {size: {goal: minimize}, seconds: {at_most: 1.0}}\n"
    spec = parse_spec(file + metrics + AMPLE, tmp_path / "s.yaml", {})
    seconds = itertools.cycle([0.7, 0.75, 0.8, 0.85, 1.15])

    def size(x: int) -> dict[str, float]:
        return {"size": 8.0 / x, "seconds": next(seconds)}

    result = autotune.search(spec, objective=size, store=tmp_path / "s.db", trials=4)
    assert result.best == {"x": 4} and result.metrics["seconds"].n >= MIN_ROUNDS
    assert "past its bound" not in result.remark


class OftenWaiting(autotune.Objective):
    """A default whose long readings wait for a core for half of their time, beside others that never do."""

    def measure(self, loaded: Configuration, rng: np.random.Generator) -> Sample:
        x = float(loaded["x"])  # type: ignore[arg-type]
        wall, waited = (1.0, 0.5) if x == 1 else (0.3, 0.0)
        time = 8.0 / x * (1.0 + 0.01 * float(rng.normal()))
        return Sample({"time": time}, context={"wall": wall, "cpu": wall - waited, "own_wait": waited})


def test_a_busy_machine_is_said_where_the_default_alone_has_waited(tmp_path: Path) -> None:
    """Of a kernel on a busy machine: 15 times as fast, said without a word, and 7 times alone."""
    (tmp_path / "objective.py").write_text("")
    spec = parse_spec(SPACE + AMPLE, tmp_path / "space.yaml", {})
    result = autotune.search(spec, objective=OftenWaiting, store=tmp_path / "s.db", trials=4)
    assert result.best == {"x": 4}
    assert "other programs had the core for 50% of the time or more" in result.remark


def test_a_finale_that_is_slower_than_its_search_says_so(tmp_path: Path) -> None:
    class Slowed(Late):
        def measure(self, x: int) -> float:
            return super().measure(x) * (3.0 if self.left > 0 else 1.0)

    slowed = Slowed(9, lambda: None)
    result = search(tmp_path, slowed)
    assert result.defended and result.best == {"x": 4}
    assert "3 times as large as in the search" in result.remark


def test_a_time_that_was_computed_is_told_from_one_that_was_measured(tmp_path: Path) -> None:
    """Its speed-up was as sure as can be, 4x [4, 4], without a word."""
    result = search(tmp_path, calm())
    assert result.speedup is not None and result.speedup.low == result.speedup.high
    assert "each reading of time was the same, as no clock reads" in result.remark
