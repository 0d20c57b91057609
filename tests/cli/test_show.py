"""How trials are listed."""

from __future__ import annotations

from autotune.cli.show import KNOBS_WIDTH, say_study
from autotune.report.text import MOST_OF_A_NAME


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
    rest = {"statuses": {}, "default": None, "metrics": {}, "speedup": None, "gain": None, "remark": ""}
    said = say_study({**known, **rest, "front": [], "top": top, "replayed": False}, failures=False)
    return said.splitlines()[2:-1]


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


def test_one_trial_alone_has_nothing_in_common() -> None:
    (line,) = listed({f"knob{i}": i for i in range(40)})
    assert "knob0=0" in line and "knob39=39" in line


def test_of_a_value_without_bounds_the_beginning_is_shown() -> None:
    for line in listed({"code": "x" * 100_000, "a": 1}, {"code": ["y" * 100_000], "a": 2}):
        assert len(line) < MOST_OF_A_NAME + 50 and "... a=" in line
