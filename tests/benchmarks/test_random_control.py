"""Two searches of a space, whose answers are read beside one another."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.store.store import Store
from benchmarks.random_control import compare

SPACE = """
autotune: 1
name: bowl
objective: objective.py:time
knobs:
  x: {range: [0, 1000], default: 0}
  y: {range: [0, 1000], default: 0}
"""


@pytest.mark.long
def test_both_search_alone_and_both_answers_are_read_in_the_same_rounds(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(SPACE)
    text = "def time(x, y):\n    return 1e-3 * (1 + abs(x - 700) / 100 + abs(y - 300) / 100)\n"
    (tmp_path / "objective.py").write_text(text)
    store = f"{tmp_path}/studies.db"
    found = compare(tmp_path / "space.yaml", 1.0, 0, store)
    assert set(found.tries) == {"auto", "random"} and min(found.tries.values()) > 0
    over_default = {strategy: ratio.estimate for strategy, ratio in found.over_default.items() if ratio}
    assert set(over_default) == {"auto", "random"} and found.auto_over_random is not None
    assert found.auto_over_random.estimate == pytest.approx(over_default["auto"] / over_default["random"])
    with Store.open(store) as opened:
        for strategy in ("auto", "random"):
            study = opened.study(f"bowl-{strategy}-0")
            (session,) = opened.sessions(study.id)
            assert session.settings["search"]["strategy"] == strategy
            assert len(opened.trials(study.id, purpose="search")) == found.tries[strategy]
