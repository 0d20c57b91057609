"""What is said of trials that had too few cores for their threads."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autotune
from autotune.measure.cores.oversubscription import FEWEST_LOOKS, ReadyThreads
from autotune.measure.facts import READY_THREADS
from autotune.measure.objective import Context
from autotune.measure.readings import Sample
from autotune.report.words.summary import headline, summarize
from autotune.session.execution import slot as executor_slot
from autotune.session.remarks.oversubscribed import say_oversubscribed
from autotune.space.reading.reader import parse_spec
from tests.measure.cores.test_oversubscription import SPIN, settle
from tests.session.heard import Heard

SPACE = """
autotune: 1
name: crowded
objective: given.py:Given
knobs: {threads: {values: [1, 2, 4]}}
"""

PROGRAM = """
autotune: 1
name: spinning
command: {{run: [sh, -c, {script}], metrics: wall}}
metrics: {{time: {{goal: minimize, unit: s}}}}
knobs: {{level: {{values: [1]}}}}
measure: {{warmup: 0, min_readings: 1, max_readings: 1, finalists: 0}}
"""


def test_the_first_such_trial_is_named_and_how_many_there_were() -> None:
    assert say_oversubscribed({0: {}, 1: {"cores": [1]}}) == ""
    assert say_oversubscribed({0: {READY_THREADS: 4}}) == "", "it was not pinned: no setting gives it more"
    trials: dict[int, dict[str, object]] = {
        3: {READY_THREADS: 4, "cores": [0, 1]},
        2: {READY_THREADS: 2, "cores": [1]},
        0: {},
    }
    said = say_oversubscribed(trials)
    assert said.startswith("trial 2 (one of 2 such trials) had 2 threads ready to run on the 1 core ")
    alone = say_oversubscribed({3: trials[3]})
    assert "on the 2 cores that" in alone and "such trials" not in alone


class Threads(autotune.Objective):
    """As a program with threads that has one core."""

    def measure(self, loaded: Any, rng: np.random.Generator) -> Sample:
        threads = loaded["threads"]
        return Sample({"time": 1.0}, facts={READY_THREADS: threads, "cores": [0]} if threads > 1 else {})


def test_a_search_says_so_once_while_it_runs_and_in_its_answer(tmp_path: Path) -> None:
    spec, heard = parse_spec(SPACE, tmp_path / "space.yaml", {}), Heard()
    threads = Threads(Context({}, {}, tmp_path))
    result = autotune.search(spec, objective=threads, store=tmp_path / "study.db", progress=heard)
    assert result.is_default
    assert len([note for note in heard.notes if "threads ready to run" in note]) == 1
    assert (
        "one of 2 such trials" in result.remark and "threads ready to run" in result.to_document()["remark"]
    )


class Late(Threads):
    """The same, and what it measures is beyond its bound."""

    def measure(self, loaded: Any, rng: np.random.Generator) -> Sample:
        sample = super().measure(loaded, rng)
        return Sample({"time": 1.0, "delay": 1.0}, facts=sample.facts)


def test_where_nothing_succeeded_it_is_a_line_of_its_own(tmp_path: Path) -> None:
    """It had stood behind 'nothing succeeded:', as though it were all the reason."""
    bound = "metrics: {time: {goal: minimize}, delay: {at_most: 0.5}}\n"
    spec = parse_spec(SPACE + bound, tmp_path / "space.yaml", {})
    late = Late(Context({}, {}, tmp_path))
    result = autotune.search(spec, objective=late, store=tmp_path / "study.db")
    assert headline(result) == "no configuration succeeded"
    assert "\nremark         trial 1 (one of 2 such trials) had 2 threads" in summarize(result)
    assert result.why_nothing.startswith("3 of 3 ended as wrong, as trial 0: delay")
    assert "; trial 1 (one of 2 such trials) had 2 threads" in result.why_nothing


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is only one core")
@pytest.mark.parametrize(("spinning", "found"), [(2, 2), (1, None)])
def test_the_threads_of_a_measurement_are_counted_from_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spinning: int, found: int | None
) -> None:
    class Enough(ReadyThreads):
        """Lets the program end once it has been seen as it is."""

        seen = 0

        def look(self, pid: int) -> None:
            if self.timeout() == 0.0:
                self.seen += settle(pid, spinning, self._cores) == spinning
            super().look(pid)
            if self.seen >= FEWEST_LOOKS + 4 or self.timeout() is None:
                (tmp_path / "enough").touch()

    monkeypatch.setattr(executor_slot, "ReadyThreads", Enough)
    script = ": {level}; " + SPIN * spinning + "while [ ! -e enough ]; do sleep 0.01; done; wait"
    text = PROGRAM.format(script=json.dumps(script))
    spec = parse_spec(text, tmp_path / "space.yaml", {})
    result = autotune.search(spec, store=tmp_path / "study.db")
    assert [trial.facts.get(READY_THREADS) for trial in result.trials] == [found]
    assert ("threads ready to run" in result.remark) == bool(found)
