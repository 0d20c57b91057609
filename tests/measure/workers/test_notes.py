"""What is left of a trial whose process died."""

from __future__ import annotations

from contextlib import closing

from autotune.measure.outcome import Reading
from autotune.measure.workers.notes import SharedNotes


def test_all_that_was_noted_is_read_and_nothing_of_an_earlier_request() -> None:
    with closing(SharedNotes(SharedNotes.make())) as notes:
        notes.facts({"of": "an earlier request"})
        notes.clear()
        notes.phase("check")
        notes.facts({"path": "wide", "kernel": {"tile": 8}})
        notes.phase("measure")
        notes.reading(Reading("time", 1.0))
        notes.facts({"path": "narrow"})
        left = notes.read(float("inf"))
    assert (left.phase, list(left.phases)) == ("measure", ["check", "measure"])
    assert left.readings == (Reading("time", 1.0),)
    assert left.facts == {"path": "narrow", "kernel": {"tile": 8}}
