"""Trials and studies whose metrics have other units."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.report.differences.studies import diff_studies
from autotune.report.differences.trials import diff_trials
from tests.report.studies import Written


def studies_in(folder: Path, *units: str) -> list[Written]:
    """Studies of one store that differ in the unit of their time."""
    return [
        Written(folder, key=unit, metrics=[{"name": "time", "goal": "minimize", "unit": unit}])
        for unit in units
    ]


def test_values_in_other_units_of_one_kind_are_compared_in_the_unit_of_the_one(tmp_path: Path) -> None:
    """2 ms, declared as such, had been a thousand times worse than 0.002 s, and were shown as 2 s."""
    own, other = studies_in(tmp_path, "s", "ms")
    for tile in (1, 2, 4, 8, 16, 32):
        own.trial({"tile": tile, "layout": "row"}, 0.002 * tile)
        other.trial({"tile": tile, "layout": "row"}, 1.0 * tile)
    _, winners, shared = diff_studies(own.store, own.study, other.study).contrasts
    one, its = (own.store.trials(study.id)[0] for study in (own.study, other.study))
    [trials] = diff_trials(own.store, one, its).contrasts
    for contrast in (winners, trials):
        assert (contrast.unit, contrast.one) == ("s", pytest.approx((0.002, 0.0018, 0.0022)))
        assert contrast.other == pytest.approx((0.001, 0.0009, 0.0011))
    for contrast in (winners, trials, shared):
        assert contrast.answer == "better" and contrast.ratio is not None
        assert contrast.ratio[0] == pytest.approx(2.0)


def test_what_was_gained_over_the_default_is_compared_in_one_unit(tmp_path: Path) -> None:
    own, other = studies_in(tmp_path, "s", "ms")
    for study, gain in ((own, 0.003), (other, 3.0)):
        study.trial({"tile": 1, "layout": "row"}, 1.0)
        found = {"against": "the default", "estimate": gain, "low": gain, "high": gain}
        study.verdict({"tile": 4, "layout": "row"}, speedup=None, gain=found)
    contrast = diff_studies(own.store, own.study, other.study).contrasts[0]
    assert (contrast.metric, contrast.unit) == ("better than the default by", "s")
    assert contrast.one == pytest.approx(contrast.other) == (0.003, 0.003, 0.003)


def test_how_much_runs_differ_is_said_in_one_unit(tmp_path: Path) -> None:
    """Of values that are not above 0: milliseconds would count as seconds."""
    own, other = studies_in(tmp_path, "s", "ms")
    for purpose, value in (("search", -0.001), ("final", 0.001)):
        own.trial({"tile": 1, "layout": "row"}, value, purpose=purpose)
        other.trial({"tile": 1, "layout": "row"}, value * 1000, purpose=purpose)
    one, its = (own.store.trials(study.id)[0] for study in (own.study, other.study))
    [trials] = diff_trials(own.store, one, its).contrasts
    winners = diff_studies(own.store, own.study, other.study).contrasts[1]
    for contrast in (trials, winners):
        assert "runs of the same thing differ by 1.414 ms" in contrast.how


def test_values_of_another_kind_are_not_compared(tmp_path: Path) -> None:
    own, other = studies_in(tmp_path, "s", "J")
    for study in (own, other):
        study.trial({"tile": 1, "layout": "row"}, 2.0)
    _, winners = diff_studies(own.store, own.study, other.study).contrasts
    one, its = (own.store.trials(study.id)[0] for study in (own.study, other.study))
    for contrast in (winners, *diff_trials(own.store, one, its).contrasts):
        assert (contrast.answer, contrast.how) == ("not comparable", "one is in s, the other in J")
        assert contrast.one is contrast.other is None
