"""``autotune why``, ``lineage``, ``diff`` and ``prune``, as a user calls them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from autotune import MetricSpec, Space, StudySpec, ask_tell
from autotune.cli.diff import command as diff
from autotune.cli.lineage import command as lineage
from autotune.cli.prune import command as prune
from autotune.cli.show import command as show
from autotune.cli.trial import command as trial
from autotune.cli.why import command as why
from autotune.errors import InputError
from autotune.space import IntegerRange
from autotune.store.reader import StoreReader
from autotune.store.store import Store
from tests.cli.calling import call, document
from tests.hook.stores import add_study


@pytest.fixture
def store(folder: Path, tmp_path: Path) -> Path:
    """A copy of the searched study."""
    return Path(shutil.copy(folder / "study.db", tmp_path / "study.db"))


# -- why


@pytest.mark.parametrize("command", [why, trial])
def test_a_number_that_is_no_id_is_said_to_go_with_its_study(store: Path, command: Any) -> None:
    error = call(command, "0", "--store", store).exception
    assert isinstance(error, InputError) and "no trial with the id 0 in this store" in str(error)
    assert "goes with its study: small#1:0, or 0 --study small#1" in str(error)


def test_why_tells_what_was_known_then(store: Path) -> None:
    with Store.open(store) as opened:
        trials = {trial.number: trial for trial in opened.trials(1, purpose="search")}
        asks = opened.asks(1)
    told = document(why, "small:7", "--store", store)
    ask = next(ask for ask in asks if 7 in ask.trials)
    known = [t for t in trials.values() if t.told is not None and t.told < ask.results_known]
    knew = told["knew"]
    assert (knew["results"], knew["proposed"]) == (len(known), ask.trials_known)
    best = min((t for t in known if str(t.status) == "ok"), key=lambda t: t.metrics["time"].value)
    assert knew["incumbent"]["trial"] == best.number
    assert {near["trial"] for near in knew["neighbours"]} <= {t.number for t in known}
    distances = [near["distance"] for near in knew["neighbours"]]
    assert distances == sorted(distances)
    assert told["outcome"]["trial"] == 7 and told["because"]
    for near in knew["neighbours"]:
        assert all(there != here for there, here in near["differs"].values())


def test_why_reads_no_search_in_full(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All trials of a study were read, with what each has printed: 2.7 s of a study of 50,000, now 1 s."""
    expected = document(why, "small:7", "--store", store)
    trials = StoreReader.trials

    def watched(self: StoreReader, study: int, purpose: Any = None, status: Any = None) -> Any:
        assert purpose not in (None, "search")
        return trials(self, study, purpose, status)

    monkeypatch.setattr(StoreReader, "trials", watched)
    assert document(why, "small:7", "--store", store) == expected


def test_a_goal_may_have_the_name_of_anything_else_that_why_tells(tmp_path: Path) -> None:
    """It had taken the place of the trial's number, id or status."""
    space = Space([IntegerRange("x", 1, 4)])
    study = StudySpec("named", space, metrics=(MetricSpec("status", goal="minimize"),))
    with ask_tell(study, store=tmp_path / "study.db") as session:
        for asked in session.ask(2):
            session.tell(asked, {"status": 2.5 + asked.number})
    told = document(why, "named:1", "--store", tmp_path / "study.db")
    assert told["metric"] == "status"
    assert (told["outcome"]["status"], told["outcome"]["value"]) == ("ok", 3.5)


def test_why_says_the_same_by_id_and_by_number(store: Path) -> None:
    by_number = document(why, "7", "--study", "small", "--store", store)
    assert by_number == document(why, by_number["id"], "--store", store)
    said = call(why, "7", "--study", "small", "--store", store).stdout
    assert "known then" in said and "came to" in said


def test_why_of_a_finalist_says_what_it_is(store: Path) -> None:
    with Store.open(store) as opened:
        final = opened.trials(1, purpose="final")[0]
    told = document(why, final.id, "--store", store)
    assert told["knew"] is None and "measured again for the final comparison" in told["because"][0]


@pytest.mark.parametrize(
    "word", ["small:999", "small:x", "nobody:1", "99999999999999999999", "-1", "1.5", "٣"]
)
def test_what_is_no_trial_is_refused(store: Path, word: str) -> None:
    for verb in (why, lineage):
        error = call(verb, "--store", store, "--", word).exception
        assert isinstance(error, InputError), word


@pytest.mark.parametrize("name", ["sqlite://", "empty.db"])
def test_a_store_with_nothing_in_it_is_said_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.db").touch()
    error = call(show, "--store", name).exception
    assert isinstance(error, InputError)
    assert ("is in memory" if name == "sqlite://" else "there is nothing in") in str(error)
    assert Path("empty.db").stat().st_size == 0


def test_both_may_name_the_study_of_a_trial_where_they_agree(tmp_path: Path) -> None:
    file = tmp_path / "two.db"
    with Store.open(file) as opened:
        for name in ("modes", "modes", "other"):
            add_study(opened, name=name, tile=8 if name == "other" else 4)

    def found(word: str, study: str) -> str:
        shown = document(trial, word, "--study", study, "--store", file)
        return f"{shown['study']}#{shown['study_id']}"

    assert found("modes:0", "modes") == found("0", "modes") == found("modes#2:0", "modes") == "modes#2"
    assert found("modes:0", "modes#1") == found("modes#1:0", "modes") == found("#1:0", "modes#1") == "modes#1"
    for word, study in (("other:0", "modes"), ("modes#1:0", "modes#2")):
        error = call(trial, word, "--study", study, "--store", file).exception
        assert isinstance(error, InputError)
        assert f"{word!r} is a trial of" in str(error) and "--study says modes#2" in str(error)


# -- lineage


def test_a_lineage_goes_up_to_what_taught_and_down_to_what_was_taught(tmp_path: Path) -> None:
    file = tmp_path / "three.db"
    with Store.open(file) as opened:
        first, second = add_study(opened, tile=8), add_study(opened, tile=4, verdict=False)
        for label, source in ((second, first),):
            study = opened.study(label)
            settings = {"sources": [{"study": opened.study(source).id, "trials": 5}]}
            opened.open_session(study.id, settings, study.environment_hash, 1, "host")
    down = document(lineage, "gemm#1", "--store", file)["down"]
    assert [node["kind"] for node in down] == ["verdict", "recipe", "study"]
    assert down[-1]["relation"] == "taught" and down[-1]["label"] == "gemm#2"
    [up] = document(lineage, "gemm#2", "--store", file)["up"]
    assert up["label"] == "gemm#1" and up["relation"] == "learned from 5 trials of"
    recipe = document(lineage, "recipe:gemm", "--store", file)
    assert "gemm#1" in json.dumps(recipe)
    said = call(lineage, "gemm#1", "--store", file).stdout
    assert "taught gemm#2" in said
    words = said.partition("in these trees:")[2]
    assert "taught " in words and "began with the results of this one" in words
    assert "made from" not in words, "only what occurs is explained"
    assert isinstance(call(lineage, "recipe:none", "--store", file).exception, InputError)


def test_circles_in_a_record_end(tmp_path: Path) -> None:
    file = tmp_path / "circle.db"
    with Store.open(file) as opened:
        for tile in (2, 4):
            add_study(opened, tile=tile)
        for one, other in ((1, 2), (2, 1)):
            opened.open_session(one, {"sources": [{"study": other, "trials": 3}]}, "", 1, "host")
    assert document(lineage, "gemm#1", "--store", file)["up"]


def test_the_lineage_of_a_winner_has_its_verdict(store: Path, result: dict[str, Any]) -> None:
    found = document(lineage, f"small:{result['trial']}", "--store", store)
    assert "verdict" in [node["kind"] for node in found["down"]]
    assert found["up"][-1]["relation"] == "tried in"


# -- diff


def test_finalists_are_compared_by_the_rounds_that_they_shared(store: Path, result: dict[str, Any]) -> None:
    found = document(diff, "small:0", f"small:{result['trial']}", "--store", store)
    [outcome] = found["outcomes"]
    assert outcome["answer"] == "better" and "side by side" in outcome["how"]
    assert outcome["ratio"]["value"] == pytest.approx(16.0)
    assert found["parts"]["configuration"]["tile"] == {"one": 1, "other": 16}
    back = document(diff, f"small:{result['trial']}", "small:0", "--store", store)["outcomes"][0]
    assert back["answer"] == "worse" and back["ratio"]["value"] == pytest.approx(1 / 16)


def test_a_failure_is_not_compared(store: Path) -> None:
    with Store.open(store) as opened:
        failed = next(t for t in opened.trials(1) if t.status.failed)
    found = document(diff, "small:0", f"small:{failed.number}", "--store", store)
    assert found["outcomes"][0]["answer"] == "not comparable"
    assert str(failed.status) in found["outcomes"][0]["how"]


def test_a_trial_does_not_differ_from_itself(store: Path) -> None:
    found = document(diff, "small:0", "small:0", "--store", store)
    assert not any(found["parts"].values())
    assert found["outcomes"][0]["answer"] == "no difference shown"
    assert "they were made in the same way" in call(diff, 1, 1, "--store", store).stdout


def test_studies_are_compared(tmp_path: Path) -> None:
    file = tmp_path / "two.db"
    with Store.open(file) as opened:
        add_study(opened, tile=8)
        add_study(opened, tile=4, packages={"numpy": "2.0"})
        add_study(opened, workload={"n": 64}, tile=4)
    found = document(diff, "gemm#1", "gemm#2", "--store", file)
    assert found["parts"]["environment"] == {"packages.numpy": {"one": None, "other": "2.0"}}
    assert found["parts"]["winner"]["tile"] == {"one": 8, "other": 4}
    answers = {outcome["metric"]: outcome["answer"] for outcome in found["outcomes"]}
    assert answers["time of the winners"] == "no difference shown"
    assert answers["time of what both have tried"] == "not comparable"
    other = document(diff, "gemm#1", "gemm#3", "--store", file)
    assert "they had different workloads" in [outcome["how"] for outcome in other["outcomes"]]


def test_a_bound_that_differs_is_named_with_its_metric(tmp_path: Path) -> None:
    """The metrics had been cut before the place where they differed."""
    file = tmp_path / "two.db"
    for bound in (0.5, 0.25):
        metrics = (MetricSpec("time", "minimize", "s"), MetricSpec("error", at_most=bound))
        study = StudySpec("bounded", Space([IntegerRange("tile", 1, 9)], []), metrics=metrics)
        with ask_tell(study, store=file) as session:
            [trial] = session.ask(1)
            session.tell(trial, time=1.0, error=0.1)
    found = document(diff, "bounded#1", "bounded#2", "--store", file)["parts"]["study"]
    assert found == {"metric error": {"one": {"at_most": 0.5}, "other": {"at_most": 0.25}}}
    said = call(diff, "bounded#1", "bounded#2", "--store", file).stdout
    assert "metric error: at_most: 0.5 -> at_most: 0.25" in said


def test_studies_with_opposite_goals_are_not_compared(tmp_path: Path) -> None:
    """It had said that they measure different things: score and score."""
    file = tmp_path / "two.db"
    for goal in ("minimize", "maximize"):
        study = StudySpec(goal, Space([IntegerRange("tile", 1, 9)], []), metrics=(MetricSpec("score", goal),))
        with ask_tell(study, store=file) as session:
            [trial] = session.ask(1)
            session.tell(trial, score=1.0)
    [remark] = document(diff, "minimize", "maximize", "--store", file)["remarks"]
    assert remark == "they have different goals: one is to minimize score, the other to maximize it"


def test_recipes_of_a_file_and_a_store_are_compared(tmp_path: Path) -> None:
    from autotune.cli.recipes import command as recipes

    file = tmp_path / "one.db"
    with Store.open(file) as opened:
        add_study(opened, tile=8)
    call(recipes, "export", "--to", tmp_path / "old.json", "--store", file)
    with Store.open(file) as opened:
        add_study(opened, tile=4, speedup={"against": "the default", "estimate": 4, "low": 3.9, "high": 4.1})
    found = document(diff, tmp_path / "old.json", "recipe:gemm", "--store", file)
    assert found["parts"]["configuration"] == {"tile": {"one": 8, "other": 4}}
    assert [outcome["answer"] for outcome in found["outcomes"]] == ["better", "no difference shown"]
    mixed = call(diff, "gemm#1", "recipe:gemm", "--store", file).exception
    assert isinstance(mixed, InputError) and "two trials, two studies or two recipes" in str(mixed)


# -- prune


def test_nothing_goes_without_yes(store: Path) -> None:
    with Store.open(store) as opened:
        opened.put_artifact(b"nobody needs this", "notes")
    assert document(prune, "--store", store)["deleted"] is False
    found = document(prune, "--store", store, "--yes")
    assert found["deleted"] is True and len(found["files"]) == 1
    assert document(prune, "--store", store)["files"] == []
    with Store.open(store) as opened:
        assert opened.integrity() == []
        assert opened.artifact(next(iter(opened.latest_segment(1).artifacts.values())))  # type: ignore[union-attr]


def test_what_it_calls_a_trial_is_one_to_show_too(store: Path) -> None:
    """It had counted what finales and replays measured again as trials."""
    shown = document(show, "--study", "small", "--store", store)
    found = document(prune, "--study", "small", "--store", store)
    assert found["trials"] == shown["trials"] == 12 and found["repeats"] >= 2
    said = call(prune, "--study", "small", "--store", store).stdout
    assert f"study small#1 with 12 trials and {found['repeats']} measurements again, and all readings" in said


def test_a_study_that_something_leans_on_goes_by_force_alone(tmp_path: Path) -> None:
    file = tmp_path / "two.db"
    with Store.open(file) as opened:
        add_study(opened, tile=8)
        add_study(opened, tile=4)
        opened.open_session(2, {"sources": [{"study": 1, "trials": 1}]}, "", 1, "host")
    refused = call(prune, "--study", "gemm#1", "--yes", "--store", file)
    assert refused.return_value == 2
    assert "study gemm#2 learned from it" in refused.stdout and "its verdict" in refused.stdout
    with Store.open(file) as opened:
        assert len(opened.studies()) == 2
    assert call(prune, "--study", "gemm#1", "--yes", "--force", "--store", file).return_value == 0
    with Store.open(file) as opened:
        assert [study.id for study in opened.studies()] == [2]
        assert opened.integrity() == []
    said = " ".join(call(lineage, "gemm#2", "--store", file).stdout.split())
    assert "study #1" in said and "no longer in the store" in said
