"""A study in an Optuna storage: Optuna itself reads it, ranks its knobs and finds its best trial."""

from __future__ import annotations

import math
import os
import signal
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import optuna
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import RDBStorage
from optuna.trial import TrialState

from autotune.errors import InputError, OutputError
from autotune.interop.exports.optuna import distributions_of, export_study, frozen
from autotune.measure.outcome import Estimate
from autotune.space.configuration import Configuration
from autotune.space.knobs import Choice, FloatRange, IntegerRange
from autotune.space.knobs.knob import Knob
from autotune.space.space import Space
from autotune.store.store import Store
from tests.interop.exported import make, make_mixed, make_of


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make(tmp_path / "study.db")


@pytest.mark.parametrize("where", ["sqlite:///{}/optuna.db", "{}/optuna.sqlite", "{}/optuna.log"])
def test_optuna_reads_it(store: Store, tmp_path: Path, where: str) -> None:
    address = where.format(tmp_path)
    name, trials = export_study(store, store.study(), address)
    assert (name, trials) == ("odd <name>#1", 8)
    study = optuna.load_study(study_name=name, storage=opened(address))
    assert study.best_trial.number == 5 and study.best_value == pytest.approx(1 / 6)
    assert study.metric_names == ["time"]
    states = [trial.state for trial in study.trials]
    assert states == [TrialState.COMPLETE] * 6 + [TrialState.FAIL, TrialState.PRUNED]
    assert study.trials[7].intermediate_values == {1: 2.0, 2: 0.9}
    assert study.trials[6].user_attrs["autotune.status"] == "crashed"
    assert study.user_attrs["autotune.workload"] == {"m": 960}
    assert study.user_attrs["autotune.verdict"]["label"] == "trial 5"
    assert study.trials[0].datetime_complete is not None


def opened(address: str) -> object:
    if address.endswith(".log"):
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        return JournalStorage(JournalFileBackend(address))
    return address if "://" in address else f"sqlite:///{address}"


def test_an_interrupt_in_the_midst_of_a_trial_leaves_nothing_behind(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the midst of a commit it left the database locked, with half a study that nobody could replace."""
    write, ended = RDBStorage.create_new_trial, []

    def interrupted(*given: object, **named: object) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        ended.append(write(*given, **named))  # type: ignore[arg-type]
        return ended[-1]

    monkeypatch.setattr(RDBStorage, "create_new_trial", interrupted)
    with pytest.raises(KeyboardInterrupt):
        export_study(store, store.study(), str(tmp_path / "optuna.db"))
    assert len(ended) == 1, "the trial had been torn"
    monkeypatch.undo()
    assert export_study(store, store.study(), str(tmp_path / "optuna.db")) == ("odd <name>#1", 8)


@pytest.mark.long
def test_a_database_that_takes_nothing_more_is_no_traceback(store: Store, tmp_path: Path) -> None:
    """Nor does it take back what it took: that is said."""
    file = tmp_path / "optuna.db"
    RDBStorage(f"sqlite:///{file}")
    with closing(sqlite3.connect(file)) as database:
        refused = "BEGIN INSERT INTO room VALUES (1); END"  # there is none
        database.execute(f"CREATE TRIGGER no_trial BEFORE INSERT ON trials {refused}")
        database.execute(f"CREATE TRIGGER no_end BEFORE DELETE ON studies {refused}")
    with pytest.raises(OutputError, match="Optuna cannot write to") as caught:
        export_study(store, store.study(), str(file))
    assert "what was written is left in the study 'odd <name>#1': delete it" in str(caught.value)


def test_its_knobs_are_what_they_are(store: Store, tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/optuna.db"
    name, _ = export_study(store, store.study(), address)
    study = optuna.load_study(study_name=name, storage=address)
    assert study.trials[0].distributions == {
        "tile": CategoricalDistribution([1, 2, 4, 8]),
        "depth": IntDistribution(1, 9, step=2),
        "width": IntDistribution(1, 64, log=True),
        "lr": FloatDistribution(1e-5, 1.0, log=True),
        "layout": CategoricalDistribution(["row", "column"]),
        "order": CategoricalDistribution(['["i", "j"]', '["j", "i"]']),
    }
    assert study.trials[1].params["order"] == '["j", "i"]'
    importance = optuna.importance.get_param_importances(study)
    assert {"tile", "order"} <= set(importance)
    frame = study.trials_dataframe()
    assert len(frame) == 8 and "params_lr" in frame


def test_lists_and_maps_are_categories_of_their_text(tmp_path: Path) -> None:
    store = make_mixed(tmp_path / "mixed.db")
    address = f"sqlite:///{tmp_path}/optuna.db"
    name, trials = export_study(store, store.study(), address)
    study = optuna.load_study(study_name=name, storage=address)
    assert trials == len(study.trials) == 10
    tried = [trial.params for trial in study.trials]
    assert {params.get("layout") for params in tried} == {"row", "[1, 2]", True, 1.5, None}
    assert {params.get("layout[deep]") for params in tried} == {'{"er": [1]}', None}


def test_true_and_one_stay_apart(tmp_path: Path) -> None:
    """To Optuna they are equal: every trial with ``true`` had come out as one with 1."""
    space = Space([Choice("threads", (1, True, "all")), Choice("copies", (1, 2))], [])
    store = make_of(space, tmp_path / "study.db")
    address = f"sqlite:///{tmp_path}/optuna.db"
    name, _ = export_study(store, store.study(), address)
    tried = [trial.params for trial in optuna.load_study(study_name=name, storage=address).trials]
    assert [params["threads"] for params in tried] == ["1", "1", "true", "true", '"all"', '"all"']
    assert [params["copies"] for params in tried] == [1, 2] * 3


def test_it_can_go_on_being_searched_by_optuna(store: Store, tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/optuna.db"
    name, _ = export_study(store, store.study(), address)
    study = optuna.load_study(study_name=name, storage=address, sampler=optuna.samplers.TPESampler(seed=0))
    trial = study.ask(study.trials[0].distributions)
    study.tell(trial, 0.01)
    assert study.best_trial.number == 8


def test_powers_of_two_and_steps_go_on_as_they_are(tmp_path: Path) -> None:
    """Optuna had been free to try 5 of 4, 8, 16, and on a linear scale."""
    space = Space([IntegerRange("width", 4, 16, scale="log2"), FloatRange("share", 0.1, 0.75, 0.2)])
    store = make_of(space, tmp_path / "study.db")
    address = f"sqlite:///{tmp_path}/optuna.db"
    name, trials = export_study(store, store.study(), address)
    study = optuna.load_study(study_name=name, storage=address, sampler=optuna.samplers.RandomSampler(seed=0))
    asked = study.trials[0].distributions
    assert asked == {
        "width": CategoricalDistribution([4, 8, 16]),
        "share": FloatDistribution(0.1, 0.7, step=0.2),
    }
    drawn = [study.ask(asked).params for _ in range(20)]
    assert trials == 12 and all(space.configuration(params) in space for params in drawn)


def test_scales_and_steps_where_they_fit_what_was_tried(tmp_path: Path) -> None:
    store = make_mixed(tmp_path / "mixed.db")
    first = store.trials(store.study().id)[0]

    def exported(knob: Knob, *tried: float) -> BaseDistribution:
        study = replace(store.study(), document={"space": Space([knob]).to_document()})
        trials = [replace(first, configuration=Configuration({"x": value})) for value in tried]
        return distributions_of(study, trials)["x"]

    log = FloatDistribution(0.001, 1.0, log=True)
    assert exported(FloatRange("x", 0.001, 1.0, scale="log2"), 0.1) == log
    assert exported(FloatRange("x", 0.001, 1.0, 0.001, scale="log2"), 0.1) == log
    assert exported(FloatRange("x", 0.0, 1.0, 0.25), 0.5, 0.6) == FloatDistribution(0.0, 1.0)
    assert exported(FloatRange("x", 0.0, 1.0, 0.25), 0.5, 1.25) == FloatDistribution(0.0, 1.25)
    assert exported(IntegerRange("x", 4, 16, scale="log2"), 4, 6) == CategoricalDistribution([4, 6, 8, 16])
    assert exported(IntegerRange("x", 1, 9, 2, scale="log"), 3) == IntDistribution(1, 9, step=2)
    # What it was before it was a range of integers.
    assert exported(IntegerRange("x", 1, 9), 3, 0.5) == FloatDistribution(0.5, 9.0)
    assert exported(IntegerRange("x", 1, 9, scale="log"), 3, 0.5) == FloatDistribution(0.5, 9.0, log=True)


def test_what_cannot_be_is_refused(store: Store, tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/optuna.db"
    export_study(store, store.study(), address)
    with pytest.raises(InputError, match="has a study odd <name>#1 already"):
        export_study(store, store.study(), address)
    for wrong in ("sqlite:////nowhere/at/all.db", "nothing://x", f"{tmp_path}/none/x.log"):
        with pytest.raises((OutputError, OSError)):
            export_study(store, store.study(), wrong)


def test_a_space_that_is_not_known_gives_categories(tmp_path: Path) -> None:
    from tests.store.build import bench, outcome

    store = Store.open(tmp_path / "plain.db")
    own = bench(store)
    for tile in (1, 2):
        store.finish(own.trial(tile).id, outcome())
    address = f"sqlite:///{tmp_path}/optuna.db"
    name, _ = export_study(store, own.study, address)
    study = optuna.load_study(study_name=name, storage=address)
    assert study.trials[0].distributions["tile"] == CategoricalDistribution([1, 2])
    assert study.trials[0].params["place[embed]"] == 0


def test_a_number_that_is_none_is_a_failure(tmp_path: Path) -> None:
    store = make_mixed(tmp_path / "mixed.db")
    study = store.study()
    [first, *_] = store.trials(study.id)
    nan = replace(first, metrics={"time": Estimate(math.nan, math.nan, math.nan, 1, 0.0)})
    made = frozen(nan, study.goals, distributions_of(study, [nan]), {})
    assert made.state is TrialState.FAIL and made.value is None
