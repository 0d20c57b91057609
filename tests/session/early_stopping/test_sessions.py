"""Early stopping from end to end: real worker processes and programs, interruptions, the store's record."""

from __future__ import annotations

import math
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import autotune
from autotune.measure.reports import Reporter
from autotune.provenance.environment import capture
from autotune.session.asktell import AskTell
from autotune.session.observing import observe_record
from autotune.session.reproduction.derivation import derive
from autotune.space.spec import MetricSpec
from autotune.status import Status
from autotune.store.records import TrialRecord
from autotune.store.store import Store
from tests.session.early_stopping.followed import PROGRAM, TRAIN, ends, spec, steps_of, train
from tests.session.heard import Heard

# -- the point of it -----------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["asha", "successive-halving", "hyperband"])
def test_it_finds_the_same_in_workers_with_a_fraction_of_the_steps(tmp_path: Path, policy: str) -> None:
    full = autotune.search(spec(tmp_path, "none"), store=tmp_path / "full.db", objective=train)
    result = autotune.search(spec(tmp_path, policy), store=tmp_path / "study.db")
    assert result.best == full.best and result.statuses.get("pruned", 0) >= 15
    used, all_of_them = steps_of(tmp_path / "study.db"), steps_of(tmp_path / "full.db")
    assert sum(all_of_them.values()) == 27 * 27
    assert sum(used.values()) < 0.4 * sum(all_of_them.values())
    crashed = [t for t in result.trials if t.status is Status.CRASHED]
    assert all(used[t.number] in (1, 2) and t.exit_code == 7 for t in crashed), "reports survive a worker"


def test_a_program_is_stopped_by_what_it_prints(tmp_path: Path) -> None:
    (tmp_path / "train_program.py").write_text(PROGRAM)
    command = f'command: ["{sys.executable}", -I, -S, -u, train_program.py, "{{x}}", "{{y}}"]'
    given = spec(tmp_path, "asha", objective=command, trials=12)
    result = autotune.search(given, store=tmp_path / "study.db")
    assert set(result.statuses) == {"ok", "pruned"} and result.statuses["pruned"] >= 6
    pruned = next(t for t in result.trials if t.status is Status.PRUNED)
    assert pruned.message.startswith(f"stopped after {pruned.facts['step']} of 27 epochs: ")
    assert len(steps_of(tmp_path / "study.db")) == 12


@pytest.mark.long
def test_two_searches_on_one_store_do_not_wait_for_each_other(tmp_path: Path) -> None:
    """The brackets of one hold none of what the other has paused."""
    given = spec(tmp_path, "hyperband", trials=16, steps=9)
    (tmp_path / "train.py").write_text(TRAIN.replace("(3, 2)", "(3, 99)"))
    (tmp_path / "space.yaml").write_text(given.text)
    command = [sys.executable, "-m", "autotune", "search", "space.yaml", "--store", "study.db", "--json"]
    both = [
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in "12"
    ]
    assert [process.wait(120) for process in both] == [0, 0]
    for process in both:
        process.communicate()
    with Store.open(tmp_path / "study.db", readonly=True) as store:
        trials = store.trials(store.study().id)
        assert store.integrity() == []
    assert {t.status for t in trials} == {Status.OK, Status.PRUNED}
    assert len({t.hash for t in trials}) == len(trials) >= 16


# -- what is kept and told -----------------------------------------------------------------------


def test_a_pruned_trial_is_kept_and_told_as_what_it_is(tmp_path: Path) -> None:
    result = autotune.search(spec(tmp_path, "asha"), store=tmp_path / "study.db", objective=train)
    pruned = [t for t in result.trials if t.status is Status.PRUNED]
    for trial in pruned:
        observation = observe_record(trial)
        step = trial.facts["step"]
        assert observation.fraction == step / 27 and observation.curve[-1][0] == step / 27
        assert observation.metrics["loss"] == observation.curve[-1][1] == trial.metrics["loss"].value
    complete = next(t for t in result.trials if t.status is Status.OK)
    assert observe_record(complete).fraction == 1.0
    assert [at * 27 for at, _ in observe_record(complete).curve] == pytest.approx([1, 3, 9])
    assert result.best in [t.configuration for t in result.trials if t.status is Status.OK]


def test_what_is_told_when_it_ends_is_what_is_told_after_a_resume(tmp_path: Path) -> None:
    def search(store: str, trials: int) -> autotune.Result:
        given = spec(tmp_path, "asha", strategy="optuna-tpe")
        return autotune.search(given, store=tmp_path / store, trials=trials, objective=train)

    unbroken = search("unbroken.db", 24)
    for trials in (5, 15, 24):
        broken = search("broken.db", trials)
    assert [t.configuration for t in broken.trials] == [t.configuration for t in unbroken.trials]
    assert ends(broken) == ends(unbroken)


@pytest.mark.parametrize("policy", ["asha", "successive-halving", "hyperband"])
def test_what_bayes_proposes_follows_from_what_trials_came_to_and_took(tmp_path: Path, policy: str) -> None:
    """By whichever session: two searches differ in what trials take, which is among what is told."""
    for trials in (5, 9, 13):
        given = spec(tmp_path, policy, strategy="bayes")
        autotune.search(given, store=tmp_path / "study.db", objective=train, trials=trials)
    with Store.open(tmp_path / "study.db", readonly=True) as store:
        found = derive(store, store.study())
    assert found.departure is None
    assert found.compared == 13


def test_of_several_goals_the_strategy_knows_which_one_trials_are_judged_by(tmp_path: Path) -> None:
    def both(x: int, y: int, report: Reporter) -> None:
        for step in range(1, (report.steps or 0) + 1):
            report(step, accuracy=0.9 - (x - 3) ** 2 / 90 - 1 / step, loss=1.0 + (y - 2) ** 2 + 1 / step)

    given = spec(tmp_path, "asha", strategy="bayes")
    early = given.search.early_stopping
    assert early is not None
    given = replace(
        given,
        metrics=(MetricSpec("accuracy", "maximize"), *given.metrics),
        search=replace(given.search, early_stopping=replace(early, metric="loss")),
    )
    result = autotune.search(given, store=tmp_path / "study.db", objective=both, trials=15)
    assert result.statuses["pruned"] >= 5
    with Store.open(tmp_path / "study.db") as store:
        found = derive(store, store.study())
        assert (found.departure, found.compared) == (None, 15)
        with closing(AskTell(given, store, capture())) as session:
            assert session._ledger.strategy.problem.judged == "loss"


def test_another_whole_resource_is_another_study(tmp_path: Path) -> None:
    first = autotune.search(spec(tmp_path, "asha", trials=3), store=tmp_path / "a.db", objective=train)
    given = spec(tmp_path, "asha", trials=3, steps=9)
    other = autotune.search(given, store=tmp_path / "a.db", objective=train)
    policy = autotune.search(spec(tmp_path, "none", trials=4), store=tmp_path / "a.db", objective=train)
    assert other.study.id != first.study.id and "resource" in other.study.differs
    assert policy.study.id != other.study.id


def test_finalists_are_run_to_their_end_again_a_few_times(tmp_path: Path) -> None:
    runs: list[int] = []

    def counted(x: int, y: int, report: Reporter) -> None:
        runs.append(0)
        for step in range(1, (report.steps or 0) + 1):
            runs[-1] = step
            report(step, loss=0.1 + (x - 5) ** 2 / 64 + (y - 2) ** 2 / 25 + 0.5 * math.exp(-step / 6))

    given = spec(tmp_path, "asha")
    given = replace(given, measure=replace(given.measure, finalists=2))
    result = autotune.search(given, store=tmp_path / "study.db", objective=counted)
    assert result.defended and result.speedup is not None and result.speedup.estimate > 1
    assert runs[27:] == [27] * 3 * 3, "the default and two finalists, three times"


# -- interruptions -------------------------------------------------------------------------------

OWN = ["asha", "async-hyperband", "successive-halving", "hyperband"]
OPTUNAS = [pytest.param(name, marks=pytest.mark.long) for name in ("optuna-median", "optuna-hyperband")]


@pytest.mark.parametrize("policy", [*OWN, *OPTUNAS])
def test_an_interrupted_search_ends_as_an_unbroken_one(tmp_path: Path, policy: str) -> None:
    given = spec(tmp_path, policy, trials=35)
    unbroken = autotune.search(given, store=tmp_path / "unbroken.db", objective=train)
    left = 0

    def interrupted(x: int, y: int, report: Reporter) -> None:
        nonlocal left
        left -= 1
        train(x, y, report, interrupt=left <= 0)

    for left in (5, 17, 9):  # noqa: B007 - the objective counts it down
        autotune.search(given, store=tmp_path / "broken.db", objective=interrupted)
    broken = autotune.search(given, store=tmp_path / "broken.db", objective=train)
    assert [t.configuration for t in broken.trials] == [t.configuration for t in unbroken.trials]
    assert ends(broken) == ends(unbroken) and broken.best == unbroken.best


@pytest.mark.parametrize(
    ("steps", "said"),
    [(range(1, 28), []), (range(27), ["before it reported step 27"]), (range(0), ["without any report"])],
    ids=["complete", "counted from 0", "silent"],
)
def test_a_training_that_does_not_report_all_its_steps_is_named_once(
    tmp_path: Path, steps: range, said: list[str]
) -> None:
    def short(x: int, y: int, report: Reporter) -> float:
        for step in steps:
            report(step, loss=x + y + 1 / (step + 1))
        return float(x + y)

    notes = Heard()
    given = spec(tmp_path, "none", trials=3)
    autotune.search(given, store=tmp_path / "study.db", objective=short, progress=notes)
    assert len(notes.notes) == len(said) and all(
        part in text for part, text in zip(said, notes.notes, strict=True)
    )


# -- ask and tell ----------------------------------------------------------------------------------


def test_ask_and_tell_stops_trials_as_well(tmp_path: Path) -> None:
    with autotune.ask_tell(spec(tmp_path, "asha"), store=tmp_path / "study.db") as session:
        for trial in session.ask(20):
            end = (trial.configuration["x"] - 5) ** 2 + 1.0
            for step in range(1, 28):
                if stop := session.report(trial, step, loss=end + 1 / step):
                    break
            status = stop.status if stop else Status.OK
            session.tell(trial, loss=end + 1 / step, status=status, message=stop.message if stop else "")
        result = session.result()
    assert result.statuses["pruned"] >= 10 and result.statuses["ok"] >= 1
    assert {t.facts["step"] for t in result.trials if t.status is Status.PRUNED} <= {1, 3, 9}
    assert all(observe_record(t).fraction < 1 for t in result.trials if t.status is Status.PRUNED)


# -- what goes wrong -----------------------------------------------------------------------------


def test_an_objective_that_reports_nothing_is_said_once(tmp_path: Path) -> None:
    notes = Heard()
    result = autotune.search(
        spec(tmp_path, "asha", trials=4),
        store=tmp_path / "study.db",
        objective=lambda x, y: float(x),
        progress=notes,
    )
    assert result.statuses == {"ok": 4}
    assert [note for note in notes.notes if "report(step, loss=...)" in note] == notes.notes[-1:]


def test_a_run_that_diverges_is_diverged(tmp_path: Path) -> None:
    def diverging(x: int, y: int, report: Reporter) -> None:
        report(1, loss=math.inf if x > 3 else 1.0)

    result = autotune.search(
        spec(tmp_path, "asha", trials=10), store=tmp_path / "study.db", objective=diverging
    )

    def expected(trial: TrialRecord) -> bool:
        return (trial.status is Status.DIVERGED) == (trial.configuration["x"] > 3)

    assert all(map(expected, result.trials)) and result.statuses["diverged"] >= 1
