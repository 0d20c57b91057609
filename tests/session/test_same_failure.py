"""When a search ends because all of its trials fail alike, and when it must not."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

import autotune
from autotune.errors import InputError
from autotune.measure.facts import MISTAKE, SURE
from autotune.report.words.summary import summarize
from autotune.session.liveness import identity
from autotune.session.same_failure import ENOUGH, ENOUGH_SURE, MISTAKEN, SameFailure, only_mistake
from autotune.space.configuration import Configuration
from autotune.space.reading.reader import parse_family, parse_spec
from autotune.space.spec import StudySpec
from autotune.status import Status
from autotune.store.records import ResultRecord
from autotune.store.store import Store
from tests.session.heard import Heard
from tests.store.build import Bench, bench, outcome

DEFAULT = Configuration({"x": 0, "y": 0})
NAME = "NameError: name 'xx' is not defined (objective.py, line 1)"


def result(
    number: int, status: Status = Status.CRASHED, mistake: str = NAME, y: int = -1, sure: bool = False
) -> ResultRecord:
    configuration = Configuration({"x": number, "y": number if y < 0 else y})
    facts: dict[str, object] = {MISTAKE: mistake} if mistake else {}
    facts |= {SURE: True} if sure else {}
    return ResultRecord(number, number, configuration, status, {}, {}, {}, None, facts)


def heard(*results: ResultRecord, default: Configuration | None = DEFAULT) -> SameFailure:
    failure = SameFailure(default)
    for one in results:
        failure.hear(one)
    return failure


def test_enough_trials_with_one_mistake_show_it() -> None:
    results = [result(n) for n in range(ENOUGH)]
    assert heard(*results).mistake == NAME
    assert heard(*results[:-1]).mistake == ""


@pytest.mark.parametrize(
    "other",
    [
        result(99, Status.OK, ""),
        result(99, Status.PRUNED, ""),
        result(99, Status.OUT_OF_MEMORY, ""),
        result(99, mistake=""),
        result(99, mistake="KeyError: 'x' (objective.py, line 1)"),
    ],
)
def test_one_that_came_to_another_end_refutes_it(other: ResultRecord) -> None:
    results = [result(n) for n in range(2 * ENOUGH)]
    assert heard(*results, other).mistake == heard(other, *results).mistake == ""


def test_one_that_was_stopped_early_shows_it_beside_one_that_failed_by_it() -> None:
    """A search with early stopping had spent its whole budget on a misspelt knob."""
    results = [result(n, Status.PRUNED if n else Status.CRASHED) for n in range(ENOUGH)]
    assert heard(*results).mistake == NAME
    assert heard(*results[1:], result(99, Status.PRUNED), default=None).mistake == "", "it may ask later"
    assert heard(*results, result(99, Status.OK, NAME)).mistake == ""


def test_one_that_is_sure_needs_fewer(tmp_path: Path) -> None:
    results = [result(n, y=0, sure=True) for n in range(1, 1 + ENOUGH_SURE)]
    assert heard(*results).mistake == NAME
    assert heard(*results[:-1]).mistake == heard(*results[:-1], result(9)).mistake == ""
    assert heard(result(9), *results[:-1]).mistake == "", "one of them was not sure"
    assert heard(*results, result(9, Status.OK, "")).mistake == ""


def test_the_default_must_be_among_them_where_it_is_feasible() -> None:
    results = [result(n) for n in range(1, 3 * ENOUGH)]
    assert heard(*results).mistake == ""
    assert heard(*results, default=None).mistake == NAME


def test_a_knob_that_was_never_turned_may_be_why() -> None:
    results = [result(n, y=0) for n in range(2 * ENOUGH)]
    assert heard(*results[:-1]).mistake == ""
    assert heard(*results).mistake == NAME, "constraints hold it"


@pytest.mark.parametrize("lacks_it", [0, ENOUGH - 1])
def test_a_knob_that_some_had_not_was_turned(lacks_it: int) -> None:
    results = [result(n, y=0) for n in range(ENOUGH)]
    results[lacks_it] = replace(results[lacks_it], configuration=Configuration({"x": lacks_it}))
    assert heard(*results, default=None).mistake == NAME


@pytest.mark.parametrize("status", [status for status in Status if status.failed])
def test_failures_that_may_be_limits_only_raise_doubt(status: Status) -> None:
    results = [result(n, status, "") for n in range(10 * ENOUGH)]
    failure = heard(*results)
    assert failure.mistake == "" and f"the default among them, all ended as {status}" in failure.doubt
    assert heard(*results[: ENOUGH - 1]).doubt == ""
    assert f"trials all ended as {status}" in heard(*results[1:]).doubt, "the default was not among them"


def test_failures_of_several_kinds_raise_it_as_well() -> None:
    results = [result(n, (Status.WRONG, Status.WRONG, Status.INFEASIBLE)[n % 3], "") for n in range(ENOUGH)]
    assert "all failed: 7 as wrong and 3 as infeasible. If" in heard(*results).doubt
    assert heard(*results[:-1]).doubt == ""
    assert heard(*results, result(99, Status.OUT_OF_MEMORY, "")).doubt != ""


@pytest.mark.parametrize("status", [Status.OK, Status.PRUNED])
def test_one_that_works_raises_none(status: Status) -> None:
    results = [result(n, Status.WRONG, "") for n in range(2 * ENOUGH)]
    assert (
        heard(*results, result(99, status, "")).doubt == heard(result(99, status, ""), *results).doubt == ""
    )


# -- what a study came to ----------------------------------------------------------------------


def studied(store: Store, *ended: tuple[Status, str]) -> Bench:
    """A study that is searched by another machine, with trials that ended so, by such mistakes."""
    own = bench(store)
    for tile, (status, mistake) in enumerate(ended):
        facts = {MISTAKE: mistake} if mistake else {}
        store.finish(own.trial(tile).id, outcome(status, facts=facts))
    return own


def mistake_of(*ended: tuple[Status, str]) -> str:
    with Store.open("sqlite://") as store:
        own = studied(store, *ended)
        store.close_session(own.session, "interrupted")
        return only_mistake(store, own.study)


CRASHED, STOPPED = (Status.CRASHED, NAME), (Status.PRUNED, "the knob x was not asked for")


def test_of_a_study_of_mistakes_the_first_is_named() -> None:
    assert mistake_of(CRASHED) == mistake_of(CRASHED, STOPPED) == NAME
    assert mistake_of(STOPPED, CRASHED) == STOPPED[1]


@pytest.mark.parametrize(
    "other", [(Status.OK, ""), (Status.WRONG, ""), (Status.CRASHED, ""), (Status.PRUNED, "")]
)
def test_beside_another_end_none_is(other: tuple[Status, str]) -> None:
    assert mistake_of(CRASHED, other) == mistake_of(other, CRASHED) == ""


def test_nor_where_nothing_failed_by_one() -> None:
    assert mistake_of() == mistake_of(STOPPED) == ""


def test_what_was_not_finished_says_nothing_of_it() -> None:
    with Store.open("sqlite://") as store:
        own = studied(store, CRASHED)
        own.trial(1)
        store.close_session(own.session, "interrupted")
        assert only_mistake(store, own.study) == NAME


def test_none_is_named_while_a_search_of_the_study_may_run() -> None:
    with Store.open("sqlite://") as store:
        own = studied(store, CRASHED)
        assert only_mistake(store, own.study) == ""
        store.close_session(own.session, "interrupted")
        gone = store.open_session(own.study.id, {}, "environment0", 2**22 + 1, socket.gethostname())
        assert only_mistake(store, own.study) == NAME, "it was killed"
        store.close_session(gone, "killed")
        store.open_session(
            own.study.id, {"process": identity()}, "environment0", os.getpid(), socket.gethostname()
        )
        assert only_mistake(store, own.study) == ""


# -- searches -------------------------------------------------------------------------------------

SPACE = """
autotune: 1
name: bowl
objective: objective.py:unused
knobs:
  x: {range: [0, 15], default: 0}
  y: {range: [0, 15], default: 0}
measure: {min_readings: 3, max_readings: 3, finalists: 2}
budget: {trials: 60}
"""


class Bowl:
    """Reads how deep it is in a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __call__(self, x: int, y: int) -> float:
        return float(self.file.read_text()) + x + (y - 7) ** 2


def spec(folder: Path, text: str = SPACE) -> StudySpec:
    (folder / "objective.py").write_text("def unused(x, y):\n    return 1.0\n")
    return parse_spec(text, folder / "space.yaml", {})


def search(folder: Path, objective: object, heard: Heard, **options: object) -> autotune.Result:
    options = {"strategy": "random", "seed": 1, "store": folder / "study.db", **options}
    return autotune.search(spec(folder), objective=objective, progress=heard, **options)  # type: ignore[arg-type]


def test_a_mistake_ends_a_search_and_says_what_it_is(tmp_path: Path) -> None:
    result = search(tmp_path, Bowl(tmp_path / "depth.txt"), Heard())
    assert result.best is None and result.reason == MISTAKEN
    assert ENOUGH <= sum(result.statuses.values()) < 2 * ENOUGH
    said = summarize(result, space="space.yaml")
    assert "all trials failed by the same mistake" in said
    assert "depth.txt' (" in said and "autotune search space.yaml --store sqlite:" in said
    assert result.to_document()["reason"] == MISTAKEN


def test_once_it_is_mended_the_search_begins_with_nothing_against_the_default(tmp_path: Path) -> None:
    file, notes = tmp_path / "depth.txt", Heard()
    failed = search(tmp_path, Bowl(file), Heard())
    file.write_text("3")
    mended = search(tmp_path, Bowl(file), notes)
    assert mended.study.id != failed.study.id and not mended.failures
    assert mended.speedup is not None and mended.reason == "60 trials"
    assert any(
        note.startswith(f"a new study, because all trials of {failed.study.label}") for note in notes.notes
    )
    again = search(tmp_path, Bowl(file), Heard(), trials=70)
    assert again.study.id == mended.study.id


def test_a_search_that_was_interrupted_in_a_mistake_begins_anew_as_well(tmp_path: Path) -> None:
    file = tmp_path / "depth.txt"
    failed = search(tmp_path, Bowl(file), Heard(), trials=2)
    assert failed.failures == {"crashed": 2}
    file.write_text("3")
    assert search(tmp_path, Bowl(file), Heard(), trials=20).study.id != failed.study.id


def test_mistakes_beside_a_success_stay_in_their_study(tmp_path: Path) -> None:
    file = tmp_path / "depth.txt"
    file.write_text("3")
    first = search(tmp_path, Bowl(file), Heard(), trials=5)
    file.unlink()
    broken = search(tmp_path, Bowl(file), Heard(), trials=40)
    assert broken.study.id == first.study.id and broken.reason == "40 trials"


def limited(x: int, y: int) -> float:
    if x < 14:
        raise RuntimeError("invalid argument")
    return 1.0 + y


def test_a_hidden_limit_that_most_configurations_break_ends_nothing(tmp_path: Path) -> None:
    notes = Heard()
    result = search(tmp_path, limited, notes)
    assert result.reason == "60 trials"
    assert [note for note in notes.notes if "all ended as crashed" in note and "Ctrl-C" in note]


def test_of_several_workloads_each_ends_by_itself(tmp_path: Path) -> None:
    text = SPACE.replace("knobs:", "workloads: [{n: 1}, {n: 2}]\nknobs:")
    spec(tmp_path)
    family = parse_family(text, tmp_path / "space.yaml")

    def of_two(x: int, y: int, workload: dict[str, int]) -> float:
        return float(x + y) if workload["n"] == 2 else float({}["missing"])

    result = autotune.search_many(family, objective=of_two, store=tmp_path / "s.db", strategy="random")
    one, two = (sum(r.statuses.values()) for r in result.results)
    assert one < 2 * ENOUGH and one + two == 60 and result.results[1].best is not None

    with Store.open(str(tmp_path / "s.db")) as store:
        assert len(store.studies()) == 2


def test_the_same_mistake_on_all_workloads_ends_the_search(tmp_path: Path) -> None:
    text = SPACE.replace("knobs:", "workloads: [{n: 1}, {n: 2}]\nknobs:")
    spec(tmp_path)
    family = parse_family(text, tmp_path / "space.yaml")
    result = autotune.search_many(family, objective=Bowl(tmp_path / "none"), store=tmp_path / "s.db")
    assert result.reason == MISTAKEN and not result.succeeded
    assert sum(sum(r.statuses.values()) for r in result.results) < 4 * ENOUGH


# -- a training that never asks for a knob -------------------------------------------------------

FORGETFUL = """
import autotune
with autotune.run("forgetful") as run:
    x = run.knob("x", default=0)
    for step in range(1, 1 + run.steps):
        run.report(step, loss=x / step)
        if run.should_stop:
            break
"""


@pytest.mark.long
def test_a_training_that_never_asks_for_a_knob_ends_its_search_also_under_early_stopping(
    tmp_path: Path,
) -> None:
    (tmp_path / "bench.py").write_text(FORGETFUL)
    text = BLIND.replace("name: blind", "name: forgetful\nmetrics: {loss: {goal: minimize}}")
    early = "search: {early_stopping: {policy: asha, resource: epochs, max: 9}}\nmeasure: {finalists: 0}"
    text = text.replace("measure: {min_readings: 1, max_readings: 1, finalists: 0}", early)
    study = parse_spec(text, tmp_path / "space.yaml", {})
    options = {"store": tmp_path / "study.db", "strategy": "random", "seed": 1}
    result = autotune.search(study, progress=Heard(), **options)  # type: ignore[arg-type]
    # A run does not wait for long to hear that it is behind, so that on a busy machine none may be stopped.
    assert result.reason == MISTAKEN and result.statuses.keys() <= {Status.CRASHED, Status.PRUNED}
    notes = Heard()
    autotune.search(study, progress=notes, trials=1, **options)  # type: ignore[arg-type]
    assert any("a new study, because all trials" in note for note in notes.notes)


# -- a program that no knob reaches --------------------------------------------------------------

BLIND = """
autotune: 1
name: blind
command: [python3, bench.py]
knobs:
  x: {range: [0, 15], default: 0}
  y: {range: [0, 15], default: 0}
measure: {min_readings: 1, max_readings: 1, finalists: 0}
budget: {trials: 20}
"""


def blind(folder: Path, heard: Heard, command: str) -> autotune.Result:
    (folder / "bench.py").write_text("""print('{"time": 2}')\n""")
    text = BLIND.replace("[python3, bench.py]", command)
    study = parse_spec(text, folder / "space.yaml", {})
    return autotune.search(study, progress=heard, store=folder / "study.db", strategy="random", seed=1)


def test_it_ends_a_search_at_once(tmp_path: Path) -> None:
    result = blind(tmp_path, Heard(), "[sh, -c, python3 bench.py]")
    assert result.reason == MISTAKEN and result.best is None
    assert ENOUGH_SURE <= sum(result.statuses.values()) < ENOUGH
    said = summarize(result, space="space.yaml")
    assert "no knob reaches the command" in said and "only some configurations fail so" not in said


def test_where_that_is_sure_no_study_begins(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no knob reaches the command"):
        blind(tmp_path, Heard(), "[python3, bench.py]")
    with Store.open(tmp_path / "study.db") as store:
        assert store.studies() == []


@pytest.mark.long
def test_one_knob_that_does_not_is_said_once(tmp_path: Path) -> None:
    notes = Heard()
    result = blind(tmp_path, notes, '[python3, bench.py, "{x}"]')
    assert result.best is not None and result.reason == "20 trials"
    assert len([note for note in notes.notes if "the knob 'y' never gets to the command" in note]) == 1
