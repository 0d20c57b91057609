"""The verdict where each contender has one reading."""

from __future__ import annotations

from pathlib import Path

import pytest

import autotune
from autotune.report.words.summary import headline
from autotune.session.finale.verdict import Standing, judge
from autotune.space.configuration import Configuration
from autotune.space.reading.reader import parse_spec
from autotune.store.store import Store
from tests.recordings import record

SPACE = """
autotune: 1
name: once
replay: once.json
metrics: {time: {goal: minimize, unit: s}}
knobs: {tile: {values: [1, 2, 4], default: 1}}
"""


def recording(folder: Path, readings: int) -> Path:
    """A Kernel Tuner cache of three configurations, each read so often."""
    times = {1: 3.0, 2: 2.0, 4: 1.5}
    entries = [
        {"tile": tile, "time": time, "times": [time * (1 + 0.001 * n) for n in range(readings)]}
        for tile, time in times.items()
    ]
    record(folder / "once.json", {"tile": [*times]}, entries)
    (folder / "space.yaml").write_text(SPACE)
    return folder / "space.yaml"


def test_of_a_recording_with_one_reading_of_each_it_is_said_what_was_read(tmp_path: Path) -> None:
    result = autotune.search(recording(tmp_path, 1), store=tmp_path / "s.db")
    assert not result.defended and result.best == {"tile": 4} and result.read_once and not result.nobody_stood
    assert headline(result).endswith("best so far of once, not measured again")
    assert result.remark.startswith("the recording has one reading of each finalist")
    assert result.remark.endswith("is 2 times as fast as the default")


def test_with_two_readings_of_each_there_is_an_interval(tmp_path: Path) -> None:
    result = autotune.search(recording(tmp_path, 2), store=tmp_path / "s.db")
    assert not result.read_once and result.defended and result.speedup is not None


def test_each_recorded_reading_counts_once(tmp_path: Path) -> None:
    """None is used up by warming caches: the first half had counted twice, and the rest not at all.

    Nor on a busy machine, of which nothing is in a recording: there some had been taken for disturbed.
    """
    study = autotune.search(recording(tmp_path, 6), store=tmp_path / "s.db").study
    with Store.open(tmp_path / "s.db") as store:
        finale = [trial for trial in store.trials(study.id) if trial.purpose != "search"]
        readings = [store.readings(trial.id) for trial in finale]
    assert len(finale) == 3 and all(len({r.value for r in own}) == len(own) == 6 for own in readings)
    assert all(r.context == {"round": place} for own in readings for place, r in enumerate(own))


@pytest.mark.parametrize(
    ("goal", "default", "values", "said"),
    [
        ("maximize", (2.0,), (4.0, 5.0), "trial 1 is 2.5 times as good as the default"),
        ("minimize", (2.0,), (4.0, 5.0), "trial 0 is 0.5 times as good as the default"),
        ("minimize", (0.0,), (4.0, 5.0), "no winner"),
        ("minimize", (), (4.0, 5.0), "no winner"),
    ],
)
def test_the_ratio_is_that_of_the_best_reading(
    tmp_path: Path, goal: str, default: tuple[float, ...], values: tuple[float, ...], said: str
) -> None:
    text = "autotune: 1\nname: a\nobjective: a.py:f\nknobs: {x: {values: [1, 2, 3]}}\n"
    spec = parse_spec(text + f"metrics: {{size: {{goal: {goal}}}}}\n", tmp_path / "space.yaml", {})
    standings = [
        Standing("the default", Configuration({"x": 1}), True, default),
        *(Standing(f"trial {n}", Configuration({"x": n + 2}), False, (v,)) for n, v in enumerate(values)),
    ]
    verdict = judge(spec, standings)
    assert verdict["configuration"] is None and verdict["read_once"] is True
    assert verdict["remark"].startswith("there is one reading of each") and verdict["remark"].endswith(said)
