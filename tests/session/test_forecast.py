"""How long a search will take: the sum of stages that overlap, with a range that covers what comes."""

from __future__ import annotations

import random
from pathlib import Path
from statistics import mean

import pytest

from autotune.session.forecast import Cost, duration, mean_cost, seconds_of_finale, trials_to_go
from autotune.space.reading.reader import read_family


def test_measuring_sets_the_pace_where_preparing_is_quick() -> None:
    lasts = duration([Cost(1.0, 4.0)] * 5, trials=10, preparers=1)
    assert lasts.seconds == pytest.approx(1.0 + 10 * 4.0)
    assert lasts.low == lasts.high == pytest.approx(lasts.seconds), "equal trials leave no doubt"


def test_preparing_sets_the_pace_where_it_is_slow_and_is_shared_by_its_workers() -> None:
    assert duration([Cost(8.0, 1.0)] * 5, trials=10, preparers=4).seconds == pytest.approx(8.0 + 10 * 2.0)


def test_nothing_overlaps_on_one_core() -> None:
    assert duration([Cost(8.0, 1.0)] * 5, trials=10, preparers=0).seconds == pytest.approx(90.0)


def test_one_trial_gives_no_range_and_no_trial_to_go_takes_no_time() -> None:
    alone = duration([Cost(1.0, 2.0)], trials=3, preparers=1)
    assert alone.seconds == pytest.approx(7.0) and alone.low is None and alone.high is None
    done = duration([Cost(1.0, 2.0), Cost(1.0, 3.0)], trials=0, preparers=1)
    assert (done.seconds, done.low, done.high) == (0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="at least one"):
        duration([], trials=3, preparers=1)


def test_the_mean_counts_preparing_and_measuring_apart() -> None:
    assert mean_cost([Cost(1.0, 0.0), Cost(3.0, 4.0)]) == Cost(2.0, 2.0)


def test_the_range_covers_what_comes_as_often_as_it_says() -> None:
    rng = random.Random(0)

    def trials(n: int) -> list[Cost]:
        return [Cost(0.0, max(rng.gauss(3.0, 1.0), 0.0)) for _ in range(n)]

    covered = []
    for _ in range(400):
        lasts = duration(trials(8), trials=20, preparers=1)
        assert lasts.low is not None and lasts.high is not None
        covered.append(lasts.low <= sum(c.measure for c in trials(20)) <= lasts.high)
    assert 0.91 <= mean(covered) <= 0.99


@pytest.mark.parametrize(
    ("says", "seconds"),
    [
        ("objective: o.py:f\nbudget: {time: 10s}", 5.0 + 10.0),
        ("objective: o.py:f\nbudget: {time: 100s}", 20.0 + 20.0),
        ("command: [./bench]\nbudget: {time: 100s}", 20.0),
        ("objective: o.py:f\nbudget: {time: 100s}\nmeasure: {finalists: 0}", 0.0),
        ("objective: o.py:f\nbudget: {trials: 100}", None),
        (
            "objective: o.py:f\nbudget: {time: 10s}\nworkloads: [{m: 1}, {m: 2}, {m: 3, held_out: true}]",
            2 * 5.0 + 3 * (5.0 + 10.0),
        ),
        ("command: [./bench]\nbudget: {time: 100s}\nworkloads: [{m: 1}, {m: 2}]", 4 * 10.0),
    ],
)
def test_what_comes_after_the_time_of_the_search(tmp_path: Path, says: str, seconds: float | None) -> None:
    space = tmp_path / "space.yaml"
    space.write_text(f"autotune: 1\nname: given\n{says}\nknobs: {{a: {{values: [1, 2]}}}}\n")
    assert seconds_of_finale(read_family(space, device={})) == seconds


@pytest.mark.parametrize(
    ("budget", "most", "tried", "to_go"),
    [
        ("trials: 100", 30, 0, 30),
        ("trials: 20", 30, 5, 15),
        ("trials: 20", 30, 21, 0),  # with a smaller budget than before
        ("trials: 20", 10_000_000, 0, 20),
        ("time: 10s", 30, 5, 25),
        ("time: 10s", 10_000_000, 0, None),  # nobody waits for so many
    ],
)
def test_the_budget_and_the_space_bound_how_many_trials_are_left(
    tmp_path: Path, budget: str, most: int, tried: int, to_go: int | None
) -> None:
    space = tmp_path / "space.yaml"
    knobs = f"knobs: {{a: {{range: [1, {most}]}}}}"
    space.write_text(f"autotune: 1\nname: given\nobjective: o.py:f\nbudget: {{{budget}}}\n{knobs}\n")
    assert trials_to_go(read_family(space, device={}).specs[0], tried) == to_go
