"""What a page says of each kind of study: how far it has come, and what came of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from autotune.report.pages.study_page import study_page
from autotune.status import Status
from autotune.store.store import Store
from tests.report.pages.shown import NOW, both, text_of
from tests.report.studies import KNOBS, Written
from tests.store.build import new_study

GOALS = [
    {"name": "time", "goal": "minimize", "unit": "s", "at_most": None, "at_least": None},
    {"name": "rate", "goal": "maximize", "unit": "", "at_most": None, "at_least": None},
]


def empty(folder: Path) -> Written:
    return Written(folder)


def only_failures(folder: Path) -> Written:
    written = Written(folder)
    for tile in (1, 2, 4):
        written.trial(
            {"tile": tile}, status=Status.CRASHED, message="it crashed", stderr="segmentation fault"
        )
    return written


def one_trial(folder: Path) -> Written:
    written = Written(folder)
    written.trial({"tile": 1}, 2.0, readings=[2.0, 2.1], reason={"kind": "default"})
    return written


def no_default(folder: Path) -> Written:
    written = Written(folder)
    for tile in (2, 4):
        written.trial({"tile": tile}, 1.0 / tile)
    written.trial({"tile": 4}, 0.25, purpose="final", reason={"kind": "re-measurement", "label": "trial 1"})
    written.verdict(
        {"tile": 4}, speedup=None, remark="the default is not feasible: there is nothing to compare with"
    )
    return written


def nobody_stood(folder: Path) -> Written:
    written = one_trial(folder)
    written.trial({"tile": 2}, 1.0)
    again = {"kind": "re-measurement", "label": "trial 1"}
    written.trial({"tile": 2}, status=Status.CRASHED, message="no room", purpose="final", reason=again)
    written.no_verdict({"trial 1": ["crashed", "no room"]})
    return written


def no_better(folder: Path) -> Written:
    written = one_trial(folder)
    written.trial({"tile": 2}, 2.0)
    written.trial(
        {"tile": 1}, 2.0, purpose="default", reason={"kind": "re-measurement", "label": "the default"}
    )
    written.verdict({"tile": 1}, is_default=True, label="the default")
    return written


def two_goals(folder: Path) -> Written:
    written = Written(folder, metrics=GOALS)
    for tile in (1, 2, 4, 8):
        written.trial({"tile": tile}, metrics={"time": 1.0 / tile, "rate": 10.0 - tile})
    return written


def replayed(folder: Path) -> Written:
    written = Written(folder, replayed=True)
    for tile in (1, 2):
        written.trial({"tile": tile}, 1.0 / tile)
    return written


def running(folder: Path) -> Written:
    written = one_trial(folder)
    written.begin({"tile": 16})
    return written


def begun(folder: Path) -> Written:
    """A search by brackets has no finished trial for a long time."""
    written = Written(folder)
    written.begin({"tile": 16})
    return written


def only_default(folder: Path) -> Written:
    written = one_trial(folder)
    written.trial({"tile": 2}, status=Status.CRASHED, message="no room")
    return written


def others_pruned(folder: Path) -> Written:
    written = one_trial(folder)
    written.trial({"tile": 2}, 9.0, Status.PRUNED, message="worse than the best so far beyond doubt")
    return written


def others_pruned_or_failed(folder: Path) -> Written:
    written = others_pruned(folder)
    written.trial({"tile": 4}, status=Status.CRASHED, message="no room")
    return written


def stopped_early(folder: Path) -> Written:
    early = {"early_stopping": {"policy": "asha", "max": 9}}
    document = {"space": {"knobs": dict(KNOBS)}, "source": "/somewhere/space.yaml", "search": early}
    written = Written(folder, document=document)
    for tile, step in ((1, 9), (2, 3), (4, 9), (8, 1)):
        status = Status.OK if step == 9 else Status.PRUNED
        curve = [[at, 1.0 / at] for at in (1, 3, 9) if at <= step]
        written.trial({"tile": tile}, 1.0 / step, status, facts={"step": step, "steps": 9, "curve": curve})
    return written


def endless(folder: Path) -> Written:
    written = Written(folder)
    for tile in (1, 2, 4):
        written.trial(
            {"tile": tile}, float("nan") if tile == 1 else 1e300 * tile, readings=[1e300, float("inf")]
        )
    return written


def outlier(folder: Path) -> Written:
    """On a logarithmic axis nine tenths of it are one value, which is no range."""
    written = Written(folder)
    for n in range(12):
        written.trial({"tile": 2**n}, 50.0 if n == 4 else 1.0)
    return written


def zeros(folder: Path) -> Written:
    written = Written(folder)
    for tile in (1, 2, 4, 8):
        written.trial({"tile": tile}, 0.0, readings=[0.0, 0.0, 0.0])
    return written


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (empty, "Nothing tried"),
        (only_failures, "Nothing succeeded"),
        (begun, "Nothing finished yet 1 trial begun"),
        (one_trial, "no better than the default The default stays nothing else was tried"),
        (one_trial, "2 readings of 1 trial are shown."),
        (one_trial, "the 1 outcome of this study, since only 0 were drawn at random"),
        (only_default, "no better than the default The default stays nothing else succeeded"),
        (others_pruned, "no better than the default The default stays all others were pruned"),
        (others_pruned_or_failed, "The default stays all others failed or were pruned"),
        (no_default, "the default is not feasible"),
        (no_better, "The default stays"),
        (two_goals, "beaten by no other in time and rate"),
        (replayed, "REPLAYED from a recording"),
        (stopped_early, "not measured again"),
        (running, "A search is running, with 1 trial in flight."),
        (endless, "4e+300 s"),
        (zeros, "every trial's median is 0"),
        (zeros, "expected to need 1 try to find one as good"),
        (outlier, "best so far time 1 s"),
    ],
)
def test_each_kind_of_study_has_its_sentence(
    tmp_path: Path, make: Callable[[Path], Written], said: str
) -> None:
    html, short = both(make(tmp_path).store)
    assert said in text_of(html)
    assert short.startswith("## gemm")


def test_who_failed_in_the_finale_is_named_and_not_said_to_be_still_to_measure(tmp_path: Path) -> None:
    html, short = both(nobody_stood(tmp_path).store)
    text = text_of(html)
    assert "not measured again" not in text and "No trial failed" not in text
    said = "no finalist could be measured again: trial 1 ended as crashed (no room)"
    assert said in text and said in short
    assert "No trial of the search failed. Failed when measured again" in text
    assert re.search(r"trial 1 crashed 2 no room", text)


def test_a_search_whose_process_is_gone_is_not_said_to_be_at_it(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.trial({"tile": 1}, 1.0)
    written.search_that_died()
    written.begin({"tile": 2})
    text = text_of(both(written.store)[0])
    assert "A search is running" not in text
    assert "The search was interrupted and its process is gone; not finished: 1 trial." in text


def test_where_only_the_default_succeeded_no_finale_is_missed(tmp_path: Path) -> None:
    html, short = both(only_default(tmp_path).store)
    assert "not measured again" not in text_of(html)
    assert "not measured again" not in short and "best so far" not in short
    (tmp_path / "running").mkdir()
    written = only_default(tmp_path / "running")
    written.begin({"tile": 4})
    assert "best so far" in both(written.store)[1]


def test_a_replay_shows_no_time_of_a_device(tmp_path: Path) -> None:
    text = text_of(both(replayed(tmp_path).store)[0])
    assert "Where the time went" not in text and "How steady" not in text and "autotune verify" not in text
    with Store.open(tmp_path / "named.db") as store:
        environment = {"machine": {"processor": {"name": "A processor"}}}
        store.load((), {"environment0": environment}, ())
        for name, there in (("measured", True), ("replayed", False)):
            study = store.create_study(new_study(name, replayed=name == "replayed"))
            assert ("machine" in dict(study_page(store, study.id, NOW).facts)) == there
