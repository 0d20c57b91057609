"""Where the search of one workload stands, followed from result to result."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from autotune.measure.outcome import Estimate, Outcome
from autotune.session.families.standing import Follower
from autotune.space.configuration import Configuration
from autotune.space.reading.reader import parse_spec
from autotune.status import Status
from autotune.store.records import NewTrial
from autotune.store.store import Store
from tests.store.build import Bench, bench, outcome

SPACE = """
autotune: 1
name: gemm
objective: objective.py:measure
metrics: {time: {goal: GOAL}}
knobs: {tile: {range: [1, 9]}}
"""


def propose(made: Bench, *tiles: int) -> list[int]:
    new = [NewTrial(Configuration({"tile": tile}), "search", "random", {}, 0, 0) for tile in tiles]
    written = made.store.propose(made.place, new)
    return [trial.id for trial in written if trial is not None]


@pytest.mark.parametrize(("goal", "sign"), [("minimize", 1), ("maximize", -1)])
def test_it_is_the_same_whether_it_was_followed_or_read_at_once(tmp_path: Path, goal: str, sign: int) -> None:
    (tmp_path / "objective.py").write_text("def measure(tile): return 1.0\n")
    spec = parse_spec(SPACE.replace("GOAL", goal), tmp_path / "space.yaml", {})
    with Store.open(tmp_path / "s.db") as store:
        made = bench(store)
        follower = Follower(store, made.study.id, spec)
        assert follower.standing(False).bests == ()
        first, second, third, outside = propose(made, 1, 2, 3, 99)
        endings = [
            (second, outcome(Status.CRASHED), [math.inf]),
            (first, outcome(value=2.0), [math.inf, sign * math.log(2.0)]),
            (outside, outcome(value=0.01 if sign == 1 else 100.0), [math.inf, sign * math.log(2.0)]),
            (third, outcome(value=-1.0), [math.inf, sign * math.log(2.0), min(sign * math.log(2.0), 0.0)]),
        ]
        for trial_id, ended, bests in endings:
            store.finish(trial_id, ended)
            standing = follower.standing(False)
            assert standing.bests == pytest.approx(tuple(bests)) and standing.tries == 3
            assert standing == Follower(store, made.study.id, spec).standing(False)
        propose(made, 4)
        standing = follower.standing(True)
        assert standing.tries == 4 and standing.closed


@pytest.mark.parametrize(
    ("ended", "best"),
    [(outcome(Status.PRUNED, metrics={"time": Estimate.of_one(0.5)}), math.inf), (outcome(value=0.0), 0.0)],
)
def test_what_has_no_value_to_compare(tmp_path: Path, ended: Outcome, best: float) -> None:
    """A trial that was stopped early has only the value it had come to, and 0 has no logarithm."""
    (tmp_path / "objective.py").write_text("def measure(tile): return 1.0\n")
    spec = parse_spec(SPACE.replace("GOAL", "minimize"), tmp_path / "space.yaml", {})
    with Store.open(tmp_path / "s.db") as store:
        made = bench(store)
        [trial_id] = propose(made, 1)
        store.finish(trial_id, ended)
        assert Follower(store, made.study.id, spec).standing(False).bests == (best,)
