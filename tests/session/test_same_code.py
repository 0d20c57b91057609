"""Trials with the same code: one is measured, the others share what came of it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import autotune
from autotune.measure.facts import CODE, SAME_CODE_AS
from autotune.measure.outcome import Estimate, Outcome
from autotune.session.api import open_session
from autotune.session.execution.workers import WorkerExecutor
from autotune.session.same_code import Known, SameCode
from autotune.space import IntegerRange, Space
from autotune.status import Status
from autotune.store.store import Store
from tests.session.execution.test_executor import collect, spec_in, submit

OBJECTIVE = """
import os
import autotune

class Halved(autotune.Objective):
    def prepare(self, configuration):
        return configuration["x"] // 2

    def code(self, prepared):
        return autotune.Code(
            fingerprint=str(prepared) if prepared < 40 else "",
            resources={"registers": prepared},
            facts={"flags": "-O2"},
            hopeless="spills" if prepared == 30 else "",
        )

    def load(self, prepared):
        return prepared

    def measure(self, loaded, rng):
        if loaded == 20:
            os._exit(3)
        return {"time": 1.0 + loaded + 1e-3 * rng.random(), "error": 0.0}
"""
SPACE = """
autotune: 1
name: halves
objective: objective.py:Halved
metrics: {time: {goal: minimize, unit: s}, error: {at_most: 0.1}}
knobs:
  x: {range: [0, 99], default: 0}
measure: {min_readings: 3, max_readings: 5}
"""
ONE = Estimate(1.0, 0.9, 1.1, 5)


def prepared(code: str) -> Outcome:
    return Outcome(Status.OK, facts={CODE: code} if code else {}, phases={"prepare": 0.5})


def test_another_waits_until_the_first_has_ended() -> None:
    book: SameCode[str] = SameCode()
    assert book.known(prepared("a")) is None and not book.waits(prepared("a"), "first")
    assert book.waits(prepared("a"), "second") and not book.waits(prepared("b"), "other")
    first = Outcome(Status.OK, {"time": ONE}, phases={"measure": 3.0}, facts={CODE: "a"})
    assert book.ended(7, first) == ["second"]
    known = book.known(prepared("a"))
    assert known is not None
    shared = known.shared(prepared("a"))
    assert shared.metrics == {"time": ONE} and shared.readings == () and shared.phases == {"prepare": 0.5}
    assert shared.facts[SAME_CODE_AS] == 7 and shared.message == "same code as trial 7"


def test_a_lost_trial_teaches_nothing_and_lets_the_next_one_go() -> None:
    book: SameCode[str] = SameCode()
    assert not book.waits(prepared("a"), "first") and book.waits(prepared("a"), "second")
    assert book.ended(1, Outcome(Status.LOST, facts={CODE: "a"})) == ["second"]
    assert book.known(prepared("a")) is None and not book.waits(prepared("a"), "second")


@given(st.lists(st.sampled_from(["", "a", "b"]), max_size=8))
def test_every_trial_is_measured_or_waits_or_is_given_back(codes: list[str]) -> None:
    book: SameCode[int] = SameCode()
    measured = [n for n, code in enumerate(codes) if not book.waits(prepared(code), n)]
    assert len(measured) == codes.count("") + len(set(codes) - {""})
    assert sorted(measured + book.release()) == list(range(len(codes)))


def test_a_failure_is_shared_with_its_reason() -> None:
    crashed = Outcome(Status.CRASHED, message="exit code 3", phase="measure", exit_code=3)
    shared = Known(4, crashed).shared(prepared("a"))
    assert (shared.status, shared.exit_code, shared.phase) == (Status.CRASHED, 3, "measure")
    assert shared.message == "same code as trial 4: exit code 3"


# -- in worker processes -----------------------------------------------------------------------


def test_workers_measure_the_same_code_once(tmp_path: Path) -> None:
    with closing(WorkerExecutor(spec_in(tmp_path, OBJECTIVE, SPACE), {}, prepare_workers=1)) as workers:
        submit(workers, 2, 3, 40, 41, 60, 90, 91)
        _, outcomes = collect(workers, 7)
        assert outcomes[2].readings and SAME_CODE_AS not in outcomes[2].facts
        assert not outcomes[3].readings and outcomes[3].facts[SAME_CODE_AS] == 2
        assert outcomes[3].metrics == outcomes[2].metrics and outcomes[3].status is Status.OK
        assert {n: outcomes[n].facts["resources"] for n in (2, 40)} == {
            2: {"registers": 1.0},
            40: {"registers": 20.0},
        }
        assert outcomes[41].status is Status.CRASHED and outcomes[41].facts[SAME_CODE_AS] == 40
        assert outcomes[60].status is Status.PRUNED and outcomes[60].message == "spills"
        assert "measure" not in outcomes[60].phases, "hopeless: it is not run"
        assert outcomes[90].readings and outcomes[91].readings, "no fingerprint, nothing shared"
        assert set(outcomes[2].facts["timeline"]) == {"prepare", "measure"}  # type: ignore[call-overload]
        # What was given up does not keep others of its code waiting for ever.
        submit(workers, 4, 5)
        workers.cancel()
        _, lost = collect(workers, 2)
        assert {o.status for o in lost.values()} == {Status.LOST}
        submit(workers, 5)
        _, again = collect(workers, 1)
        assert again[5].status is Status.OK and again[5].readings


@pytest.mark.long
@pytest.mark.parametrize("inline", [True, False])
def test_a_resumed_search_knows_what_it_has_measured(tmp_path: Path, inline: bool) -> None:
    spec = spec_in(tmp_path, OBJECTIVE.replace("os._exit(3)", "pass"), SPACE)
    options = {"store": tmp_path / "study.db", "strategy": "random"}
    if inline:
        from autotune.measure.loading.importing import load_target

        options["objective"] = load_target(spec.objective)  # type: ignore[arg-type]
    begun = replace(spec, measure=replace(spec.measure, finalists=0))
    autotune.search(begun, trials=30, **options)  # type: ignore[arg-type]
    result = autotune.search(spec, trials=60, **options)  # type: ignore[arg-type]
    trials = {t.number: t for t in result.trials}
    twins = [t for t in result.trials if SAME_CODE_AS in t.facts]
    assert any(t.number >= 30 > int(t.facts[SAME_CODE_AS]) for t in twins)  # type: ignore[call-overload]
    for trial in twins:
        first = trials[trial.facts[SAME_CODE_AS]]
        assert trial.reading_count == 0 and trial.metrics == first.metrics
        assert first.facts[CODE] == trial.facts[CODE]
    fingerprints = [t.facts[CODE] for t in result.trials if t.reading_count and CODE in t.facts]
    assert len(fingerprints) == len(set(fingerprints)), "the same code was measured twice"
    # The finale reads no code twice either.
    with Store.open(str(tmp_path / "study.db"), readonly=True) as store:
        finals = store.trials(result.study.id, purpose="final")
        finals = [t for t in finals if t.session_id == max(f.session_id for f in finals)]
    halves = [t.configuration["x"] // 2 for t in finals]  # type: ignore[operator]
    assert len(halves) == len(set(halves)) == 5


class Tight(autotune.Objective):
    """Two configurations have the same code, which there is no room for at first."""

    room = False

    def code(self, prepared: Any) -> autotune.Code:
        return autotune.Code(fingerprint="same")

    def measure(self, loaded: Any, rng: np.random.Generator) -> float:
        if not self.room:
            raise autotune.OutOfMemory("no room")
        return 1.0


def test_what_failed_at_a_limit_that_was_raised_is_shared_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    space = Space([IntegerRange("x", 0, 1)])
    spec = autotune.StudySpec("tight", space, measure=autotune.MeasureSettings(memory=1 << 30))
    with Store.open("sqlite://") as store:
        open_session(replace(spec, budget=autotune.Budget(trials=1)), store, objective=Tight).run()
        monkeypatch.setattr(Tight, "room", True)
        raised = replace(spec, measure=autotune.MeasureSettings(memory=1 << 40))
        result = open_session(raised, store, objective=Tight).run()
        assert [trial.status for trial in result.trials] == [Status.OUT_OF_MEMORY, Status.OK]
        assert len(store.studies()) == 1
