"""How trials are listed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import autotune
from autotune.cli import show
from autotune.cli.show import KNOBS_WIDTH, say_study
from autotune.report.text import MOST_OF_A_NAME
from tests.cli.calling import call
from tests.report.studies import Written


def listed(*configurations: dict[str, object]) -> list[str]:
    top = [
        {"trial": i, "configuration": each, "metrics": {"time": {"value": 1.0}}}
        for i, each in enumerate(configurations)
    ]
    known = {
        "study": "s",
        "study_id": 1,
        "metric": "time",
        "unit": "s",
        "goal": "minimize",
        "trials": len(top),
    }
    rest = {"statuses": {}, "metrics": {}, "default": None, "remark": "", "why_nothing": ""}
    said = say_study({**known, **rest, "front": [], "top": top, "replayed": False}, "", failures=False)
    return said.splitlines()[3:-1]


def test_few_knobs_stand_with_each_trial() -> None:
    assert listed({"a": 1, "b": 2}, {"a": 1, "b": 3}) == [
        "  #0              1 s  a=1 b=2",
        "  #1              1 s  a=1 b=3",
    ]


def test_of_many_knobs_what_all_have_is_said_once() -> None:
    many: dict[str, object] = {f"knob{i}": i for i in range(40)}
    lines = listed(many | {"x": 1}, many | {"x": 2}, many | {"x": 2, "y": 3})
    assert lines[-3:] == [
        "  #0              1 s  x=1",
        "  #1              1 s  x=2",
        "  #2              1 s  x=2 y=3",
    ]
    common = " ".join(map(str.strip, lines[:-3]))
    assert common == "all have " + " ".join(f"{name}={value}" for name, value in many.items())
    assert max(map(len, lines)) <= KNOBS_WIDTH + 2


def test_1_and_true_are_no_value_that_all_have() -> None:
    """All had been said to have the value of the first."""
    many: dict[str, object] = {f"knob{i}": i for i in range(40)}
    lines = listed(many | {"mode": 1}, many | {"mode": True})
    assert lines[-2:] == ["  #0              1 s  mode=1", "  #1              1 s  mode=true"]
    assert "mode" not in " ".join(lines[:-2])


def test_one_trial_alone_has_nothing_in_common() -> None:
    (line,) = listed({f"knob{i}": i for i in range(40)})
    assert "knob0=0" in line and "knob39=39" in line


def test_of_a_value_without_bounds_the_beginning_is_shown() -> None:
    for line in listed({"code": "x" * 100_000, "a": 1}, {"code": ["y" * 100_000], "a": 2}):
        assert len(line) < MOST_OF_A_NAME + 50 and "... a=" in line


def searched(folder: Path, objective: Callable[..., float], more: str = "") -> list[str]:
    """The lines of `show` on a study of four configurations, of which tile 1 is the default.

    It is searched in this process: what is shown does not depend on where it was measured.
    """
    (folder / "objective.py").write_text("def run(**knobs):\n    pass\n")
    knobs = "knobs: {tile: {values: [1, 2, 4, 8], default: 1}}"
    space = folder / "space.yaml"
    space.write_text(f"autotune: 1\nname: s\nobjective: objective.py:run\n{knobs}\n{more}\n")
    search = autotune.search_many if "workloads" in more else autotune.search
    search(space, objective=objective, store=folder / "s.db")
    return call(show.command, "s", "--store", folder / "s.db").stdout.splitlines()


def test_the_winner_is_named_beside_the_best_readings_of_the_search(tmp_path: Path) -> None:
    """Only its value had been shown, and the first of the list, the luckiest reading, was taken for it."""
    said = searched(tmp_path, lambda tile: 1.0 / tile)
    number = next(line.split()[0].removeprefix("#") for line in said if line.endswith("tile=8"))
    assert said[1:3] == ["winner of s", f"trial {number}: time 125 ms; the default 1 s"]
    assert "best by time in the search:" in said


def test_a_winner_stands_beside_the_strongest_baseline(tmp_path: Path) -> None:
    """The JSON document alone had it."""
    own = Written(tmp_path)
    own.trial({"tile": 2}, 0.5)
    against = [
        {"against": name, "estimate": ratio, "low": 0.9 * ratio, "high": 1.1 * ratio}
        for name, ratio in (("blas", 0.5), ("naive", 8.0))
    ]
    own.verdict({"tile": 2}, baselines=against)
    said = call(show.command, "gemm", "--store", tmp_path / "written.db").stdout.splitlines()
    assert said[3:5] == [
        "speed-up 2x [1.8, 2.2] over the default",
        "standing 0.5x [0.45, 0.55] of blas, the strongest of 2 baselines",
    ]


def test_an_answer_that_was_not_measured_again_is_called_so(tmp_path: Path) -> None:
    """It had looked like a winner; only the JSON document said that it was not defended."""
    said = searched(tmp_path, lambda tile: 1.0 / tile, "measure: {finalists: 0}")
    assert said[1] == "best so far of s, not measured again"


def test_the_value_of_the_best_is_shown_also_where_the_default_has_none(tmp_path: Path) -> None:
    def run(tile: int) -> float:
        assert tile > 1
        return 1.0 / tile

    said = searched(tmp_path, run)
    assert said[2].endswith(": time 125 ms")


def test_where_all_failed_the_commonest_failure_is_shown(tmp_path: Path) -> None:
    """The JSON document alone had it."""

    def run(tile: int) -> float:
        raise RuntimeError(f"no {tile // 9}")

    said = searched(tmp_path, run)
    assert said[1].startswith("no configuration succeeded") or "same mistake" in said[1]
    assert " ended as crashed, as trial 0: RuntimeError: no 0" in said[2]


def test_a_study_without_trials_has_no_empty_brackets(tmp_path: Path) -> None:
    """Of a workload that was held out ``0 trials ()`` was said."""
    workloads = "workloads: [{m: 4}, {m: 9, held_out: true}]"
    said = searched(tmp_path, lambda tile, m: m / tile, workloads)
    assert said[0].endswith(": 0 trials") and said[1:3] == ["winner of s", "time 1.125 s; the default 9 s"]
