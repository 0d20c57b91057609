"""Tuning real models: the tasks train, and the methods are ranked and scored as defined."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from autotune.search.models.features import only_ranges
from benchmarks.mixed_report import Run, Scale, mean_ranks, scales, tables
from benchmarks.mixed_spaces import Losses, Search, run
from benchmarks.mixed_tasks import TASKS
from benchmarks.peers.described import described
from benchmarks.range_tasks import RANGE_TASKS


@pytest.mark.parametrize("name", TASKS)
def test_the_default_of_every_task_trains_the_same_twice(name: str) -> None:
    task = TASKS[name]
    default = task.space.default()
    loss = task.loss(default)
    assert loss is not None and 0 < loss < 3 and task.loss(default) == loss


@pytest.mark.parametrize("name", TASKS)
def test_every_task_can_be_described_to_peers(name: str) -> None:
    knobs = described(TASKS[name].space)
    assert {knob.kind for knob in knobs} >= {"float", "choice"}


@pytest.mark.parametrize("name", RANGE_TASKS)
def test_a_task_of_ranges_alone_trains_and_has_no_other_knobs(name: str) -> None:
    task = RANGE_TASKS[name]
    loss = task.loss(task.space.default())
    assert loss is not None and 0 < loss < 3
    assert only_ranges(task.space)


def test_a_loss_is_trained_once_where_there_is_a_cache(tmp_path: Path) -> None:
    task, path = TASKS["svm-diabetes"], tmp_path / "cache.jsonl"
    default = task.space.default()
    loss = Losses(task, path).of(default)
    text = path.read_text()
    assert Losses(task, path).of(default) == loss and path.read_text() == text


def test_a_search_begins_with_the_default(tmp_path: Path) -> None:
    task = TASKS["svm-diabetes"]
    line = run(Search(task.name, "random", 0, 3, tmp_path / "cache.jsonl"))
    losses = line["losses"]
    assert isinstance(losses, list) and len(losses) == 3 and losses[0] == task.loss(task.space.default())


def made(method: str, losses: list[float], task: str = "t", seed: int = 0) -> Run:
    return Run(task, method, seed, 1.0, "x 1", tuple(losses))


def test_ranks_are_shared_by_ties() -> None:
    runs = [made(name, [loss]) for name, loss in zip("abcd", (3.0, 1.0, 1.0, math.inf), strict=True)]
    assert mean_ranks(runs) == {"a": 3.0, "b": 1.5, "c": 1.5, "d": 4.0}


def test_mean_ranks_are_over_tasks_and_seeds() -> None:
    runs = [made("a", [1.0]), made("b", [2.0]), made("a", [5.0], seed=1), made("b", [5.0], seed=1)]
    assert mean_ranks(runs) == {"a": 1.25, "b": 1.75}


def test_the_score_of_the_challenge() -> None:
    scale = Scale(optimum=1.0, guess=3.0)
    assert scale.score([1.0]) == 100 and scale.score([3.0]) == 0 and scale.score([1.0, 2.0]) == 75
    assert scale.score([1e12]) == 0 and scale.score([-50.0]) == 200  # kept within bounds


def test_a_guess_is_the_median_of_random_trials_without_the_default() -> None:
    runs = [made("random", [0.5, 4.0, math.inf, 2.0]), made("a", [0.25])]
    assert scales(runs) == {"t": Scale(0.25, 4.0)}


def test_methods_with_fewer_searches_are_compared_on_what_all_have() -> None:
    both = [made(m, [1.0, 2.0], seed=seed) for m in ("random", "a") for seed in (0, 1)]
    lines = tables([*both, made("late", [0.5])])
    assert sum(line.startswith("| late ") for line in lines) == 1
    assert any("on the 1 searches" in line for line in lines)


def test_methods_that_share_no_search_are_not_compared() -> None:
    """After a kill each may have as many searches as the others, but not the same; it was a traceback."""
    apart = [made("random", [1.0, 2.0]), made("a", [1.0, 2.0], seed=1)]
    assert tables(apart)[-1] == "No search (task and seed) is one that all methods have."


def test_without_random_search_there_is_no_score() -> None:
    """It was a traceback about the mean of nothing."""
    assert tables([made("a", [1.0, 2.0])])[-1] == "| a | 1 | 1.00 | - | 1.00 |"
