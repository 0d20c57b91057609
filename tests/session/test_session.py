"""The loop with a real store: resume, new studies, the same history, the same proposals."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autotune
from autotune.cli.progress import LineProgress
from autotune.errors import InputError, NothingFeasibleError, StoreError
from autotune.report.words.summary import summarize
from autotune.search.contract import Proposal
from autotune.session import session
from autotune.session.api import capture_environment
from autotune.session.budget import Spent
from autotune.session.ledger import Ledger
from autotune.session.opening.opening import open_study
from autotune.session.progress import Opening, Progress
from autotune.session.result import EXHAUSTED
from autotune.session.searches import seconds_searched
from autotune.space import Choice, Flag, IntegerRange, OrderedValues, Space
from autotune.space.reading.reader import parse_spec
from autotune.space.spec import Budget, PythonObjective
from autotune.status import Status
from autotune.store.records import ResultRecord
from autotune.store.store import Store
from tests.session.bowl import SPACE, bowl, proposals, spec


class Checked(autotune.Objective):
    """Its error is known from the check, which the finalists do not go through again."""

    def check(self, loaded: Any, rng: Any) -> dict[str, float]:
        return {"error": 0.5}

    def measure(self, loaded: Any, rng: Any) -> float:
        return bowl(**loaded)


def test_a_search_ends_with_its_best_defended(search: Callable[..., autotune.Result]) -> None:
    result = search(trials=40)
    assert result.defended and result.speedup is not None and result.speedup.low > 1
    assert result.best == min((t.configuration for t in result.trials), key=lambda c: bowl(**c))
    assert len(result.frame()) == 40 and result.reason == "40 trials"


def test_no_more_trials_are_announced_than_there_are_configurations(
    search: Callable[..., autotune.Result],
) -> None:
    class Told(Progress):
        def opened(self, opening: Opening) -> None:
            said.append((opening.budget.trials, opening.feasible))

    said: list[tuple[int | None, int | None]] = []
    for trials in (4, 10_000):
        result = search(trials=trials, strategy="grid", progress=Told())
    size = len(result.trials)
    assert said == [(4, size), (size, size)] and result.reason == EXHAUSTED


def test_trials_count_as_finished_once_their_results_are_known(
    search: Callable[..., autotune.Result],
) -> None:
    class Told(Progress):
        def tick(self, spent: Spent, running: int) -> None:
            said.append((spent.trials, running, spent.finished))

    said: list[tuple[int, int, int]] = []
    search(trials=3, strategy="grid", progress=Told())
    search(trials=5, strategy="grid", progress=Told())
    assert all(trials - running == finished for trials, running, finished in said)
    assert said[-1] == (5, 0, 5)


@pytest.mark.parametrize("strategy", ["random", "grid", "evolution", "optuna-tpe", "auto"])
def test_a_resumed_search_proposes_what_an_unbroken_one_does(
    tmp_path: Path, search: Callable[..., autotune.Result], strategy: str
) -> None:
    unbroken = search(trials=24, strategy=strategy, store=tmp_path / "unbroken.db")
    for trials in (7, 8, 24):
        broken = search(trials=trials, strategy=strategy)
    assert proposals(broken) == proposals(unbroken)


def test_a_changed_workload_begins_a_new_study_that_says_so(
    tmp_path: Path, search: Callable[..., autotune.Result]
) -> None:
    first = search(trials=3)
    given = spec(tmp_path)
    changed = search(replace(given, workload=type(given.workload)({"n": 2})), trials=3)
    assert changed.study.id != first.study.id and changed.study.parent_id == first.study.id
    assert list(changed.study.differs) == ["workload"]


def test_a_changed_source_begins_a_new_study(tmp_path: Path, search: Callable[..., autotune.Result]) -> None:
    first = search(trials=3, objective=lambda x, y: 1.0 + x)
    again = search(trials=3, objective=lambda x, y: 1.0 + x)
    other = search(trials=3, objective=lambda x, y: 9.0 - x)
    assert first.study.differs == {} and again.study.id == first.study.id
    assert set(other.study.differs) == {"source"} and other.study.id != first.study.id


def count_of(tile: int, kind: str) -> float:
    return 1.0 + tile + len(kind)


class Training(autotune.Objective):
    """Its loss is the better the larger the tile, and falls with the steps."""

    def measure(self, loaded: Any, rng: np.random.Generator) -> None:
        for step in range(1, (self.report.steps or 0) + 1):
            self.report(step, loss=1.0 / loaded["tile"] + 1.0 / step)


def test_a_study_in_python_has_what_a_file_has(tmp_path: Path) -> None:
    """A function and a space alone had neither metrics, nor early stopping, nor a name of their own."""
    early = autotune.EarlyStopping(max=9, resource="epochs")
    study = autotune.StudySpec(
        "training",
        Space([IntegerRange("tile", 1, 8, default=1)], []),
        metrics=(autotune.MetricSpec("loss", "minimize"),),
        search=autotune.SearchSettings("random", early_stopping=early),
    )
    result = autotune.search(study, objective=Training, trials=8, store=tmp_path / "study.db")
    assert (result.study.name, result.metric.name, result.best) == ("training", "loss", {"tile": 8})
    assert {trial.facts["steps"] for trial in result.trials} == {9}
    assert autotune.search(study, objective=Training, time="1h", trials=8, store=tmp_path / "study.db").trials
    with pytest.raises(InputError, match="time is 'soon'"):
        autotune.search(study, objective=Training, time="soon", store=tmp_path / "study.db")
    with pytest.raises(InputError, match="the study has no objective"):
        autotune.search(study, store=tmp_path / "study.db")
    with pytest.raises(InputError, match="no metric has a goal"):
        autotune.search(replace(study, metrics=()), objective=Training, store=tmp_path / "study.db")


def test_a_space_and_a_function_are_enough(tmp_path: Path) -> None:
    space = Space([IntegerRange("tile", 1, 4, default=4), Choice("kind", ("row", "column"))], ["tile != 1"])
    result = autotune.search(space, objective=count_of, trials=7, store=tmp_path / "study.db")
    assert result.best == {"tile": 2, "kind": "row"} and result.study.name == "count_of"
    assert result.metric.name == "time" and result.speedup is not None
    unnamed = autotune.search(space, objective=lambda tile, kind: 1.0, trials=2, store=tmp_path / "study.db")
    assert unnamed.study.name == "lambda"
    with pytest.raises(InputError, match="together with an objective"):
        autotune.search(space, trials=2, store=tmp_path / "study.db")
    with pytest.raises(InputError, match=r'run the trials yourself, autotune.StudySpec\("NAME", space\)'):
        autotune.ask_tell(space, store=tmp_path / "study.db")  # type: ignore[arg-type]


def test_a_changed_file_begins_a_new_study(tmp_path: Path) -> None:
    given, store = spec(tmp_path), tmp_path / "study.db"
    autotune.search(given, trials=2, store=store)
    (tmp_path / "objective.py").write_text("def unused(x, y):\n    return 2.0\n")
    assert "source" in autotune.search(given, trials=2, store=store).study.differs


def test_fresh_begins_anew(search: Callable[..., autotune.Result]) -> None:
    assert search(trials=3).study.id != search(trials=3, fresh=True).study.id


def test_a_small_space_is_exhausted(tmp_path: Path, search: Callable[..., autotune.Result]) -> None:
    result = search(spec(tmp_path, high=0), trials=1000)
    assert len(result.trials) == 16 and result.reason == "every configuration was tried"
    assert "go on searching" not in summarize(result, space="bowl.yaml")
    fewer = search(trials=4)
    assert "search bowl.yaml --trials" in summarize(fewer, space="bowl.yaml")
    assert "go on searching" not in summarize(fewer), "a shell has no file to go on with"


def test_of_many_knobs_those_are_named_that_the_default_has_otherwise(tmp_path: Path) -> None:
    def cost(**on: bool) -> float:
        return 1.0 + sum(value != (name in ("f03", "f17")) for name, value in on.items())

    names = [f"f{number:02}" for number in range(30)]
    space = Space([Flag(name, default=name == "f17") for name in names])
    said = summarize(autotune.search(space, objective=cost, trials=60, store=tmp_path / "study.db"))
    assert "winner of cost\n\n  f03  true\n  and 29 knobs as in the default\n" in said


def test_to_go_on_with_an_interrupted_search_takes_the_budget_that_it_had(
    search: Callable[..., autotune.Result],
) -> None:
    result = search(trials=4)
    interrupted = replace(result, reason="interrupted")
    patient = replace(result, reason="3 trials without an improvement")
    for ended, budget, options in [
        (patient, Budget(time=60.0, patience=3), " --time 60s --patience 6"),
        (patient, Budget(trials=30, patience=3), " --trials 30 --patience 6"),
        (result, Budget(trials=4, patience=3), " --trials 10"),
        (interrupted, Budget(trials=30), " --trials 30"),
        (interrupted, Budget(time=60.0), " --time 60s"),
        (interrupted, Budget(trials=30, time=60.0), " --time 60s --trials 30"),
        (result, Budget(trials=4), " --trials 10"),
        (result, Budget(time=60.0), " --time 120s"),
        (result, Budget(trials=4, time=60.0), " --time 120s --trials 10"),
        (result, Budget(trials=30, time=60.0), " --time 120s"),
        (result, Budget(), " --trials 10"),
    ]:
        (line,) = [
            line
            for line in summarize(ended, space="bowl", budget=budget, store_option="").splitlines()
            if "go on searching" in line
        ]
        assert line.split("  #")[0].rstrip().endswith(f"search bowl{options}"), (budget, line)


def test_what_looks_better_than_the_winner_and_was_not_measured_again_is_said(
    tmp_path: Path, search: Callable[..., autotune.Result]
) -> None:
    before = search(trials=4)
    assert "since" not in before.remark
    unfinished = spec(tmp_path)
    unfinished = replace(unfinished, measure=replace(unfinished.measure, finalists=0))
    after = search(unfinished, trials=60)
    best = min(after.trials, key=lambda t: bowl(**t.configuration))
    assert after.best == before.best and best.configuration != before.best
    read = f"trial {best.number} was read at {bowl(**best.configuration):.4g} s since"
    assert read in after.remark and read in summarize(after)
    assert "since" not in search(trials=60).remark


def test_an_option_that_a_strategy_has_not_leaves_no_study(
    tmp_path: Path, search: Callable[..., autotune.Result]
) -> None:
    given = spec(tmp_path)
    given = replace(given, search=replace(given.search, options={"populaton": 3}))
    with pytest.raises(InputError, match="populaton"):
        search(given, trials=4, strategy="evolution")
    with Store.open(tmp_path / "study.db") as store:
        assert list(store.studies()) == []


def test_constraints_that_leave_nothing_leave_no_study(
    tmp_path: Path, search: Callable[..., autotune.Result]
) -> None:
    """An empty one would be the latest of its store, and answer for it."""
    text = SPACE.format(high=15).replace("x + y <= 25", "x * y == 211")
    nothing = parse_spec(text, tmp_path / "space.yaml", {})
    with pytest.raises(NothingFeasibleError, match=r"space.yaml: no configuration satisfies the constraints"):
        search(nothing, trials=4)
    with pytest.raises(NothingFeasibleError, match=r"autotune check .*space.yaml says what each"):
        autotune.ask_tell(nothing, store=tmp_path / "study.db")
    with Store.open(tmp_path / "study.db") as store:
        assert list(store.studies()) == []


def test_a_search_of_which_no_trial_ended_does_not_blame_the_configurations(tmp_path: Path) -> None:
    with autotune.ask_tell(spec(tmp_path), store=tmp_path / "study.db") as session:
        session.ask(2)
        assert session.result().remark == "no trial has finished"


def test_a_result_without_an_answer_has_the_commonest_failure_in_its_words(tmp_path: Path) -> None:
    def never(tile: int) -> float:
        if tile == 1:
            raise autotune.Infeasible("no room")
        raise ValueError(f"no {tile}")

    space = Space([OrderedValues("tile", (1, 2, 4), default=1)])
    result = autotune.search(space, objective=never, store=tmp_path / "study.db")
    assert result.best is None and result.why_nothing.startswith("2 of 3 ended as crashed, as trial 1: Value")
    assert result.why_nothing in repr(result) and result.to_document()["why_nothing"] == result.why_nothing
    answered = autotune.search(space, objective=lambda tile: float(tile), store=tmp_path / "study.db")
    assert answered.why_nothing == ""


@pytest.mark.parametrize(
    ("script", "form"),
    [
        (f"[{sys.executable}, bench.py, '{{tile}}']", "flags"),
        (f"[{sys.executable}, bench.py]", "yaml"),
        (f"{{run: [{sys.executable}, bench.py, '{{config}}'], config: {{file: tuned.json}}}}", "yaml"),
    ],
)
def test_the_winner_is_offered_in_the_form_that_its_command_reads(
    tmp_path: Path, script: str, form: str
) -> None:
    bench = "import autotune\nwith autotune.run('forms') as run:\n    run.result(time=run.knob('tile', 2))\n"
    (tmp_path / "bench.py").write_text(bench)
    text = f"autotune: 1\nname: forms\ncommand: {script}\nknobs: {{tile: {{values: [1, 2], default: 2}}}}\n"
    given = parse_spec(f"{text}measure: {{finalists: 0}}\n", tmp_path / "space.yaml", {})
    said = summarize(autotune.search(given, trials=1, store=tmp_path / "study.db"))
    assert f" best --format {form} --study forms" in said


class Saying(LineProgress):
    """Keeps what the shell would print."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def write(self, text: str) -> None:
        self.said.append(text)


def test_a_best_near_the_default_is_told_from_it(tmp_path: Path) -> None:
    """Both had been 1, beside a gain."""
    space = Space([IntegerRange("x", 10, 20, default=10)])
    loss = (autotune.MetricSpec("loss", "minimize"),)
    heard = Saying()
    result = autotune.search(
        autotune.StudySpec("near", space, metrics=loss),
        objective=lambda x: 1 + 0.0001 * abs(x - 17),
        trials=11,
        progress=heard,
        store=tmp_path / "s.db",
    )
    assert "loss           1.0000; the default 1.0007" in summarize(result)
    bests = [line.partition("best so far ")[2] for line in heard.said if "best so far" in line]
    assert len(set(bests)) == len(bests) > 1


def test_of_the_default_no_ratio_to_itself_is_said(tmp_path: Path) -> None:
    space = Space([IntegerRange("tile", 1, 3)])
    result = autotune.search(space, objective=float_of_tile, store=tmp_path / "s.db")
    assert result.is_default and result.speedup is not None and "over the default" not in summarize(result)


def float_of_tile(tile: int) -> float:
    return float(tile)


def test_where_all_failed_nobody_is_told_to_go_on(tmp_path: Path) -> None:
    def wrong(tile: int) -> float:
        raise autotune.WrongAnswer(f"{tile} is wrong by {0.1 * tile}")

    result = autotune.search(
        Space([IntegerRange("tile", 1, 100, default=1)]), objective=wrong, trials=4, store=tmp_path / "s.db"
    )
    said = summarize(result, space="bowl.yaml")
    assert result.best is None and "go on searching" not in said and " show --failures " in said
    assert f" --store sqlite:///{tmp_path / 's.db'}" in said, "else the commands would look elsewhere"
    assert "go on searching" in summarize(replace(result, reason="interrupted"), space="bowl.yaml")


def test_patience_ends_a_search(search: Callable[..., autotune.Result]) -> None:
    result = search(patience=5, strategy="grid")
    assert result.reason == "5 trials without an improvement"


def test_no_better_than_the_default_is_an_answer(search: Callable[..., autotune.Result]) -> None:
    result = search(objective=lambda x, y: 1.0 + 0.0 * x, trials=10)
    assert result.is_default and result.best == {"x": 0, "y": 0} and "no better" in result.remark


def test_a_bound_that_nothing_reports_is_said(tmp_path: Path, search: Callable[..., autotune.Result]) -> None:
    metrics = "metrics: {time: {goal: minimize}, error: {at_most: 1.0}}\nknobs:"
    given = parse_spec(SPACE.format(high=3).replace("knobs:", metrics), tmp_path / "space.yaml", {})
    assert "nothing reported error" in search(given, trials=4).remark
    told = search(given, trials=4, objective=lambda x, y: {"time": bowl(x, y), "error": 0.5})
    assert "error" not in told.remark and told.best is not None
    checked = search(given, trials=4, objective=Checked)
    assert "error" not in checked.remark and checked.metrics["error"].value == 0.5


def test_what_another_session_is_at_counts_in_the_budget(tmp_path: Path) -> None:
    def join() -> autotune.AskTell:
        return autotune.ask_tell(spec(tmp_path), store=tmp_path / "study.db", strategy="random")

    with join() as one, join() as two:
        one.ask(3)
        two.ask(1)
        assert two._ledger.spent.trials == 4


def test_two_sessions_hear_of_each_other_once(tmp_path: Path) -> None:
    def join(seed: int) -> autotune.AskTell:
        return autotune.ask_tell(spec(tmp_path), store=tmp_path / "study.db", strategy="random", seed=seed)

    with join(5) as one, join(6) as two:
        (first,) = one.ask()
        one.tell(first, time=1.0)
        (second,) = two.ask()
        two.tell(second, status="crashed")
        (third,) = two.ask()
        one.ask()
        one.ask()
        assert third.configuration not in (first.configuration, second.configuration)
        for session in (one, two):
            told = session._ledger.strategy.told
            assert [o.configuration for o in told] == [first.configuration, second.configuration]
            assert [o.metrics for o in told] == [{"time": 1.0}, {}]
            best = session._ledger.best
            assert best is not None and best.configuration == first.configuration


def test_ask_and_tell(tmp_path: Path) -> None:
    with autotune.ask_tell(spec(tmp_path), store=tmp_path / "study.db", strategy="random") as session:
        first, second, third = session.ask(3)
        session.tell(first, time=[3.0, 3.1, 3.2])
        session.tell(second, status="infeasible", message="refused")
        assert session.tell(third, time=float("nan")).status is Status.DIVERGED
        (forgotten,) = session.ask()
        assert session.result().best == first.configuration
        with pytest.raises(autotune.InputError, match="time"):
            session.tell(forgotten, tme=1.0)
    with autotune.ask_tell(spec(tmp_path), store=tmp_path / "study.db", strategy="random") as session:
        (again,) = session.ask()
        assert again.configuration == forgotten.configuration, (
            "a trial that was never told is handed out again"
        )
    with Store.open(str(tmp_path / "study.db")) as store:
        statuses = [str(t.status) for t in store.trials(store.study("bowl").id)]
    assert sorted(statuses) == ["diverged", "infeasible", "lost", "ok"]


def test_a_session_that_fails_as_it_begins_is_not_left_open(
    tmp_path: Path, search: Callable[..., autotune.Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise StoreError("the reports cannot be read")

    monkeypatch.setattr(session, "make_stopping", broken)
    with pytest.raises(StoreError, match="cannot be read"):
        search(trials=1)
    with Store.open(tmp_path / "study.db") as store:
        (ended,) = store.sessions(store.study().id)
    assert (ended.finished_at is not None, ended.reason) == (True, "crashed")


def test_sources_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    given = spec(tmp_path)
    text = "import autotune\nclass Mine(autotune.Objective):\n    sources = tuple(print('*.c'))\n"
    (tmp_path / "objective.py").write_text(text)
    given = replace(given, objective=PythonObjective("objective.py:Mine", tmp_path))
    with Store.open(tmp_path / "study.db") as store:
        study = open_study(given, store, capture_environment(given))
    assert [note for note in study.notes if "Mine names by `sources = tuple(print('*.c'))`" in note]


def test_a_source_that_is_not_there_begins_no_study(tmp_path: Path) -> None:
    given = replace(spec(tmp_path), objective=PythonObjective("objective.py:Mine", tmp_path))
    text = "import autotune\nclass Mine(autotune.Objective):\n    sources = ('kernal.c',)\n"
    (tmp_path / "objective.py").write_text(text)
    with Store.open(tmp_path / "study.db") as store:
        with pytest.raises(InputError, match="names 'kernal"):
            open_study(given, store, capture_environment(given))
        assert not list(store.studies())


def test_lost_trials_are_handed_out_although_a_proposal_failed(tmp_path: Path) -> None:
    given = spec(tmp_path)
    environment = capture_environment(given)
    with Store.open(tmp_path / "study.db") as store:
        study = open_study(given, store, environment)
        first = Ledger(given, store, study, environment)
        (lost,) = first.propose()
        first.close("interrupted")
        ledger = Ledger(given, store, study, environment)
        ask = ledger.strategy.ask

        def broken(n: int = 1) -> list[Proposal]:
            raise StoreError("not now")

        ledger.strategy.ask = broken  # type: ignore[method-assign]
        with pytest.raises(StoreError):
            ledger.propose(2)
        ledger.strategy.ask = ask  # type: ignore[method-assign]
        again = ledger.propose(2)
        assert again[0].id == lost.id and len(again) == 2
        ledger.close("closed")


class Forgetful(Store):
    """Cannot tell what a study came to, as where the disk fails."""

    def results_from(self, study_id: int, first: int) -> tuple[int, list[ResultRecord]]:
        raise StoreError("not now")


def test_a_search_that_cannot_take_up_its_study_is_over(tmp_path: Path) -> None:
    """Its session stayed open: for as long as the process lived, nobody else could have its lost trial."""
    given = spec(tmp_path)
    environment = capture_environment(given)
    with Forgetful.open(tmp_path / "study.db") as failing, Store.open(tmp_path / "study.db") as store:
        study = open_study(given, store, environment)
        first = Ledger(given, store, study, environment)
        first.propose()
        first.close("interrupted")
        with pytest.raises(StoreError):
            Ledger(given, failing, study, environment)
        assert [session.reason for session in store.sessions(study.record.id)] == ["interrupted", "crashed"]
        assert [trial.status for trial in store.trials(study.record.id)] == [Status.LOST]


def test_measuring_the_finalists_again_is_no_time_of_searching(
    tmp_path: Path, search: Callable[..., autotune.Result]
) -> None:
    result = search(trials=5)
    searched = [trial.finished_at for trial in result.trials if trial.purpose == "search"]
    with Store.open(tmp_path / "study.db") as store:
        study = store.study()
        assert len(store.trials(study.id, purpose="final")) > 0
        (session,) = store.sessions(study.id)
        assert seconds_searched(store, study.id) == max(searched) - session.started_at
