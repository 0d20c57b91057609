"""Benchmarks on several devices: what they compare, and that they go on where they stood."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks import async_sgd, communication, horovod_procedure
from benchmarks.kept import Kept


def test_horovods_procedure_finds_what_is_better_than_its_given_points() -> None:
    def score(threshold: float, cycle: float) -> float:
        return -(((threshold - 50) / 64) ** 2) - ((cycle - 20) / 100) ** 2

    tried = horovod_procedure.tune(score, seed=1)
    assert len(tried) == horovod_procedure.SAMPLES
    assert tuple((t.threshold, t.cycle) for t in tried[:4]) == horovod_procedure.GIVEN
    assert max(t.score for t in tried[4:]) > max(t.score for t in tried[:4])
    (low, high), (least, most) = horovod_procedure.BOUNDS
    assert all(low <= t.threshold <= high and least <= t.cycle <= most for t in tried)
    assert tried == horovod_procedure.tune(score, seed=1)


def test_what_is_tuned_without_compression_and_with_it() -> None:
    for case in communication.CASES:
        exact, compressed = (communication.spec_of(case, flag) for flag in (False, True))
        assert "compression" not in exact.space.default() and "compression" in compressed.space.default()
        assert exact.workload["link"]["bandwidth"] == case.gigabits * 1e9
    assert len({case.name for case in communication.CASES}) == len(communication.CASES) >= 6


def test_the_grid_is_in_the_space() -> None:
    space = communication.spec_of(communication.CASES[0]).space
    points = list(communication.grid_points())
    assert all(space.configuration(knobs) in space for knobs in points)
    assert len({space.configuration(knobs).hash for knobs in points}) == len(points)


def test_each_mode_is_searched_alone() -> None:
    for case in async_sgd.CASES:
        for mode in async_sgd.MODES:
            spec = async_sgd.spec_of(case, mode)
            assert spec.space.default()["mode"] == mode
            sampled = spec.space.sample(np.random.default_rng(0), 20)
            assert {one["mode"] for one in sampled} == {mode}
        assert async_sgd.spec_of(case).space.default()["mode"] == "allreduce"


def test_what_was_made_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "kept.jsonl"
    made: list[int] = []

    def make() -> dict[str, tuple[int, ...]]:
        made.append(1)
        return {"values": (1, 2)}

    first = Kept(file).get_or_make(make, case="a", seed=0)
    again = Kept(file).get_or_make(make, seed=0, case="a")
    assert first == again == {"values": [1, 2]} and len(made) == 1
    Kept(file).get_or_make(make, case="a", seed=1)
    assert len(made) == 2 and len(file.read_text().splitlines()) == 2
