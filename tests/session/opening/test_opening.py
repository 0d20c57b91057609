"""Studies that several searches open at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from autotune.session.api import capture_environment
from autotune.session.opening.opening import next_segment, open_study
from autotune.space.reading.reader import parse_spec
from autotune.store.records import SegmentRecord
from autotune.store.store import Store
from tests.session.bowl import spec


class Meanwhile(Store):
    """Does something once, just after the latest segment was looked up, as another process may."""

    then: Callable[[], object] | None = None

    def latest_segment(self, study_id: int) -> SegmentRecord | None:
        found = super().latest_segment(study_id)
        then, self.then = self.then, None
        if then is not None:
            then()
        return found


def test_searches_that_begin_or_find_a_change_at_once_have_one_segment(tmp_path: Path) -> None:
    """With two of the same source, the report said that the code had changed during the study."""
    given, file = spec(tmp_path), tmp_path / "study.db"
    environment = capture_environment(given)
    with Meanwhile.open(file) as store, Store.open(file) as other:
        assert isinstance(store, Meanwhile)
        store.then = lambda: open_study(given, other, environment)
        opened = open_study(given, store, environment)
        assert opened.segment.number == 0 and opened.notes == ()
        assert opened.segment == open_study(given, other, environment).segment

        (tmp_path / "objective.py").write_text("def unused(x, y):\n    return 2.0\n")
        store.then = lambda: next_segment(given, other, opened)
        mine = next_segment(given, store, opened)
        assert mine.segment.number == 1 and "source changed since segment 0" in mine.notes[0]
        assert mine.segment == other.latest_segment(opened.record.id)


def test_a_file_that_the_command_itself_writes_is_named_with_a_way_out(tmp_path: Path) -> None:
    """Each trial of such a search begins a segment, and each search a new study."""
    (tmp_path / "bench.sh").write_text("true\n")
    out = tmp_path / "out.csv"
    text = "autotune: 1\nname: writes\ncommand: [sh, bench.sh, '{x}', out.csv]\nknobs: {x: {range: [1, 9]}}\n"
    given = parse_spec(text, tmp_path / "space.yaml")
    with Store.open(str(tmp_path / "study.db")) as store:
        out.write_text("1\n")
        opened = open_study(given, store, capture_environment(given))
        notes = []
        for written in ("2\n", "3\n"):
            out.write_text(written)
            opened = next_segment(given, store, opened)
            notes.append(opened.notes)
    [[first], [second, way_out]] = notes
    assert "segment 0 (out.csv)" in first and "segment 1 (out.csv)" in second and "--output" in way_out
