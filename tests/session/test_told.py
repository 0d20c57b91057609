"""What a caller says of a trial: all that is wrong with it is said, and nothing of it is lost."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autotune
from autotune.measure.diagnostics import MOST_MESSAGE
from autotune.session.told import count_of, outcome_of
from autotune.space.reading.reader import parse_spec
from autotune.space.spec import MetricSpec, StudySpec
from autotune.status import Status

SPACE = """
autotune: 1
name: told
objective: objective.py:unused
metrics: {time: {goal: minimize}, error: {at_most: 1.0}}
knobs: {x: {range: [0, 3], default: 0}}
"""


def spec(folder: Path) -> StudySpec:
    (folder / "objective.py").write_text("def unused(x):\n    return 1.0\n")
    return parse_spec(SPACE, folder / "space.yaml", {})


@pytest.mark.parametrize("one", [2, np.float32(2), np.array(2.0), Fraction(2), Decimal(2)])
def test_a_number_may_be_of_any_kind(tmp_path: Path, one: Any) -> None:
    outcome = outcome_of(
        spec(tmp_path), {"time": one}, "ok", seconds=np.float32(1.0), peak_memory=np.int64(7)
    )
    assert outcome.metrics["time"].value == 2.0 and outcome.phases == {"measure": 1.0}
    assert outcome.peak_memory == 7


@pytest.mark.parametrize("several", [[1.0, 2.0, 3.0], (1, 2, 3), np.array([1.0, 2.0, 3.0])])
def test_readings_may_be_any_sequence(tmp_path: Path, several: Any) -> None:
    outcome = outcome_of(spec(tmp_path), {"time": several, "error": np.float32(0.5)}, "ok", peak_memory=0)
    assert outcome.peak_memory == 0
    assert outcome.status is Status.OK and outcome.metrics["time"].value == 2.0 and len(outcome.readings) == 4


@pytest.mark.parametrize(
    ("metrics", "words", "said"),
    [
        ({"time": []}, {}, "time is"),
        ({"time": None}, {}, "time is None"),
        ({"time": "2.0"}, {}, "time is '2.0'"),
        ({"time": True}, {}, "time is True"),
        ({"time": np.True_}, {}, "time is"),
        ({"time": np.array([True, True])}, {}, "time is"),
        ({"time": [[1.0]]}, {}, "time is"),
        ({"time": 1.0, "eror": 0.0}, {}, "unknown metric 'eror'"),
        ({"time": 1.0, 7: 0.0}, {}, "unknown metric 7"),
        ({"error": 0.0}, {}, "time missing"),
        ({"time": 1.0}, {"status": "great"}, "'great'"),
        ({"time": 1.0}, {"status": "running"}, "'running'"),
        ({"time": 1.0}, {"message": None}, "message is None"),
        ({"time": 1.0}, {"seconds": -1.0}, "seconds is -1.0"),
        ({"time": 1.0}, {"seconds": "3"}, "seconds is '3'"),
        ({"time": 1.0}, {"seconds": True}, "seconds is True"),
        ({"time": 1.0}, {"seconds": float("inf")}, "seconds is inf"),
        ({"time": 1.0}, {"peak_memory": 2**70}, "peak_memory is"),
        ({"time": 1.0}, {"peak_memory": 1.5}, "peak_memory is 1.5"),
        ({"time": 1.0}, {"facts": {"file": Path()}}, "the fact 'file' must be JSON"),
        ({"time": 1.0}, {"facts": "a.pt"}, "facts is 'a.pt'"),
    ],
)
def test_what_cannot_be_recorded_is_said(
    tmp_path: Path, metrics: dict[str, Any], words: dict[str, Any], said: str
) -> None:
    with pytest.raises(autotune.InputError, match=said):
        outcome_of(spec(tmp_path), metrics, **{"status": "ok", **words})


def test_a_metric_with_the_name_of_an_argument_is_not_lost(tmp_path: Path) -> None:
    """``tell(trial, seconds=3.0)`` said that the metric seconds is missing, and nothing if it has no goal."""
    given = replace(spec(tmp_path), metrics=(MetricSpec("loss", "minimize"), MetricSpec("seconds")))
    with pytest.raises(autotune.InputError, match=r"in a mapping: tell\(trial, \{'seconds': ...\}\)"):
        outcome_of(given, {"loss": 1.0}, "ok", seconds=3.0)
    outcome = outcome_of(given, {"loss": 1.0, "seconds": 2.0}, "ok", seconds=3.0)
    assert outcome.metrics["seconds"].value == 2.0 and outcome.phases == {"measure": 3.0}


def test_facts_are_kept_with_a_trial(tmp_path: Path) -> None:
    with autotune.ask_tell(spec(tmp_path), store=tmp_path / "study.db") as session:
        [trial] = session.ask()
        session.tell(trial, time=1.0, facts={"checkpoint": "a.pt", "layers": np.int64(3)})
        assert session.result().trials[0].facts == {"checkpoint": "a.pt", "layers": 3}


def test_a_value_without_a_name_is_said_to_have_none(tmp_path: Path) -> None:
    """Optuna's ``tell`` takes a value. It was TypeError: 'float' object is not a mapping."""
    with autotune.ask_tell(spec(tmp_path), store=tmp_path / "study.db") as session:
        (trial,) = session.ask()
        with pytest.raises(autotune.InputError, match=r"metrics have names, as in .*: got 3\.0"):
            session.tell(trial, 3.0)  # type: ignore[arg-type]


def test_of_a_long_message_a_part_is_shown_and_both_ends_are_kept(tmp_path: Path) -> None:
    message = f"first {'x' * 2_000_000} last"
    outcome = outcome_of(spec(tmp_path), {}, Status.CRASHED, message)
    assert len(outcome.message) == MOST_MESSAGE and outcome.message.startswith("first x")
    assert outcome.stderr.startswith("first x") and outcome.stderr.endswith("x last")
    assert len(outcome.stderr) < 1_100_000
    short = outcome_of(spec(tmp_path), {}, Status.CRASHED, "half of a pair: \udcff")
    assert (short.message, short.stderr) == (r"half of a pair: \udcff", "")


@pytest.mark.parametrize("n", [1.5, "2", -1, True, None])
def test_how_many_is_a_whole_number(n: object) -> None:
    with pytest.raises(autotune.InputError, match="whole number"):
        count_of(n)


def test_a_trial_is_told_once_and_again_after_a_mistake(tmp_path: Path) -> None:
    with autotune.ask_tell(spec(tmp_path), store=tmp_path / "study.db", strategy="random") as session:
        trial, other = session.ask(np.int64(2))
        with pytest.raises(autotune.InputError, match="does not end as 'running'"):
            session.tell(trial, status="running")
        assert session.tell(trial, time=1.0, error=0.0).status is Status.OK
        for again in (trial, "trial 1"):
            with pytest.raises(autotune.InputError, match="is not in flight in this session"):
                session.tell(again, time=1.0)  # type: ignore[arg-type]
        assert session.tell(other, time=1.0, error=2.0).status is Status.WRONG
        assert len(session.ask(10)) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"trials": "3"}, "trials is '3'"),
        ({"trials": 0}, "trials is 0"),
        ({"patience": 1.5}, "patience is 1.5"),
        ({"target": float("nan")}, r"(?s)target is nan.*in the unit of the goal"),
        ({"target": "5ms"}, "target is '5ms'"),
        ({"time": "soon"}, "time is 'soon'"),
        ({"time": float("nan")}, "time is nan"),
        ({"seed": -1}, "seed is -1"),
        ({"strategy": 3}, "strategy is 3"),
        ({"progress": True}, r"(?s)progress is True.*such as autotune.LineProgress\(\)"),
        ({"progress": autotune.LineProgress}, "progress is <class"),
    ],
)
def test_what_stands_in_the_place_of_the_file_is_checked(
    tmp_path: Path, words: dict[str, Any], said: str
) -> None:
    with pytest.raises(autotune.InputError, match=said):
        autotune.search(spec(tmp_path), store=tmp_path / "study.db", **words)
    assert not (tmp_path / "study.db").exists()


def test_a_space_is_a_file_or_a_spec() -> None:
    with pytest.raises(autotune.InputError, match="the space is"):
        autotune.search({"x": [1, 2]})  # type: ignore[arg-type]
