"""Knobs that matter are told from those that do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autotune.cli.importance import say
from autotune.report.evidence import load_evidence
from autotune.report.importance import importance, interactions, say_learned_from
from autotune.status import Status
from tests.report.studies import Written

KNOBS = {
    "size": {"range": [1, 64], "scale": "log2", "default": 1},
    "mode": {"choices": ["a", "b", "c"], "default": "a"},
    "idle": {"range": [0.0, 1.0], "scale": "linear", "default": 0.5},
    "order": {"permutation": ["i", "j", "k"], "default": ["i", "j", "k"]},
}


def searched(folder: Path, count: int, *, together: bool = False) -> Written:
    written = Written(folder, KNOBS)
    rng = np.random.default_rng(3)
    for number in range(count):
        size, mode = int(rng.integers(1, 65)), str(rng.choice(["a", "b", "c"]))
        configuration = {
            "size": size,
            "mode": mode,
            "idle": float(rng.random()),
            "order": tuple(rng.permutation(list("ijk")).tolist()),
        }
        slow = abs(np.log2(size) - 3) + (2.0 if mode == "b" else 0.0)
        if together:
            slow = 3.0 if (size > 16) == (mode == "b") else 0.0
        failed = number % 10 == 9
        written.trial(
            configuration, None if failed else float(np.exp(slow)), Status.CRASHED if failed else Status.OK
        )
    return written


def test_the_knobs_that_matter_come_first_and_an_idle_one_is_near_nothing(tmp_path: Path) -> None:
    written = searched(tmp_path, 120)
    frame = importance(load_evidence(written.store))
    assert set(frame["knob"][:2]) == {"size", "mode"}
    idle = frame.set_index("knob").loc["idle"]
    assert idle["low"] < 0.05 and idle["importance"] < 0.05
    assert frame.attrs["left_out"] == 12
    assert frame.attrs["explained"] > 0.5
    # Two knobs add to the logarithm of the time, each its own share of the variance.
    known = [trial.configuration for trial in written.store.trials(written.study.id, status=Status.OK)]
    adds = {
        "size": np.var([abs(np.log2(float(str(one["size"]))) - 3) for one in known]),
        "mode": np.var([2.0 * (one["mode"] == "b") for one in known]),
    }
    shares = frame.set_index("knob")["importance"]
    for knob, variance in adds.items():
        assert shares[knob] == pytest.approx(variance / sum(adds.values()), abs=0.15)
    assert frame["share"].sum() == pytest.approx(1.0)
    assert ((frame["low"] <= frame["importance"]) & (frame["importance"] <= frame["high"])).all()


def test_it_is_said_that_the_variance_is_of_a_logarithm(tmp_path: Path) -> None:
    """The numbers of a study of a sum of squares could not be had from its values."""
    written = searched(tmp_path, 60)
    frame = importance(load_evidence(written.store))
    study = written.store.study()
    assert "share of the variance of the logarithm of time in" in say(study, "time", frame, frame.head(0))
    below = Written(tmp_path / "below", KNOBS)
    for number in range(24):
        configuration = {"size": 1 + number, "mode": "a", "idle": 0.5, "order": ("i", "j", "k")}
        below.trial(configuration, number - 3.0)
    frame = importance(load_evidence(below.store))
    assert "share of the variance of time in" in say(below.store.study(), "time", frame, frame.head(0))


def test_of_a_long_study_what_is_drawn_stands_for_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence = load_evidence(searched(tmp_path, 600).store)
    whole = importance(evidence).set_index("knob")["importance"]
    monkeypatch.setattr("autotune.report.importance.MOST_TRIALS", 250)
    drawn = importance(evidence).set_index("knob")["importance"]
    assert (drawn - whole).abs().max() < 0.1


def test_what_two_knobs_do_only_together_is_found(tmp_path: Path) -> None:
    evidence = load_evidence(searched(tmp_path, 150, together=True).store)
    pairs = interactions(evidence)
    assert {pairs["knob"].iloc[0], pairs["other"].iloc[0]} == {"size", "mode"}
    assert pairs["strength"].iloc[0] > 0.2
    assert interactions(load_evidence(searched(tmp_path / "each", 150).store))["strength"].max() < 0.05


def test_the_same_seed_gives_the_same_answer(tmp_path: Path) -> None:
    evidence = load_evidence(searched(tmp_path, 40).store)
    assert importance(evidence, 1).equals(importance(evidence, 1))


def test_every_seed_of_a_search_is_one_of_a_forest_too(tmp_path: Path) -> None:
    """scikit-learn takes 32 bits: a larger seed had ended in its traceback."""
    evidence = load_evidence(searched(tmp_path, 25).store)
    assert set(importance(evidence, 2**64)["knob"]) == set(interactions(evidence, seed=2**32)["knob"]) | set(
        interactions(evidence, seed=2**32)["other"]
    )


def test_too_few_trials_are_said_to_be_too_few(tmp_path: Path) -> None:
    frame = importance(load_evidence(searched(tmp_path, 12).store))
    assert frame.empty
    assert "and 20 are needed" in frame.attrs["remark"]
    assert interactions(load_evidence(tmp_path / "written.db")).empty


def test_a_frame_without_an_answer_says_as_much_of_itself_as_any(tmp_path: Path) -> None:
    evidence = [load_evidence(searched(tmp_path / str(count), count).store) for count in (12, 40)]
    for made in (importance, interactions):
        empty, full = (made(one) for one in evidence)
        assert empty.empty and not full.empty
        assert list(empty.columns) == list(full.columns) and empty.attrs.keys() == full.attrs.keys()
    assert say_learned_from(importance(evidence[0])) == "11 trials, 1 without a number left out"


def test_one_value_throughout_is_said(tmp_path: Path) -> None:
    written = Written(tmp_path, KNOBS)
    for size in range(1, 31):
        written.trial({"size": size}, 1.0)
    assert "the same value" in importance(load_evidence(written.store)).attrs["remark"]


def test_where_nothing_succeeded_nothing_is_said_to_matter(tmp_path: Path) -> None:
    written = Written(tmp_path, KNOBS)
    written.trial({"size": 1, "order": ("i", "j", "k")}, None, Status.CRASHED)
    assert "and 20 are needed" in importance(load_evidence(written.store)).attrs["remark"]
