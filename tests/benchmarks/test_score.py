"""The score of a search on a recorded space: its definition, and the published judge's verdicts."""

from __future__ import annotations

import importlib.util
from itertools import combinations
from pathlib import Path
from statistics import mean
from types import ModuleType

import numpy as np
import pytest

from autotune.errors import InputError
from autotune.measure.recordings.read import read_recording
from benchmarks.recorded_spaces import recordings
from benchmarks.report_efficiency import judged, table
from benchmarks.score import LEAST, MOST, Judge
from tests.recordings import record

SHARED = Path(__file__).parents[2].parent / "shared" / "recorded"


def judge_of(times: list[float | None], folder: Path) -> Judge:
    """Of a recording of one knob ``k`` = 0, 1, ... with these times in ms."""
    entries = [
        {"k": k, "time": "RuntimeFailedConfig" if time is None else time} for k, time in enumerate(times)
    ]
    return Judge(read_recording(record(folder / "made.json", {"k": range(len(times))}, entries)))


def tried(*places: int) -> list[dict[str, int]]:
    return [{"k": place} for place in places]


def test_the_baseline_is_the_expected_best_of_random_tries(tmp_path: Path) -> None:
    times = [5.0, 3.0, 8.0, 1.0, 9.0, 2.0]
    judge = judge_of([*times, None], tmp_path)
    filled = [*times, 9.0]
    for n in (1, 2, 3, 7):
        expected = mean(min(chosen) for chosen in combinations(filled, n))
        assert judge.baseline[n - 1] * 1e3 == pytest.approx(expected)
    assert judge.optimum == pytest.approx(1e-3)


TIMES = [float(100 + (37 * k) % 500) for k in range(500)]


class TestSearch:
    @pytest.fixture
    def judge(self, tmp_path: Path) -> Judge:
        return judge_of([*TIMES, None], tmp_path)

    def test_the_optimum_at_once_scores_one(self, judge: Judge) -> None:
        verdict = judge.judge(tried(TIMES.index(100.0)))
        assert verdict.score == pytest.approx(1) and verdict.r10 == verdict.r50 == verdict.r200 == 1

    def test_random_search_scores_about_nothing(self, judge: Judge) -> None:
        rng = np.random.default_rng(0)
        scores = [judge.judge(tried(*rng.permutation(500).tolist())).score for _ in range(200)]
        assert -0.1 < mean(scores) < 0.2  # somewhat above 0, since what is far below is cut off

    def test_repeats_and_strangers_cost_no_try(self, judge: Judge) -> None:
        assert judge.judge(tried(3, 3, 999, 3, 4)) == judge.judge(tried(3, 4))

    def test_a_failure_costs_a_try_and_yields_nothing(self, judge: Judge) -> None:
        assert judge.judge(tried(500, 4)).score < judge.judge(tried(4)).score
        assert judge.judge(tried(500, 4)).tries == 2

    def test_the_budget_keeps_its_bounds(self, judge: Judge) -> None:
        assert LEAST <= judge.budget <= MOST

    def test_nothing_tried_is_refused(self, judge: Judge) -> None:
        with pytest.raises(ValueError, match="no configuration"):
            judge.judge(tried(999))


def test_a_row_a_strategy_the_best_first(tmp_path: Path) -> None:
    judge = judge_of([float(k + 1) for k in range(300)], tmp_path)
    lines = [
        {"space": "made", "strategy": "lucky", "seed": 0, "seconds": 1.0, "configs": tried(0)},
        {"space": "made", "strategy": "slow", "seed": 0, "seconds": 2.0, "configs": tried(200)},
        {"space": "elsewhere", "strategy": "slow", "seed": 0, "seconds": 2.0, "configs": tried(0)},
    ]
    _, _, first, second = table(judged(lines, {"made": judge}), ["made"])
    assert first == "| lucky | 1 | 1.000 | 1.000 | 1.00 (1.00) | 1.00 |"
    assert second.startswith("| slow | 1 | -0.987")


@pytest.fixture(scope="module")
def published() -> ModuleType:
    """The judge that is published with the recordings."""
    path = SHARED / "score.py"
    if not path.exists():
        pytest.skip(f"there is no {path}: the recorded spaces are not here")
    spec = importlib.util.spec_from_file_location("published_score", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["convolution-mi250x", "pnpoly-rtx3090"])
def test_the_published_judge_agrees(published: ModuleType, name: str) -> None:
    ((_, path),) = recordings(SHARED, name)
    recording = read_recording(path)
    ours, theirs = Judge(recording), published.Recording(path)
    assert ours.budget == theirs.budget
    assert ours.baseline * 1e3 == pytest.approx(theirs.baseline, rel=1e-9)
    rng = np.random.default_rng(0)
    for length in (1, 30, 300):
        chosen = rng.integers(len(recording.entries), size=length)
        configurations = [dict(recording.entries[place].configuration) for place in chosen]
        verdict, known = ours.judge(configurations), theirs.judge(configurations)
        assert verdict.score == pytest.approx(known["score"], abs=1e-9)
        assert (verdict.r50, verdict.r200) == pytest.approx((known["r50"], known["r200"]), rel=1e-9)
        assert verdict.tries == known["tries"]


def test_by_what_only_failed_nothing_is_judged(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"made\.json: every configuration failed"):
        judge_of([None, None], tmp_path)


def test_where_all_are_alike_nothing_is_won_but_rounding(tmp_path: Path) -> None:
    """One success among failures, which count as slow as it: such searches had scores of rounding errors."""
    judge = judge_of([None] * 255 + [3.0], tmp_path)
    assert judge.judge(tried(*range(60))).score == judge.judge(tried(255)).score == 0.0
