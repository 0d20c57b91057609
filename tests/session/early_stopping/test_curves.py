"""Reports of trials: what is learned from them is what stands in the store, from whichever session."""

from __future__ import annotations

from pathlib import Path

from autotune.measure.outcome import Report
from autotune.session.early_stopping.curves import Curves
from autotune.store.store import Store
from tests.store.build import bench


def test_nobody_learns_from_a_report_before_it_is_written(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as store:
        own = bench(store)
        trial = own.trial(1)
        curves = Curves(store, own.study.id, "loss", (1, 3))
        curves.add(trial.id, Report(1, {"loss": 0.5}))
        assert list(curves.news()) == [] and curves.last(trial.number) is None
        curves.write()
        assert list(curves.news()) == [(trial.number, 1, 0.5)]
        assert list(curves.news()) == [], "each is read once"


def test_the_rungs_that_a_trial_has_passed_are_those_of_all_sessions(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as store:
        own = bench(store)
        one, other = own.trial(1), own.trial(2)
        mine, its = (Curves(store, own.study.id, "loss", (1, 3)) for _ in range(2))
        for step, loss in ((1, 0.9), (2, 0.8), (4, 0.6)):
            mine.add(one.id, Report(step, {"loss": loss}))
        its.add(other.id, Report(3, {"loss": 0.7}))
        its.add(other.id, Report(5, {"time": 2.0}))
        mine.write()
        its.write()
        for curves in (mine, its):
            list(curves.news())
            assert curves.of(one.number) == [(1, 0.9), (3, 0.6)]
            assert curves.of(other.number) == [(1, 0.7), (3, 0.7)]
            last = curves.last(other.number)
            assert last is not None and last.step == 3, "a report without the metric says nothing"
