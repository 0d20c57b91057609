"""What a strategy hears of a metric past its bound, at once and when the study is opened again."""

from __future__ import annotations

from pathlib import Path

import autotune
from autotune.status import Status

SPACE = """
autotune: 1
name: bounded
objective: objective.py:unused
metrics:
  time: {goal: minimize, unit: s}
  error: {at_most: 0.5}
knobs:
  x: {values: [1, 2, 3, 4]}
"""


def opened(folder: Path) -> autotune.AskTell:
    (folder / "objective.py").write_text("def unused(x):\n    return 1.0\n")
    (folder / "space.yaml").write_text(SPACE)
    return autotune.ask_tell(folder / "space.yaml", store=folder / "study.db", strategy="random")


def test_the_measured_value_of_a_bounded_metric_is_told(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        good, wrong, crashed = session.ask(3)
        session.tell(good, time=2.0, error=0.1)
        assert session.tell(wrong, time=1.0, error=0.7).status is Status.WRONG
        session.tell(crashed, status="crashed")
        told = list(session._ledger.strategy.told)
    assert [dict(o.metrics) for o in told] == [{"time": 2.0, "error": 0.1}, {}, {}]
    assert [dict(o.bounded) for o in told] == [{}, {"time": 1.0, "error": 0.7}, {}]
    with opened(tmp_path) as again:
        assert list(again._ledger.strategy.told) == told
