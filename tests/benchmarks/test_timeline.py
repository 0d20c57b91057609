"""How busy the device was, and the drawing of it, from what trials keep."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from autotune.measure.facts import TIMELINE
from autotune.space.configuration import Configuration
from autotune.status import Status
from autotune.store.records import TrialRecord
from benchmarks.timeline import Spans, busy, spans_of, timeline_svg


def trial(number: int, **stages: list[float]) -> TrialRecord:
    facts = {TIMELINE: stages} if stages else {}
    return TrialRecord(number, 1, number, 1, 1, "search", Configuration({}), "", Status.OK, facts=facts)


TRIALS = [
    trial(0, prepare=[100.0, 102.0, 0], measure=[102.0, 106.0, 0]),
    trial(1, prepare=[100.0, 103.0, 1], measure=[106.0, 110.0, 0]),
    trial(2),
]


def test_time_counts_from_the_first_beginning() -> None:
    spans = spans_of(TRIALS)
    assert spans.wall == 10.0 and len(spans.all) == 4
    assert [(s.trial, s.began, s.ended) for s in spans.of("measure")] == [(0, 2.0, 6.0), (1, 6.0, 10.0)]


def test_busy_is_the_mean_of_the_lanes() -> None:
    spans = spans_of(TRIALS)
    assert busy(spans) == pytest.approx(0.8) and busy(spans, "prepare") == pytest.approx(0.25)
    assert busy(Spans(())) == 0.0


@pytest.mark.parametrize("trials", [TRIALS, []])
def test_the_drawing_is_well_formed(trials: list[TrialRecord]) -> None:
    root = ET.fromstring(timeline_svg(spans_of(trials)))
    titles = [title.text or "" for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == (4 if trials else 0)
    assert not trials or "trial 0: measure 4.00 s" in titles
