"""Studies of a store beside each other."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.report.comparison import (
    _times,
    differences_between,
    load_all,
    rank_correlations,
    regressions,
    what_transfers,
)
from autotune.report.differences.studies import diff_studies
from autotune.report.figures_compare import progress_figure
from autotune.report.overview import comparable, outcomes, running, studies
from autotune.status import Status
from autotune.store.store import Store
from tests.report.studies import Written, generated
from tests.store.build import bench, new_trial, outcome


def two(folder: Path, factors: tuple[float, float] = (1.0, 2.0)) -> Store:
    """Two studies of ten configurations; in the second all takes twice as long."""
    store = Store.open(folder / "two.db")
    for factor in factors:
        one = bench(store)
        for tile in range(10):
            [trial] = store.propose(one.place, [new_trial(tile)])
            assert trial is not None
            store.finish(trial.id, outcome(value=factor * (1.0 + abs(tile - 3))))
    return store


def test_the_same_order_is_a_correlation_of_one(tmp_path: Path) -> None:
    store = two(tmp_path)
    assert comparable(store) == ["gemm#1", "gemm#2"]
    [row] = rank_correlations(load_all(store, [1, 2])).to_dict("records")
    assert (row["common"], row["correlation"]) == (10, pytest.approx(1.0))


@pytest.mark.filterwarnings("error")
def test_where_all_came_to_the_same_there_is_no_order(tmp_path: Path) -> None:
    [row] = rank_correlations(load_all(two(tmp_path, (0.0, 1.0)), [1, 2])).to_dict("records")
    assert row["common"] == 10 and math.isnan(row["correlation"])


def test_the_best_of_one_is_the_best_of_the_other(tmp_path: Path) -> None:
    frame = what_transfers(load_all(two(tmp_path), [1, 2]))
    assert frame["over_best"].tolist() == [1.0, 1.0]
    assert frame["value"].tolist() == [2.0, 1.0]


def test_a_best_of_zero_is_over_nothing(tmp_path: Path) -> None:
    frame = what_transfers(load_all(two(tmp_path, (0.0, 1.0)), [1, 2]))
    assert frame["value"].tolist() == [4.0, 0.0]  # the first of ten that are all 0, and one that is 0 there
    assert frame["over_best"].tolist() == [4.0, 1.0]


@pytest.mark.parametrize(
    ("worse", "better", "sign", "times"),
    [(4.0, 2.0, 1.0, 2.0), (2.0, 4.0, -1.0, 2.0), (0.0, 0.0, 1.0, 1.0), (1.0, 0.0, 1.0, math.nan),
     (0.0, 1.0, -1.0, math.nan), (-1.0, -2.0, 1.0, math.nan), (math.nan, 1.0, 1.0, math.nan)],
)  # fmt: skip
def test_a_ratio_that_says_nothing_is_none(worse: float, better: float, sign: float, times: float) -> None:
    assert _times(worse, better, sign) == pytest.approx(times, nan_ok=True)


def test_twice_as_long_is_worse(tmp_path: Path) -> None:
    frame = regressions(load_all(two(tmp_path), [1, 2])).set_index("who")
    assert frame.loc["winner", "verdict"] == "worse"
    assert frame.loc["winner", "ratio"] == pytest.approx(2.0)
    assert frame.loc["default", "verdict"] == "not measured"


def test_studies_of_other_workloads_are_no_regressions(tmp_path: Path) -> None:
    """Of a search over several sizes each larger size was said to be worse than the first."""
    evidences = load_all(two(tmp_path), [1, 2, 1, 2])
    larger = {"n": 4096}
    mixed = [
        evidences[0],
        *(replace(one, study=replace(one.study, workload=larger)) for one in evidences[1:3]),
        evidences[3],
    ]
    frame = regressions(mixed).query("who == 'winner'")
    assert frame["ratio"].tolist() == pytest.approx([0.5, 2.0])
    assert frame["verdict"].tolist() == ["better", "worse"]


def test_what_is_the_same_is_not_listed(tmp_path: Path) -> None:
    frame = differences_between(load_all(two(tmp_path), [1, 2]))
    assert frame["study"].tolist() == ["gemm#1", "gemm#2"]
    assert "workload" not in frame.columns and "best" in frame.columns


def test_the_overview_says_how_each_stands(tmp_path: Path) -> None:
    with generated(tmp_path) as store:
        [row] = studies(store).to_dict("records")
    assert row["state"] == "finished" and row["trials"] == 120
    assert row["against_default"] == "better" and row["speedup"] > 1.0
    written = Written(tmp_path)
    written.trial({"tile": 1}, status=Status.CRASHED)
    written.begin({"tile": 2})
    [row] = studies(written.store).to_dict("records")
    assert (row["state"], row["in_flight"], row["against_default"]) == ("searching", 1, "nothing succeeded")
    assert running(written.store)["trial"].tolist() == [1]
    assert outcomes(written.store).query("failed")["status"].tolist() == ["crashed"]


def test_the_overview_tells_a_search_that_was_broken_off_from_one_that_is_at_it(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.trial({"tile": 1}, 1.0)
    written.search_that_died()
    written.begin({"tile": 2})
    [row] = studies(written.store).to_dict("records")
    assert (row["state"], row["trials"], row["succeeded"], row["in_flight"]) == ("stopped", 2, 1, 0)
    assert running(written.store).empty


def test_what_the_colours_of_progress_mean_is_beside_its_bars(tmp_path: Path) -> None:
    """Of a few studies the bars fill the plot: the words could not be read on them."""
    with generated(tmp_path) as store:
        figure = progress_figure(studies(store))
    figure.draw_without_rendering()
    [axes] = figure.axes
    legend = axes.get_legend()
    assert legend is not None
    assert legend.get_window_extent().y0 >= axes.get_window_extent().y1


def test_a_store_without_studies(tmp_path: Path) -> None:
    with Store.open(tmp_path / "none.db") as store:
        assert studies(store).empty and running(store).empty and outcomes(store).empty
        assert comparable(store) == []


@pytest.mark.parametrize(
    ("factors", "how"), [((1.0, 2.0), "10 configurations that both"), ((0.0, 1.0), "no ratio")]
)
def test_what_two_studies_share_is_compared_or_said_why_not(
    tmp_path: Path, factors: tuple[float, float], how: str
) -> None:
    with two(tmp_path, factors) as store:
        found = diff_studies(store, store.study("1"), store.study("2"))
    assert how in found.contrasts[-1].how
