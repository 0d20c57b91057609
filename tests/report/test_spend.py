"""Each second of a session is counted once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.cli.spend import say
from autotune.measure.facts import TIMELINE
from autotune.report.evidence import load_evidence
from autotune.report.spend import covered, merged, spend
from autotune.session.searches import close_dead
from tests.report.studies import Written, generated

BEGAN = 1_700_000_000.0


def at(prepare: tuple[float, float], measure: tuple[float, float], /, **phases: float) -> dict[str, object]:
    """Facts and phases of a trial, by seconds after the session began."""
    spans = {name: [BEGAN + a, BEGAN + b, 0] for name, (a, b) in (("prepare", prepare), ("measure", measure))}
    return {"facts": {TIMELINE: spans}, "phases": phases}


def test_gaps_have_causes(tmp_path: Path) -> None:
    written = Written(tmp_path)  # proposals are written at 0, 10 and 20 s
    written.trial({"tile": 1}, 1.0, **at((0, 2), (2, 6), prepare=2.0, check=1.0, measure=2.0))
    written.trial({"tile": 2}, 1.0, **at((10, 11), (12, 15), prepare=1.0, measure=3.0))
    written.trial({"tile": 4}, 1.0, **at((16, 18), (21, 25), prepare=2.0, measure=4.0))
    written.store.close_session(written.session, "done")
    frame = spend(load_evidence(written.store))
    seconds = frame.set_index("part")["seconds"].to_dict()
    assert seconds == pytest.approx(
        {
            "starting": 2.0,
            "check": 1.0,
            "measure": 9.0,
            "handling": 1.0,
            "waiting for prepare": 1.0,
            "tuner": 4.0 + 5.0,
            "idle": 1.0 + 1.0,
            "ending": 5.0,
            "prepare": 5.0,
        }
    )
    on_device = frame[frame["where"] == "device"]
    assert on_device["seconds"].sum() == pytest.approx(frame.attrs["wall"]) == 30.0
    assert frame["share"].tolist() == pytest.approx((frame["seconds"] / 30.0).tolist())
    assert frame.attrs["busy"] == pytest.approx((1.0 + 9.0 + 1.0) / 30.0)


def test_what_passed_before_searches_began_comes_on_top(tmp_path: Path) -> None:
    written = Written(tmp_path)
    for seconds in (3.0, 4.0):
        written.session = written.store.open_session(written.study.id, {"starting": seconds}, "", 1, "host0")
        written.trial({"tile": int(seconds)}, 1.0)
    frame = spend(load_evidence(written.store))
    [loading] = frame[frame["part"] == "loading"].itertuples()
    assert (loading.seconds, loading.where) == (7.0, "before")
    on_device = frame[frame["where"] == "device"]
    assert on_device["seconds"].sum() == pytest.approx(frame.attrs["wall"])
    assert say(frame).splitlines()[1].split()[:4] == ["loading", "7", "s", "before"]


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20))), st.integers(0, 25))
def test_a_second_in_which_several_workers_prepared_is_one_second(
    pairs: list[tuple[int, int]], until: int
) -> None:
    spans = [(float(min(pair)), float(max(pair))) for pair in pairs]
    busy = {second for began, ended in spans for second in range(int(began), int(ended)) if second < until}
    assert covered(merged(spans), np.array([float(until)])).tolist() == [len(busy)]


def test_a_session_that_says_no_times_is_unaccounted_but_for_its_phases(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.trial({"tile": 1}, 1.0, phases={"measure": 4.0})
    written.store.close_session(written.session, "done")
    seconds = spend(load_evidence(written.store)).set_index("part")["seconds"].to_dict()
    assert seconds == pytest.approx({"measure": 4.0, "unaccounted": 6.0})


def test_a_study_without_sessions_or_trials(tmp_path: Path) -> None:
    assert spend(load_evidence(Written(tmp_path).store))["seconds"].sum() == 0.0


def test_a_long_one_adds_up(tmp_path: Path) -> None:
    with generated(tmp_path, 300) as store:
        frame = spend(load_evidence(store))
    assert frame[frame["where"] == "device"]["seconds"].sum() == pytest.approx(frame.attrs["wall"])
    assert (frame["seconds"] >= 0).all()


def test_a_check_that_came_ahead_took_no_time_of_the_device(tmp_path: Path) -> None:
    written = Written(tmp_path)
    spans = {
        "prepare": [BEGAN, BEGAN + 1, 0],
        "check": [BEGAN + 1, BEGAN + 4, 0],
        "measure": [BEGAN + 4, BEGAN + 4.5, 0],
    }
    written.trial(
        {"tile": 1}, 1.0, facts={TIMELINE: spans}, phases={"prepare": 1.0, "check": 3.0, "measure": 0.5}
    )
    written.store.close_session(written.session, "done")
    seconds = spend(load_evidence(written.store)).set_index("part")["seconds"].to_dict()
    assert seconds == pytest.approx(
        {"starting": 4.0, "measure": 0.5, "ending": 5.5, "prepare": 1.0, "check ahead": 3.0}
    )


def test_a_finale_is_where_something_was_measured_again(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.trial({"tile": 1}, 1.0, **at((0, 2), (2, 6), prepare=2.0, measure=4.0))
    written.trial({"tile": 1}, 1.0, purpose="default")
    written.store.close_session(written.session, "done")
    seconds = spend(load_evidence(written.store)).set_index("part")["seconds"].to_dict()
    assert seconds["finale"] == pytest.approx(14.0) and "ending" not in seconds


def test_a_killed_search_lasted_to_its_last_trial_and_not_until_it_was_resumed(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.search_that_died()
    written.trial({"tile": 1}, 1.0, **at((0, 2), (2, 10), prepare=2.0, measure=8.0))
    written.clock.advance(500.0)
    close_dead(written.store, written.study.id)
    frame = spend(load_evidence(written.store))
    seconds = frame.set_index("part")["seconds"].to_dict()
    assert "finale" not in seconds and "ending" not in seconds
    assert frame.attrs["wall"] < 500.0


def test_a_replay_counts_no_time_of_its_recording(tmp_path: Path) -> None:
    written = Written(tmp_path, replayed=True)
    written.trial({"tile": 1}, 1.0, phases={"prepare": 2.0, "check": 1.0, "measure": 3.0})
    written.store.close_session(written.session, "done")
    frame = spend(load_evidence(written.store))
    assert frame.set_index("part")["seconds"].to_dict() == {"unaccounted": 10.0}
    assert frame.attrs["busy"] == 0.0 and frame.attrs["replayed"]
