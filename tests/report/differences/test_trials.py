"""Two trials side by side: what they are compared by, and what is said of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from autotune.measure.facts import STEP
from autotune.measure.outcome import Estimate, Outcome, Reading
from autotune.report.differences.trials import diff_trials
from autotune.session.opening.frozen import SOURCE
from autotune.status import Status
from autotune.store.records import TrialRecord
from tests.report.studies import Written


def finalist(own: Written, tile: int, values: Sequence[tuple[int, int, float]]) -> TrialRecord:
    """One of a finale, by its run of fresh processes (0: none), its round there, and what was read."""
    purpose = "default" if tile == 1 else "final"
    trial, number = own.begin({"tile": tile, "layout": "row"}, purpose=purpose)
    readings = tuple(Reading("time", v, 0.0, "", {"process": p, "round": r}) for p, r, v in values)
    own.store.finish(trial, Outcome(Status.OK, {"time": Estimate(1.0, 0.9, 1.1, 3, 0.01)}, readings))
    [record] = own.store.numbered(own.study.id, [number])
    return record


@pytest.mark.parametrize(
    ("runs", "said"), [(0, "10 rounds"), (3, "19 rounds"), (4, "4 runs of fresh processes")]
)
def test_it_is_said_how_many_readings_of_what_an_answer_rests_on(
    tmp_path: Path, runs: int, said: str
) -> None:
    """From four runs of fresh processes on, these alone count, and each once."""
    own = Written(tmp_path)
    rounds = [(0, number) for number in range(10)]
    rounds += [(run, number) for run in range(1, runs + 1) for number in range(3)]
    one = finalist(own, 1, [(run, number, 3.0 if run else 2.0) for run, number in rounds])
    other = finalist(own, 4, [(run, number, 1.0) for run, number in rounds])
    [contrast] = diff_trials(own.store, one, other).contrasts
    assert f"read side by side in {said} of session" in contrast.how
    assert contrast.answer == "better" and contrast.ratio is not None
    assert (contrast.ratio[0] == pytest.approx(3.0)) is (runs == 4)


def test_what_is_read_side_by_side_twice_decides_and_once_does_not(tmp_path: Path) -> None:
    own = Written(tmp_path)
    rounds = [(0, number, 2.0) for number in range(2)]
    one = finalist(own, 1, rounds)
    often, once = finalist(own, 4, rounds), finalist(own, 8, rounds[:1])
    assert "side by side in 2 rounds" in diff_trials(own.store, one, often).contrasts[0].how
    assert "of separate runs" in diff_trials(own.store, one, once).contrasts[0].how


def test_one_and_true_are_two_values_of_a_knob(tmp_path: Path) -> None:
    own = Written(tmp_path, {"level": {"choices": [1, True], "default": 1}})
    numbers = [own.trial({"level": level}, 1.0) for level in (1, True)]
    one, other = own.store.numbered(own.study.id, numbers)
    assert diff_trials(own.store, one, other).parts["configuration"] == {"level": (1, True)}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"objective": "python other.py:Other"}, "they are of different objectives"),
        ({"workload": {"m": 4}}, "they had different workloads"),
        ({"replayed": True}, "one was measured, the other comes from a recording"),
    ],
)
def test_trials_of_studies_that_are_not_alike_are_not_compared(
    tmp_path: Path, changed: dict[str, object], why: str
) -> None:
    own, other = Written(tmp_path), Written(tmp_path, key="key1", **changed)
    for study in (own, other):
        study.trial({"tile": 1, "layout": "row"}, 1.0)
    found = diff_trials(own.store, *(own.store.trials(study.id)[0] for study in (own.study, other.study)))
    [contrast] = found.contrasts
    assert (contrast.answer, contrast.how, found.remarks) == ("not comparable", why, [why])
    assert contrast.one == contrast.other == pytest.approx((1.0, 0.9, 1.1))
    assert not found.alike  # it was said that "they were made in the same way"
    again = Written(tmp_path, key="key2")
    again.trial({"tile": 1, "layout": "row"}, 1.0)
    found = diff_trials(own.store, own.store.trials(1)[0], own.store.trials(again.study.id)[0])
    assert not found.remarks and found.contrasts[0].answer == "no difference shown"


@pytest.mark.parametrize(
    ("status", "facts", "why"),
    [
        (Status.WRONG, {}, "trial 1 ended as wrong"),  # what it measured stands in its metrics
        (Status.PRUNED, {STEP: 3}, "trial 1 was stopped after step 3"),
        (Status.PRUNED, {}, ""),  # it was read less often, no more
    ],
)
def test_a_trial_that_has_no_final_value_is_not_compared(
    tmp_path: Path, status: Status, facts: dict[str, object], why: str
) -> None:
    own = Written(tmp_path)
    own.trial({"tile": 1, "layout": "row"}, 1.0)
    own.trial({"tile": 2, "layout": "row"}, 1.0, status, facts=facts, message=" why \n")
    found = diff_trials(own.store, *own.store.trials(own.study.id))
    [contrast] = found.contrasts
    assert contrast.how == why if why else contrast.answer == "no difference shown"
    assert found.parts["outcome"] == {"status": ("ok", str(status)), "why": (None, "why")}


def test_code_differs_by_files_and_how_many_of_their_lines(tmp_path: Path) -> None:
    own = Written(tmp_path)
    files = [
        {"same.c": b"1", "changed.c": b"a\nb\nc\n", "gone.c": b"1\n2\n"},
        {"same.c": b"1", "changed.c": b"a\nB\nc\nd\n", "new.c": b"1\n"},
    ]
    for number, code in enumerate(files):
        artifacts = {f"{SOURCE}{name}": text for name, text in code.items()} | {"diff": b"%d" % number}
        document = {"source_hash": f"s{number}", "repository": {"head": {"commit": "c"}}}
        own.segment = own.store.open_segment(own.study.id, document, artifacts, "edited").id
        own.trial({"tile": 2**number, "layout": "row"}, 1.0)
    one, other = own.store.trials(own.study.id)
    assert diff_trials(own.store, one, other).parts["code"] == {
        "source": ("s0", "s1"),
        "changed.c": ("3 lines", "4 lines, +2 -1"),
        "gone.c": ("2 lines", None),
        "new.c": (None, "1 line"),
    }
    assert diff_trials(own.store, one, one).parts["code"] == {}
