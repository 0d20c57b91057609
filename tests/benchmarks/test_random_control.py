"""Two searches of a ready space, whose answers are read beside one another."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.store.store import Store
from benchmarks.random_control import compare


@pytest.mark.long
def test_both_search_alone_and_both_answers_are_read_in_the_same_rounds(tmp_path: Path) -> None:
    store = f"{tmp_path}/studies.db"
    found = compare("index-c", 1.0, 0, store)
    assert set(found.tries) == {"auto", "random"} and min(found.tries.values()) > 0
    assert found.auto_over_random is not None and found.auto_over_random.rounds >= 2
    both = [ratio for ratio in found.over_default.values() if ratio is not None]
    assert len(both) == 2
    with Store.open(store) as opened:
        auto, random = (opened.study(f"index-c-{strategy}-0") for strategy in ("auto", "random"))
        for study, strategies in ((auto, {"auto"}), (random, {"random"})):
            trials = opened.trials(study.id, purpose="search")
            assert {trial.strategy for trial in trials} == strategies
