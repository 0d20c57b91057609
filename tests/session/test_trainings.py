"""What holds for searches of trainings: bounds, seeds, the part that no search sees, what is kept of them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from autotune.measure.objective import Context, Diverged, Objective, WrongAnswer
from autotune.session.api import open_session
from autotune.session.observing import observe_record
from autotune.session.result import Result
from autotune.space.configuration import Configuration
from autotune.space.reading.reader import parse_spec
from autotune.status import Status
from autotune.store.store import Store

SPACE = """
autotune: 1
name: trainings
objective: inline.py:unused
metrics:
  {metrics}
knobs:
  x: {{values: [0, 1, 2, 3], default: 0}}
search: {{strategy: grid{early}}}
measure: {{warmup: 0, min_readings: 3, max_readings: 3, finalists: 3}}
"""

EARLY = ", early_stopping: {policy: none, resource: epochs, max: 2}"


def search(folder: Path, objective: Objective, metrics: str, early: str = "") -> tuple[Result, Store]:
    spec = parse_spec(SPACE.format(metrics=metrics, early=early), folder / "space.yaml")
    store = Store.open(str(folder / "store.db"))
    return open_session(spec, store, objective=objective).run(), store


class Fast(Objective):
    """Larger is faster; 2 is not accurate, 3 only on what it was chosen by."""

    def __init__(self, until_finale: bool = False) -> None:
        super().__init__(Context({}, {}, Path()))
        self.until_finale = until_finale
        self.looked: list[bool] = []
        """At each reading, whether the part that no search sees was looked at."""
        self.seeds: dict[int, set[float]] = {}

    def measure(self, loaded: Configuration, rng: np.random.Generator) -> Mapping[str, float]:
        x = int(str(loaded["x"]))
        noise = float(rng.random())
        self.seeds.setdefault(x, set()).add(noise)
        self.looked.append(self.final)
        accuracy = 0.5 if x == 2 else 0.99
        values = {"time": 2.0**-x * (1 + 0.001 * noise), "accuracy": accuracy}
        if self.final:
            values["test_accuracy"] = 0.6 if x == 3 else accuracy
        if self.report.steps:
            for step in range(1, self.report.steps + 1):
                self.report(step, values)
        return values


METRICS = "{time: {goal: minimize, unit: s}, accuracy: {at_least: 0.9}, test_accuracy: {at_least: 0.9}}"


def test_what_is_fast_but_not_accurate_never_wins(tmp_path: Path) -> None:
    for name, early in (("readings", ""), ("curves", EARLY)):
        folder = tmp_path / name
        folder.mkdir()
        objective = Fast()
        result, store = search(folder, objective, METRICS, early)
        with store:
            by_x = {t.configuration["x"]: t.status for t in result.trials}
            finale = list(store.trials(result.study.id, purpose="final"))
        assert by_x == {0: Status.OK, 1: Status.OK, 2: Status.WRONG, 3: Status.OK}
        assert result.defended and result.best == Configuration({"x": 1})
        three = next(t for t in finale if t.configuration["x"] == 3)
        assert three.status is Status.WRONG and "test_accuracy is 0.6" in three.message


def test_the_search_never_looks_at_the_last_part(tmp_path: Path) -> None:
    objective = Fast()
    result, store = search(tmp_path, objective, METRICS)
    with store:
        searched = [r for t in result.trials for r in store.readings(t.id) if r.metric == "test_accuracy"]
    assert searched == []
    first = objective.looked.index(True)
    assert not any(objective.looked[:first]) and all(objective.looked[first:])


def test_each_repetition_has_a_seed_of_its_own_and_the_answer_has_three(tmp_path: Path) -> None:
    objective = Fast()
    result, store = search(tmp_path, objective, METRICS, EARLY)
    with store:
        finale = [t for t in store.trials(result.study.id, purpose="final") if t.status is Status.OK]
        for trial in finale:
            times = [r.value for r in store.readings(trial.id) if r.metric == "time"]
            assert len(times) >= 3 and len(set(times)) == len(times)
    assert finale and result.speedup is not None
    assert len(objective.seeds[1]) >= 4  # one of the search, three of the finale


class Unreached(Objective):
    """Comes to its target at 3 alone, explodes at 1."""

    def __init__(self) -> None:
        super().__init__(Context({}, {}, Path()))

    def measure(self, loaded: Configuration, rng: np.random.Generator) -> float:
        x = int(str(loaded["x"]))
        if x == 1:
            raise Diverged("the training loss is 1e+30 after 3 updates")
        if x != 3:
            raise WrongAnswer("the validation loss is not there", {"gap": 0.3 - 0.1 * x})
        return 5.0


def test_a_target_that_was_missed_is_no_time_but_says_by_how_much(tmp_path: Path) -> None:
    result, store = search(tmp_path, Unreached(), "{time: {goal: minimize}, gap: {at_most: 0.0}}")
    with store:
        told = {t.configuration["x"]: observe_record(t) for t in result.trials}
    assert {x: o.status for x, o in told.items()} == {
        0: Status.WRONG, 1: Status.DIVERGED, 2: Status.WRONG, 3: Status.OK,
    }  # fmt: skip
    assert [dict(told[x].bounded) for x in (0, 2)] == [{"gap": 0.3}, {"gap": 0.3 - 0.2}]
    assert all(not o.metrics for x, o in told.items() if x != 3)
    assert result.best == Configuration({"x": 3})


TALKER = """
import sys
print("epoch 1: loss 0.7", flush=True)
print("a warning", file=sys.stderr, flush=True)
if sys.argv[1] == "1":
    sys.exit(3)
print('{"time": 1.5}')
"""


def test_the_last_lines_of_a_program_are_kept_however_it_ends(tmp_path: Path) -> None:
    (tmp_path / "talk.py").write_text(TALKER)
    (tmp_path / "space.yaml").write_text(
        f"""
autotune: 1
name: talking
command: [{sys.executable}, talk.py, "{{x}}"]
metrics: {{time: {{goal: minimize}}}}
knobs: {{x: {{values: [0, 1], default: 0}}}}
search: {{strategy: grid}}
measure: {{warmup: 0, min_readings: 1, max_readings: 1, finalists: 0, cores: 0}}
"""
    )
    import autotune

    result = autotune.search(tmp_path / "space.yaml", store=tmp_path / "store.db")
    ok, crashed = sorted(result.trials, key=lambda trial: trial.number)
    assert (ok.status, crashed.status) == (Status.OK, Status.CRASHED)
    # What came by stdout and what by stderr are in order; which of them came first nobody knows.
    assert sorted(ok.stderr.splitlines()) == ["a warning", "epoch 1: loss 0.7", '{"time": 1.5}']
    assert ok.stderr.index("epoch") < ok.stderr.index("time")
    assert sorted(crashed.stderr.splitlines()) == ["a warning", "epoch 1: loss 0.7"]
