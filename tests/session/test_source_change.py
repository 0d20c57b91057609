"""The objective's file is edited while its search runs: said loudly, marked, one code a trial."""

from __future__ import annotations

from pathlib import Path

import pytest

import autotune
from autotune.errors import InputError
from autotune.measure.outcome import Outcome
from autotune.session.finale.finale import EDITED
from autotune.session.progress import Best, Progress
from autotune.space.configuration import Configuration
from autotune.status import Status
from autotune.store.store import Store
from tests.recordings import record
from tests.session.heard import Heard

SPACE = """
autotune: 1
name: edited
objective: objective.py:measure
knobs: {a: {range: [0, 99], default: 0}}
search: {strategy: random}
measure: {min_readings: 2, max_readings: 2, finalists: 0}
"""


class Editor(Progress):
    """Edits the objective when the fourth trial has finished, as a user in another window does."""

    after = 4

    def __init__(self, file: Path) -> None:
        self.file = file
        self.count = 0
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def finished(
        self, number: int, configuration: Configuration, outcome: Outcome, best: Best | None
    ) -> None:
        self.count += 1
        if self.count == self.after:
            self.edit()

    def edit(self) -> None:
        self.file.write_text("def measure(a):\n    return 2.0\n")


def test_a_new_segment_begins_and_no_trial_mixes_codes(tmp_path: Path) -> None:
    file = tmp_path / "objective.py"
    file.write_text("def measure(a):\n    return 1.0\n")
    (tmp_path / "space.yaml").write_text(SPACE)
    editor = Editor(file)
    result = autotune.search(tmp_path / "space.yaml", trials=12, store=tmp_path / "study.db", progress=editor)
    assert any("source changed since segment 0 (objective.py)" in note for note in editor.notes)
    by_segment: dict[int, set[float]] = {}
    for trial in result.trials:
        by_segment.setdefault(trial.segment_id, set()).add(trial.metrics["time"].value)
    assert len(result.trials) == 12
    assert sorted(map(sorted, by_segment.values())) == [[1.0], [2.0]]
    again = Editor(file)
    gone_on = autotune.search(tmp_path / "space.yaml", trials=12, store=tmp_path / "study.db", progress=again)
    assert (gone_on.study.id, again.count, again.notes) == (result.study.id, 0, []), "all was measured again"
    file.write_text("def measure(a):\n    return 1.0\n")
    reverted = autotune.search(tmp_path / "space.yaml", trials=2, store=tmp_path / "study.db", progress=again)
    assert reverted.study.id != result.study.id and "changed (objective.py)" in again.notes[0]


@pytest.mark.parametrize("broken", ["def measure(a: retur", ""])
def test_once_a_broken_edit_is_undone_the_same_study_goes_on(tmp_path: Path, broken: str) -> None:
    """A new one had begun, and all was measured again: the study's key was that of the broken file."""
    file, store = tmp_path / "objective.py", tmp_path / "study.db"
    file.write_text("def measure(a):\n    return 1.0\n")
    (tmp_path / "space.yaml").write_text(SPACE)

    class Breaker(Editor):
        def edit(self) -> None:
            self.file.write_text(broken)

    with pytest.raises(InputError):
        autotune.search(tmp_path / "space.yaml", trials=12, store=store, progress=Breaker(file))
    file.write_text("def measure(a):\n    return 1.0\n")
    heard = Heard()
    result = autotune.search(tmp_path / "space.yaml", trials=12, store=store, progress=heard)
    assert not any("a new study" in note for note in heard.notes), heard.notes
    assert len(result.trials) == 12 and len({trial.segment_id for trial in result.trials}) == 2


PREPARED = """
import autotune

class Prepared(autotune.Objective):
    def prepare(self, configuration):
        return configuration["a"]

    def measure(self, loaded, rng):
        return 1.0
"""


class Restless(Editor):
    """Edits it after every other trial."""

    def finished(
        self, number: int, configuration: Configuration, outcome: Outcome, best: Best | None
    ) -> None:
        self.count += outcome.status is Status.OK
        if self.count % 2:
            self.file.write_text(PREPARED.replace("1.0", f"{self.count}.0"))


@pytest.mark.long
def test_what_an_edit_has_called_off_is_tried_again_however_often(tmp_path: Path) -> None:
    """It counted as an attempt, of which there are three."""
    file = tmp_path / "objective.py"
    file.write_text(PREPARED)
    (tmp_path / "space.yaml").write_text(SPACE.replace(":measure", ":Prepared"))
    editor = Restless(file)
    result = autotune.search(tmp_path / "space.yaml", trials=8, store=tmp_path / "study.db", progress=editor)
    assert any("was lost (the objective's source has changed)" in note for note in editor.notes)
    assert {(trial.status, trial.attempt) for trial in result.trials} == {(Status.OK, 1)}


def record_all(file: Path, seconds: float) -> None:
    """The same time for each configuration."""
    record(file, {"a": range(8)}, [{"a": a, "time": 1e3 * seconds} for a in range(8)])


class Recorder(Editor):
    """Records the space anew when the fourth trial has finished."""

    def edit(self) -> None:
        record_all(self.file, 2.5)


def test_a_recording_that_is_replaced_meanwhile_counts_for_the_next_search(tmp_path: Path) -> None:
    """The one that was read went on to be served, and its numbers were stored as those of the new file."""
    file, store = tmp_path / "recording.json", tmp_path / "study.db"
    record_all(file, 1.0)
    (tmp_path / "space.yaml").write_text(
        "autotune: 1\nname: replayed\nreplay: recording.json\nknobs: {a: {range: [0, 7], default: 0}}\n"
        "metrics: {time: {goal: minimize, unit: s}}\nmeasure: {finalists: 0}\n"
    )
    editor = Recorder(file)
    result = autotune.search(tmp_path / "space.yaml", trials=8, store=store, progress=editor)
    assert {trial.metrics["time"].value for trial in result.trials} == {1.0}
    assert len({trial.segment_id for trial in result.trials}) == 1, editor.notes
    again = autotune.search(tmp_path / "space.yaml", trials=8, store=store, progress=Recorder(file))
    assert {trial.metrics["time"].value for trial in again.trials} == {2.5}
    assert again.study.id != result.study.id


SAVED_MEANWHILE = """
from pathlib import Path

Path(__file__).write_text("def measure(a):\\n    return 2.0\\n")

def measure(a):
    return 1.0
"""


def test_a_file_that_is_saved_while_workers_start_is_what_they_measure(tmp_path: Path) -> None:
    """The first worker had loaded the old one, and the new one was frozen as what had been measured."""
    file = tmp_path / "objective.py"
    file.write_text(SAVED_MEANWHILE)
    (tmp_path / "space.yaml").write_text(SPACE)
    result = autotune.search(tmp_path / "space.yaml", trials=6, store=tmp_path / "study.db")
    assert {trial.metrics["time"].value for trial in result.trials} == {2.0}
    with Store.open(tmp_path / "study.db") as store:
        (segment,) = {trial.segment_id for trial in result.trials}
        (frozen,) = store.segment(segment).artifacts.values()
        assert store.artifact(frozen) == file.read_bytes()


REPORTED = """
def measure(a, report):
    for step in (1, 2, 3):
        report(step, time=BASE + a / 100 + 1 / step)
"""


def test_a_trial_that_was_paused_before_an_edit_does_not_go_on_after_it(tmp_path: Path) -> None:
    """It did, with the code of after, and its value was stored as one of the source of before."""
    file = tmp_path / "objective.py"
    file.write_text(f"BASE = 0\n{REPORTED}")
    early = "random, early_stopping: {policy: successive-halving, max: 3}"
    (tmp_path / "space.yaml").write_text(SPACE.replace("random", early))

    class Rebaser(Editor):
        after = 1

        def edit(self) -> None:
            self.file.write_text(f"BASE = 1000\n{REPORTED}")

    store = tmp_path / "study.db"
    result = autotune.search(tmp_path / "space.yaml", trials=9, store=store, progress=Rebaser(file))
    with Store.open(store) as opened:
        began = min(t.segment_id for t in result.trials)
        old = [r.report for t in result.trials if t.segment_id == began for r in opened.reports_of(t.id)]
    assert len({t.segment_id for t in result.trials}) == 2
    assert old and all(report.metrics["time"] < 1000 for report in old)
    ended = [t.message for t in result.trials if "source has changed" in t.message]
    assert ended and all("stopped after 1 of 3" in message for message in ended)


def test_a_module_that_an_edit_brings_in_is_frozen_too(tmp_path: Path) -> None:
    """Only the files of before were, so that the same command began a new study."""
    file = tmp_path / "objective.py"
    file.write_text("def measure(a):\n    return 1.0\n")
    (tmp_path / "space.yaml").write_text(SPACE)

    class Importer(Editor):
        def edit(self) -> None:
            (tmp_path / "helper.py").write_text("VALUE = 2.0\n")
            self.file.write_text("import helper\n\ndef measure(a):\n    return helper.VALUE\n")

    store = tmp_path / "study.db"
    result = autotune.search(tmp_path / "space.yaml", trials=8, store=store, progress=Importer(file))
    again = autotune.search(tmp_path / "space.yaml", trials=8, store=store)
    assert again.study.id == result.study.id
    with Store.open(store) as opened:
        segment = opened.latest_segment(result.study.id)
        assert segment is not None and {one["name"] for one in segment.document["files"]} == {
            "helper.py",
            "objective.py",
        }


FINALE = SPACE.replace("finalists: 0", "finalists: 1").replace("[0, 99], default: 0", "[0, 3], default: 3")
FINALE += "budget: {time: 500s}  # with time for fresh processes on a slow machine too\n"
SLOW = "def measure(a):\n    return 10.0 * (1 + a)\n"
FAST = "def measure(a):\n    return 1.0 * (1 + a)\n"


class LateEditor(Editor):
    """Edits the objective once the last trial has ended, or once a winner is to be confirmed."""

    def __init__(self, file: Path, *, confirming: bool) -> None:
        super().__init__(file)
        self._at_end = not confirming

    def edit(self) -> None:
        if self._at_end:
            self.file.write_text(FAST)

    def confirming(self, entrants: tuple[str, ...], runs: int, seconds: float) -> None:
        if not self._at_end:
            self.file.write_text(FAST)


def measured_again(folder: Path, *, confirming: bool) -> tuple[autotune.Result, dict[str, set[float]], bool]:
    """The result, what was read of each contender, and whether that is of another segment than the search."""
    file, store = folder / "objective.py", folder / "study.db"
    file.write_text(SLOW)
    (folder / "space.yaml").write_text(FINALE)
    editor = LateEditor(file, confirming=confirming)
    result = autotune.search(folder / "space.yaml", trials=4, store=store, progress=editor)
    with Store.open(store) as opened:
        trials = opened.trials(result.study.id)
        again = [trial for trial in trials if trial.purpose != "search"]
        read = {str(t.purpose): {r.value for r in opened.readings(t.id) if not r.discarded} for t in again}
    new = {t.segment_id for t in again}.isdisjoint(t.segment_id for t in trials if t.purpose == "search")
    return result, read, new


@pytest.mark.long
def test_a_finale_after_an_edit_is_of_the_new_source_and_says_so(tmp_path: Path) -> None:
    """Its readings were stored as those of the source that the search had measured."""
    result, read, new = measured_again(tmp_path, confirming=False)
    assert new and read == {"default": {4.0}, "final": {1.0}}
    assert result.defended and EDITED not in result.remark


def test_runs_of_fresh_processes_end_when_the_objective_is_edited(tmp_path: Path) -> None:
    """Those of the new source were joined with the readings of the old one, and decided who had won."""
    result, read, new = measured_again(tmp_path, confirming=True)
    assert not new and read == {"default": {40.0}, "final": {10.0}}
    assert result.best == Configuration({"a": 0}) and EDITED in result.remark
