"""What was measured again, the front, and how trials lie in the space."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from autotune.measure.gpu.conditions import Conditions
from autotune.measure.outcome import Estimate, Outcome, Reading
from autotune.report import steadiness as module
from autotune.report.evidence import load_evidence
from autotune.report.figures import front_figure
from autotune.report.lineage.traces import known_then, proposals_behind, readings_behind, winner_number
from autotune.report.relations import pair, parallel
from autotune.report.standing import finale, front
from autotune.report.steadiness import steadiness
from autotune.session.answers import load_answer
from autotune.status import Status
from autotune.store.reader import StoreReader
from tests.report.studies import Written, generated


def test_the_finale_has_its_roles(tmp_path: Path) -> None:
    with generated(tmp_path) as store:
        frame = finale(load_evidence(store))
    assert frame["role"].tolist() == ["winner", "finalist", "default"]
    assert frame["value"].is_monotonic_increasing
    assert (frame["readings"] == 12).all()


def test_who_failed_in_the_finale_comes_last_and_has_no_value(tmp_path: Path) -> None:
    goals = [{"name": "rate", "goal": "maximize", "unit": "items/s", "at_most": None, "at_least": None}]
    written = Written(tmp_path, metrics=goals)
    written.trial({"tile": 1}, metrics={"rate": 1.0})
    assert finale(load_evidence(written.store)).empty, "nothing was measured again"
    contenders = [
        ("the default", 1, "default", 2.0),
        ("trial 0", 2, "final", 4.0),
        ("trial 3", 3, "final", 3.0),
    ]
    for label, tile, purpose, rate in contenders:
        reason = {"kind": "re-measurement", "label": label}
        written.trial({"tile": tile}, metrics={"rate": rate}, purpose=purpose, reason=reason)
    gone = {"kind": "re-measurement", "label": "trial 4"}
    written.trial({"tile": 4}, metrics={"rate": 9.0}, status=Status.WRONG, purpose="final", reason=gone)
    cut = {"kind": "re-measurement", "label": "trial 5"}
    written.trial({"tile": 5}, status=Status.CRASHED, purpose="final", reason=cut)
    written.verdict({"tile": 2}, label="trial 0")
    frame = finale(load_evidence(written.store))
    assert frame["label"].tolist() == ["trial 0", "trial 3", "the default", "trial 4", "trial 5"]
    assert frame["role"].tolist() == ["winner", "finalist", "default", "finalist", "finalist"]
    assert frame["value"].tolist()[:3] == [4.0, 3.0, 2.0] and frame["value"].isna().sum() == 2
    assert frame["low"].tolist()[:3] == pytest.approx([3.6, 2.7, 1.8])
    assert frame["high"].tolist()[:3] == pytest.approx([4.4, 3.3, 2.2])
    assert frame["readings"].tolist() == [3, 3, 3, 3, 0]
    assert frame["status"].tolist() == ["ok", "ok", "ok", "wrong", "crashed"]
    assert frame["id"].is_unique and frame.attrs == {"metric": "rate", "unit": "items/s"}


NAMES = ("trial", "front")


def test_the_front_is_what_none_beats(tmp_path: Path) -> None:
    goals = [
        {"name": n, "goal": g, "unit": "", "at_most": None, "at_least": None}
        for n, g in (("a", "minimize"), ("b", "maximize"))
    ]
    written = Written(tmp_path, metrics=goals)
    for tile, (a, b) in enumerate([(1.0, 1.0), (2.0, 3.0), (2.0, 2.0), (3.0, 3.0)]):
        written.trial({"tile": tile}, metrics={"a": a, "b": b})
    written.trial({"tile": 9}, status=Status.CRASHED)
    frame = front(load_evidence(written.store))
    assert frame["front"].tolist() == [True, True, False, False]


def test_goals_may_be_called_as_columns_are(tmp_path: Path) -> None:
    goals = [{"name": n, "goal": "minimize", "unit": "", "at_most": None, "at_least": None} for n in NAMES]
    written = Written(tmp_path, metrics=goals)
    for tile, (a, b) in enumerate([(1.0, 4.0), (2.0, 3.0), (3.0, 3.0)]):
        written.trial({"tile": tile}, metrics=dict(zip(NAMES, (a, b), strict=True)))
    frame = front(load_evidence(written.store))
    assert frame["front"].tolist() == [True, True, False] and frame["trial"].tolist() == [0, 1, 2]
    assert [axes.get_xlabel() for axes in front_figure(frame).axes] == ["trial, less is better"]


def test_lines_and_pairs_of_many_trials_are_few(tmp_path: Path) -> None:
    with generated(tmp_path, 400) as store:
        evidence = load_evidence(store)
    lines = parallel(evidence)
    assert len(lines) <= 240 and lines["quantile"].min() == 0.0
    assert lines.filter(like="knob.").stack().between(0.0, 1.0).all()
    cells = pair(evidence, "tile", "block")
    assert cells["standing"].max() == 1.0
    assert cells.loc[cells["standing"].idxmax(), "best"] == evidence.succeeded["value"].min()


def test_readings_lie_about_their_trials_median(tmp_path: Path) -> None:
    with generated(tmp_path) as store:
        frame = steadiness(store, load_evidence(store))
    assert frame["at"].is_monotonic_increasing and frame["at"].iloc[0] == 0.0
    assert 0.0 < frame.attrs["noise"] < 0.1
    assert {"cpu_stall", "frequency_mhz"} <= set(frame.columns)


def test_a_wait_is_a_share_of_each_reading_also_of_those_that_had_none(tmp_path: Path) -> None:
    """One reading of thousands that waited for a disk had made up the median of all."""
    written = Written(tmp_path)
    trial, _ = written.begin({"tile": 1})
    contexts = [
        {"wall": 0.1, "cpu": 0.1, "own_wait": 0.05, "io_stall": 0.05},
        {"wall": 0.1, "cpu": 0.1, "own_wait": 8.0},  # before the reading itself
        {"wall": 0.1, "cpu": 0.1},
        {"wall": 0.1, "cpu": 0.01},  # it waited for a program, of which nobody knows that
        {},
    ]
    readings = tuple(Reading("time", 1.0, float(at), "", each) for at, each in enumerate(contexts))
    written.store.finish(trial, Outcome(Status.OK, {"time": Estimate(1.0, 1.0, 1.0, 5)}, readings))
    frame = steadiness(written.store, load_evidence(written.store))
    assert frame["own_wait"].tolist()[:3] == [0.5, 1.0, 0.0] and frame["own_wait"].isna().sum() == 2
    assert frame["io_stall"].tolist()[:4] == [0.5, 0.0, 0.0, 0.0]
    assert "memory_stall" not in frame and "steal" not in frame


def test_of_trials_with_many_readings_each_fewer_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 400 trials with 20,000 readings each all eight million were in memory at once."""
    fetched: list[int] = []
    readings_in = StoreReader.readings_in

    def watched(self: StoreReader, trial_ids: Sequence[int]) -> list[tuple[int, tuple[Reading, ...]]]:
        found = readings_in(self, trial_ids)
        fetched.append(sum(len(own) for _, own in found))
        return found

    monkeypatch.setattr(StoreReader, "readings_in", watched)
    with generated(tmp_path, 200) as store:
        evidence = load_evidence(store)
        whole = steadiness(store, evidence)
        monkeypatch.setattr(module, "MOST_READINGS", 100)
        part = steadiness(store, evidence)
    assert fetched[1] < fetched[0] / 4 and part.attrs["trials"] < whole.attrs["trials"]
    searched = part[part["purpose"] == "search"]
    assert searched["trial"].nunique() >= module.FEWEST_TRIALS
    assert searched["trial"].max() > 150, "evenly over the study"


def test_what_a_gpu_says_beside_its_readings_is_shown(tmp_path: Path) -> None:
    context = Conditions(sm_clock_mhz=1410, temperature_c=55, power_watts=300.0).numbers()
    written = Written(tmp_path)
    trial, _ = written.begin({"tile": 1})
    reading = Reading("time", 1.0, 0.0, "", {"wall": 0.4, **context})
    written.store.finish(trial, Outcome(Status.OK, {"time": Estimate(1.0, 1.0, 1.0, 1)}, (reading,)))
    frame = steadiness(written.store, load_evidence(written.store))
    assert set(context) <= set(frame.columns)


def test_from_the_winner_back(tmp_path: Path) -> None:
    with generated(tmp_path) as store:
        evidence = load_evidence(store)
        number = winner_number(evidence)
        readings = readings_behind(store, evidence, number)
        assert set(readings["purpose"]) == {"search", "final"}
        assert len(readings) == 5 + 12
        [proposal] = proposals_behind(store, evidence, number).to_dict("records")
        assert proposal["trial"] == number and "random" in proposal["because"]


def test_back_from_the_answer_for_a_workload_that_was_held_out(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.trial({"tile": 1}, 2.0, purpose="final", readings=[2.0, 2.0])
    written.trial({"tile": 4}, 1.0, purpose="final", readings=[1.0, 1.0])
    written.verdict({"tile": 4})
    evidence = load_evidence(written.store)
    assert winner_number(evidence) == 1
    assert readings_behind(written.store, evidence, 1)["value"].tolist() == [1.0, 1.0]
    assert len(proposals_behind(written.store, evidence, 1)) == 1
    assert known_then(written.store, evidence, 1).empty


def test_of_trials_that_tie_the_answer_rests_on_the_first(tmp_path: Path) -> None:
    written, draw = Written(tmp_path), random.Random(1)
    for tile in range(300):
        written.trial({"tile": tile}, draw.choice([2.0, 1.0, 3.0]))
    evidence = load_evidence(written.store)
    first = int(evidence.trials.loc[evidence.trials["value"] == 1.0, "trial"].iloc[0])
    assert winner_number(evidence) == load_answer(written.store, evidence.study).trial == first


def test_back_from_a_study_in_which_nothing_succeeded(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.trial({"tile": 1}, status=Status.CRASHED)
    evidence = load_evidence(written.store)
    assert winner_number(evidence) == 0
    readings = readings_behind(written.store, evidence, 0)
    assert readings.empty and readings.groupby(["purpose", "metric"])["value"].describe().empty
