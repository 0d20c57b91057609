"""A family of studies: one budget, resumed without repeating, every winner measured for every workload."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import autotune
from autotune.errors import InputError, NothingFeasibleError
from autotune.measure.outcome import Outcome
from autotune.report.rules.rule import make_rule
from autotune.report.words.shapes import summarize_many
from autotune.session.api import open_many
from autotune.session.execution.executor import Executor
from autotune.session.families.matrix import NOT_ALLOWED, NOT_MEASURED, family_of, load_matrix
from autotune.session.families.result import ManyResult
from autotune.session.progress import Best, Opening, Progress
from autotune.session.reproduction.derivation import derive
from autotune.space.configuration import Configuration
from autotune.space.reading.reader import parse_family
from autotune.space.spec import Budget, Family, StudySpec
from autotune.store.records import TrialRecord
from autotune.store.store import Store
from tests.session.families.planted import Planted, family

THREE = "[{m: 64}, {m: 16}, {m: 256}]"


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    Planted.prepared.clear()
    yield
    Planted.prepared.clear()


def search(folder: Path, workloads: str, trials: int = 40, **options: Any) -> ManyResult:
    planted = family(
        folder, workloads, trials, options.pop("finalists", 2), options.pop("strategy", "random")
    )
    return autotune.search_many(planted, store=folder / "s.db", objective=Planted, **options)


class Heard(Progress):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.openings: list[Opening] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def opened(self, opening: Opening) -> None:
        self.openings.append(opening)


@dataclass(frozen=True)
class Whole:
    """A search of three workloads and one that is held out, what was said meanwhile, and its store."""

    result: ManyResult
    heard: Heard
    store: Path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder, heard = tmp_path_factory.mktemp("whole"), Heard()
    workloads = THREE.replace("]", ", {m: 128, held_out: true}]")
    result = search(folder, workloads, trials=70, progress=heard, strategy="bayes")
    return Whole(result, heard, folder / "s.db")


def test_each_workload_has_a_defended_winner_of_its_own(whole: Whole) -> None:
    searched = whole.result.results[:3]
    assert [r.study.workload["m"] for r in searched] == [64, 16, 256]
    assert all(r.defended for r in searched)
    assert [r.best["tile"] for r in searched if r.best] == [64, 16, 64]
    assert [r.best["pack"] for r in searched if r.best] == [False, False, True]
    assert sum(sum(r.statuses.values()) for r in searched) == 70
    assert whole.result.reason == "70 trials"


def test_later_workloads_learn_from_earlier_ones_and_need_fewer_tries(whole: Whole) -> None:
    first, *others = sorted(whole.result.results[:3], key=lambda r: -sum(r.statuses.values()))
    assert first.study.workload["m"] == 64
    assert sum(first.statuses.values()) >= 30
    for other in others:
        sources = {label for trial in other.trials for label in trial.reason.get("sources", {})}
        assert first.study.label in sources
        assert any(trial.reason["kind"] == "best elsewhere" for trial in other.trials)
    assert not any("a new study" in note for note in whole.heard.notes)


def test_it_is_said_who_is_measured_again(whole: Whole) -> None:
    again = [note for note in whole.heard.notes if note.startswith("m 16: ")]
    assert again == ["m 16: the finalists", "m 16: the winners of all workloads"]


def test_the_matrix_has_every_winner_on_every_workload(whole: Whole) -> None:
    matrix = whole.result.matrix
    assert matrix.default == 0
    assert matrix.configurations[0] == {"tile": 1, "pack": False, "spread": 0}
    assert matrix.held_out == (False, False, False, True)
    assert not whole.result.results[3].trials
    for row, cells in enumerate(matrix.cells):
        for column, cell in enumerate(cells):
            tile, m = matrix.configurations[column]["tile"], matrix.workloads[row]["m"]
            assert cell.status == ("ok" if tile <= m else NOT_ALLOWED)  # type: ignore[operator]
            assert math.isnan(cell.value) == (cell.status != "ok")
    for row, by in enumerate([1, 2, 3]):
        assert matrix.found_by[by] == {row}
    losses = matrix.losses
    assert losses[3].argmin() == 3  # 128 wants what 256 wants


def test_what_is_wrong_or_fails_is_a_hole_with_its_reason(tmp_path: Path) -> None:
    result = search(tmp_path, "[{m: 256}, {m: 96}, {m: 13}]", trials=70, strategy="bayes")
    matrix = result.matrix
    packed = next(c for c, one in enumerate(matrix.configurations) if one["pack"])
    assert matrix.cells[1][packed].status == "wrong"
    assert math.isnan(matrix.cells[1][packed].value)
    assert matrix.cells[2][0].status == "infeasible"
    assert result.results[2].best is None
    assert result.succeeded


def test_where_nothing_works_it_is_said_why(tmp_path: Path) -> None:
    said = summarize_many(search(tmp_path, "[{m: 13}, {m: 96}]"))
    [line] = [line for line in said.splitlines() if "thirteen" in line]
    assert "ended as infeasible, as trial 0: thirteen  (planted#1)" in line
    assert "ninety-six" not in said, "there something works"
    assert "best --study planted#2" in said
    failed = summarize_many(search(tmp_path, "[{m: 13}]", trials=5))
    assert ": 1 workload\n" in failed
    assert (
        "infeasible, as trial 0" in failed and "autotune best" not in failed and "autotune rule" not in failed
    )


def test_the_summary_counts_what_failed_in_all_workloads(tmp_path: Path) -> None:
    result = search(tmp_path, "[{m: 13}, {m: 96}, {m: 64}]", trials=40)
    failed = [one.failures for one in result.results]
    assert set(failed[0]) == {"infeasible"} and set(failed[1]) == {"wrong"} and not failed[2]
    [line] = [line for line in summarize_many(result).splitlines() if line.startswith("tried")]
    assert f"40 trials; failed: {failed[0]['infeasible']} infeasible, {failed[1]['wrong']} wrong" in line
    sound = summarize_many(search(tmp_path, "[{m: 256}]", trials=5))
    assert "5 trials; none failed" in sound


def test_a_default_that_is_forbidden_and_wins_nowhere_leaves_no_gap(tmp_path: Path) -> None:
    text = family(tmp_path, "[{m: 16}, {m: 64}]", trials=60).specs[0].text
    changed = parse_family(text.replace("default: 1}", "default: 32}"), tmp_path / "space.yaml")
    result = autotune.search_many(changed, store=tmp_path / "s.db", objective=Planted)
    matrix = result.matrix
    assert matrix.default == 0 and not matrix.found_by[0] and matrix.configurations[0]["tile"] == 32
    assert [cells[0].status for cells in matrix.cells] == [NOT_ALLOWED, "ok"]
    with Store.open(str(tmp_path / "s.db"), readonly=True) as store:
        assert not any(
            "not all winners" in said for said in make_rule(store, result.results[0].study).remarks
        )


@pytest.mark.parametrize("workloads", ["[{m: 64}, {m: 16}]", "[{m: 64, p: [1, 2]}, {m: 16, p: [1, 2]}]"])
def test_a_workload_follows_its_own_study_where_the_source_has_changed(
    tmp_path: Path, workloads: str
) -> None:
    first = search(tmp_path, workloads, trials=4, finalists=0)
    heard = Heard()
    changed = family(tmp_path, workloads, 4, finalists=0)
    again = replace(
        changed, specs=tuple(replace(s, measure=replace(s.measure, cores=0)) for s in changed.specs)
    )
    second = autotune.search_many(again, store=tmp_path / "s.db", objective=Planted, progress=heard)
    assert [one.study.parent_id for one in second.results] == [one.study.id for one in first.results]
    notes = [note for note in heard.notes if "a new study" in note]
    assert notes and not any("workload was" in note for note in notes)


def test_the_same_command_again_measures_nothing(tmp_path: Path) -> None:
    before = search(tmp_path, THREE)
    Planted.prepared.clear()
    after = search(tmp_path, THREE)
    assert not Planted.prepared
    assert after.to_document() == before.to_document() | {"reason": after.reason}


@pytest.mark.long
def test_where_workers_start_slowly_there_are_fewer_slices(tmp_path: Path) -> None:
    def sessions(name: str, starting: float) -> int:
        planted = family(tmp_path, THREE, trials=160, finalists=0)
        with Store.open(tmp_path / name) as store:
            many = open_many(planted, store, objective=Planted)
            make = many.make_executor

            def slowly(spec: StudySpec) -> Executor:
                executor = make(spec)
                executor.starting = starting
                return executor

            many.make_executor = slowly
            many.run()
            return sum(len(store.sessions(study.id)) for study in store.studies())

    assert sessions("slow.db", starting=100.0) < sessions("quick.db", starting=0.0)


def test_a_larger_budget_goes_on_and_repeats_no_try(tmp_path: Path) -> None:
    before = search(tmp_path, THREE, trials=40, finalists=0)
    tried = {(r.study.id, t.hash) for r in before.results for t in r.trials}
    Planted.prepared.clear()
    after = search(tmp_path, THREE, trials=60, finalists=0)
    assert len(Planted.prepared) == 20
    ids = {r.study.workload["m"]: r.study.id for r in after.results}
    assert not {(ids[workload["m"]], c.hash) for workload, c in Planted.prepared} & tried


def test_a_workload_that_joins_is_searched_and_all_winners_are_measured_there(tmp_path: Path) -> None:
    before = search(tmp_path, "[{m: 64}, {m: 16}]", trials=40)
    after = search(tmp_path, "[{m: 64}, {m: 16}, {m: 256}]", trials=60)
    assert after.results[0].study.id == before.results[0].study.id
    assert sum(after.results[2].statuses.values()) >= 10
    assert NOT_MEASURED not in {cell.status for row in after.matrix.cells for cell in row}


def test_all_is_measured_again_in_a_space_with_another_default(tmp_path: Path) -> None:
    workloads = "[{m: 64}, {m: 16}, {m: 128, held_out: true}]"
    before = search(tmp_path, workloads)
    planted = family(tmp_path, workloads, trials=40)
    text = planted.specs[0].text.replace("default: 1}", "default: 2}")
    assert text != planted.specs[0].text
    changed = parse_family(text, tmp_path / "space.yaml")
    for _ in range(2):
        after = autotune.search_many(changed, store=tmp_path / "s.db", objective=Planted)
        assert len(tries(after)) == len(tries(before))
        assert after.matrix.configurations[0]["tile"] == 2
        assert NOT_MEASURED not in {cell.status for row in after.matrix.cells for cell in row}
        Planted.prepared.clear()
    assert not Planted.prepared, "measured again for nothing"


def test_what_is_gone_from_a_space_does_not_count_for_the_budget(tmp_path: Path) -> None:
    workloads = "[{m: 64}, {m: 16}]"
    search(tmp_path, workloads, trials=40, finalists=0)
    text = family(tmp_path, workloads, 60, finalists=0).specs[0].text
    narrow = text.replace("constraints: [", 'constraints: ["spread <= 4", ')
    changed = parse_family(narrow, tmp_path / "space.yaml")
    after = autotune.search_many(changed, store=tmp_path / "s.db", objective=Planted)
    assert len(tries(after)) > 60
    assert sum(trial.configuration["spread"] <= 4 for trial in tries(after)) == 60


def tries(result: ManyResult) -> list[TrialRecord]:
    return [trial for one in result.results for trial in one.trials]


class _StopAt(Progress):
    """Calls ``action`` when so many trials have ended."""

    def __init__(self, trials: int) -> None:
        self.left = trials
        self.action: Any = None

    def finished(
        self, number: int, configuration: Configuration, outcome: Outcome, best: Best | None
    ) -> None:
        self.left -= 1
        if self.left == 0:
            self.action()


def test_stopping_ends_the_search_and_still_defends_what_was_found(tmp_path: Path) -> None:
    progress = _StopAt(30)
    with Store.open(str(tmp_path / "s.db")) as store:
        session = open_many(family(tmp_path, THREE), store, objective=Planted, progress=progress)
        progress.action = session.stop
        result = session.run()
    assert session.stopped
    assert result.reason == "interrupted"
    assert sum(sum(r.statuses.values()) for r in result.results) < 40
    assert result.results[0].defended
    assert sum(sum(r.statuses.values()) for r in search(tmp_path, THREE).results) == 40


def test_what_an_interrupt_left_unsearched_is_not_held_out(tmp_path: Path) -> None:
    workloads = THREE.replace("]", ", {m: 128, held_out: true}]")
    progress = _StopAt(3)
    with Store.open(str(tmp_path / "s.db")) as store:
        session = open_many(family(tmp_path, workloads), store, objective=Planted, progress=progress)
        progress.action = session.stop
        result = session.run()
    assert sum(not one.statuses for one in result.results) > 1
    assert [one["held_out"] for one in result.to_document()["workloads"]] == [False, False, False, True]
    lines = [line for line in summarize_many(result).splitlines() if "held out" in line]
    assert len(lines) == 1 and "m 128" in lines[0]


def test_a_crash_in_the_middle_loses_nothing(tmp_path: Path) -> None:
    class Gone(BaseException):
        pass

    def die() -> None:
        raise Gone

    progress = _StopAt(33)
    progress.action = die
    with pytest.raises(Gone):
        search(tmp_path, THREE, progress=progress)
    with Store.open(str(tmp_path / "s.db")) as store:
        studies = store.studies("planted")
        done = {(s.id, t.hash) for s in studies for t in store.trials(s.id) if t.status.finished}
        assert len(studies) == 3, "all studies stand from the start"
    assert len(done) == 33
    Planted.prepared.clear()
    after = search(tmp_path, THREE, finalists=0)
    ids = {r.study.workload["m"]: r.study.id for r in after.results}
    assert not {(ids[workload["m"]], c.hash) for workload, c in Planted.prepared} & done
    assert sum(sum(r.statuses.values()) for r in after.results) == 40
    assert not any(str(t.status) in ("lost", "waiting", "running") for r in after.results for t in r.trials)


def test_every_proposal_follows_from_the_record(whole: Whole) -> None:
    with Store.open(str(whole.store), readonly=True) as store:
        for one in whole.result.results[:3]:
            assert derive(store, one.study).follows


def test_a_single_workload_is_a_family_too(tmp_path: Path) -> None:
    result = search(tmp_path, "[{m: 64}]", trials=20)
    assert len(result.results) == 1
    assert result.results[0].defended
    assert sum(result.results[0].statuses.values()) == 20
    assert len(result.matrix.cells) == 1


def test_the_space_may_be_used_up(tmp_path: Path) -> None:
    heard = Heard()
    result = search(tmp_path, "[{m: 1}, {m: 2}]", trials=1000, progress=heard)
    assert [sum(r.statuses.values()) for r in result.results] == [20, 40]
    assert all(opening.earlier < (opening.feasible or 0) for opening in heard.openings), "for nothing"
    assert result.reason == "every configuration was tried"


@pytest.mark.long
def test_patience_is_of_each_workload(tmp_path: Path) -> None:
    planted = family(tmp_path, THREE, trials=200, strategy="bayes")
    budget = Budget(trials=200, patience=5)
    planted = replace(planted, specs=tuple(replace(spec, budget=budget) for spec in planted.specs))
    result = autotune.search_many(planted, store=tmp_path / "s.db", objective=Planted)
    assert result.reason == "5 trials without an improvement"
    assert all(5 < sum(r.statuses.values()) < 60 for r in result.results)


def test_a_target_is_of_each_workload(tmp_path: Path) -> None:
    planted = family(tmp_path, "[{m: 64}, {m: 16}]", trials=200, strategy="bayes")
    budget = Budget(trials=200, target=1e9)
    planted = replace(planted, specs=tuple(replace(spec, budget=budget) for spec in planted.specs))
    result = autotune.search_many(planted, store=tmp_path / "s.db", objective=Planted)
    assert result.reason == "trial 0 reached the target of 1e+09"
    assert [sum(r.statuses.values()) for r in result.results] == [1, 1]


def test_without_finalists_nothing_is_measured_again(tmp_path: Path) -> None:
    result = search(tmp_path, THREE, finalists=0)
    assert not any(r.defended for r in result.results)
    assert not result.matrix.configurations


class Picky(Planted):
    def __init__(self, context: Any) -> None:
        super().__init__(context)
        if context.workload["m"] == 16:
            raise InputError("sixteen is not supported")


def test_an_objective_that_refuses_a_workload_does_not_end_the_others(tmp_path: Path) -> None:
    heard = Heard()
    result = autotune.search_many(
        family(tmp_path, THREE), store=tmp_path / "s.db", objective=Picky, progress=heard
    )
    assert list(result.failures) == ["m 16"]
    assert "sixteen is not supported" in result.failures["m 16"]
    assert sum("given up" in note for note in heard.notes) == 1
    assert sum(sum(r.statuses.values()) for r in result.results) == 40
    assert result.results[0].defended
    assert result.results[2].defended


def test_defaults_that_nobody_challenges_are_in_the_table_even_so(tmp_path: Path) -> None:
    """A rule is learned from that: ``autotune rule`` had asked for a search to its end, after its end."""

    def alone(tile: int, pack: bool, spread: int) -> float:
        if {"tile": tile, "pack": pack, "spread": spread} != planted.specs[0].space.default():
            raise ValueError("no")
        return 1.0

    planted = family(tmp_path, "[{m: 16}, {m: 64}]", trials=12)
    result = autotune.search_many(planted, store=tmp_path / "s.db", objective=alone)
    assert [[cell.status for cell in row] for row in result.matrix.cells] == [["ok"], ["ok"]]
    with Store.open(str(tmp_path / "s.db"), readonly=True) as store:
        assert make_rule(store, store.study("planted")).rule is not None


def test_one_that_refuses_all_is_an_error_and_begins_no_study(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="sixteen"):
        autotune.search_many(family(tmp_path, "[{m: 16}]"), store=tmp_path / "s.db", objective=Picky)
    with pytest.raises(InputError, match="needs the module 'missing'"):
        autotune.search_many(_unloadable(tmp_path), store=tmp_path / "s.db")
    assert _studies(tmp_path) == 0
    search(tmp_path, "[{m: 64}]", trials=3)
    with pytest.raises(InputError, match="sixteen"):
        autotune.search_many(family(tmp_path, "[{m: 16}]"), store=tmp_path / "s.db", objective=Picky)
    assert _studies(tmp_path) == 1


def test_where_no_workload_has_a_configuration_no_study_begins(tmp_path: Path) -> None:
    with pytest.raises(NothingFeasibleError):
        search(tmp_path, "[{m: 0}, {m: -1}]")
    assert _studies(tmp_path) == 0


def _unloadable(folder: Path) -> Family:
    planted = family(folder, "[{m: 16}, {m: 64}]")
    (folder / "objective.py").write_text("import missing\n\n\nclass Planted:\n    pass\n")
    return planted


def _studies(folder: Path) -> int:
    with Store.open(folder / "s.db") as store:
        return len(store.studies())


@pytest.mark.long
def test_fresh_begins_new_studies_once(tmp_path: Path) -> None:
    before = search(tmp_path, THREE)
    after = search(tmp_path, THREE, fresh=True)
    assert not {r.study.id for r in before.results} & {r.study.id for r in after.results}
    assert sum(sum(r.statuses.values()) for r in after.results) == 40
    with Store.open(str(tmp_path / "s.db"), readonly=True) as store:
        assert len(store.studies()) == 6
        newest = family_of(store, store.study("planted"))
        assert {s.id for s in newest} == {r.study.id for r in after.results}
        assert repr(load_matrix(store, newest).cells) == repr(after.matrix.cells)  # NaN is not NaN


def test_progress_counts_the_family(whole: Whole) -> None:
    assert whole.heard.openings[0].study == "planted (m 64)"
    assert all(opening.budget.trials == 70 for opening in whole.heard.openings)


def test_what_is_no_family_is_said() -> None:
    with pytest.raises(
        InputError, match=r"the space is \[\]\n  expected: the path of a space file with worklo"
    ):
        autotune.search_many([], objective=Planted)  # type: ignore[arg-type]
