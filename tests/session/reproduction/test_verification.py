"""An answer measured again, in this process: what is read, and what is said of what cannot be measured."""

from __future__ import annotations

import itertools
import math
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.errors import InputError
from autotune.measure.objective import Infeasible, Objective
from autotune.measure.outcome import Outcome
from autotune.measure.readings import Sample
from autotune.session.execution.choosing import make_executor
from autotune.session.finale.contender import Contender
from autotune.session.finale.interleaved import read_again
from autotune.session.finale.rounds import Rounds
from autotune.session.reproduction.agreement import Claim, Verification
from autotune.session.reproduction.paced import Past, Series
from autotune.session.reproduction.verification import RUNS, measure_again, spec_for, verify
from autotune.space.configuration import Configuration
from autotune.space.reading.reader import parse_spec, read_spec
from autotune.space.spec import StudySpec

SPACE = """
autotune: 1
name: small
objective: objective.py:measure
workload: {n: 64}
metrics: {time: {goal: minimize, unit: s}}
knobs: {tile: {values: [1, 2, 4, 8]}}
constraints: ["tile <= n"]
"""


READ = RUNS * Rounds.of(parse_spec(SPACE)).split(RUNS).least
"""How often each is read where readings do not differ."""


def spec(text: str = SPACE) -> StudySpec:
    return parse_spec(text)


def measure(tile: int) -> float:
    if tile == 8:
        raise Infeasible("eight is refused")
    return 1.0 / tile


def again(
    claim: Claim,
    what: StudySpec | None = None,
    kept: list[Any] | None = None,
    objective: Any = measure,
    runs: int | None = None,
) -> Verification:
    what = spec() if what is None else what
    executor = make_executor(what, objective)
    try:
        return measure_again(what, claim, executor, None if kept is None else kept.append, runs)
    finally:
        executor.close()


def test_the_configuration_and_the_default_are_read_side_by_side() -> None:
    kept: list[Any] = []
    found = again(Claim(Configuration({"tile": 4}), (0.25, 0.25, 0.25), (4.0, 4.0, 4.0)), kept=kept)
    assert (found.verdict, found.runs, found.rounds) == ("agrees", RUNS, READ)
    assert found.now["speedup"][0] == pytest.approx(4.0)
    assert found.now["default"][0] == 1.0
    assert {label: len(values) for label, values in found.readings.items()} == {
        "the default": READ,
        "the recipe": READ,
    }
    assert len(kept) == RUNS
    assert all(isinstance(run.outcomes[c.label], Outcome) for run in kept for c in run.contenders)
    document = found.to_document()
    assert document["now"]["speedup"]["value"] == pytest.approx(4.0)


class Chance(Objective):
    """As a training whose loss its seed decides."""

    def measure(self, loaded: Any, rng: np.random.Generator) -> float:
        return float(rng.random())


@pytest.mark.parametrize("trains", [False, True])
def test_each_run_has_seeds_of_its_own(trains: bool) -> None:
    """Else the runs of a training all came to the same, and any other result was said to differ."""
    what = spec(SPACE + ("search: {early_stopping: {policy: none, max: 2}}\n" if trains else ""))
    kept: list[Any] = []
    again(Claim(Configuration({"tile": 4}), (0.5, 0.5, 0.5), None), what, kept, Chance, runs=3)
    for label in (0, 1):
        read = [reading for run in kept for reading in run.contenders[label].readings]
        values = [reading.value for reading in read if not reading.discarded]
        assert len(set(values)) == len(values) >= 3


def test_no_seed_is_one_of_the_finale_that_made_the_claim() -> None:
    """A training whose loss its seed decides could only agree with it."""
    what, kept = spec(), list[Any]()
    finalist, executor = Contender("trial 1", Configuration({"tile": 4})), make_executor(spec(), Chance)
    with closing(executor):
        read_again(what, executor, [finalist], Rounds.of(what))
    again(Claim(Configuration({"tile": 4}), (0.5, 0.5, 0.5), None), what, kept, Chance, runs=3)
    measured = {reading.value for run in kept for c in run.contenders for reading in c.readings}
    assert finalist.readings and not measured & {reading.value for reading in finalist.readings}


def test_a_recipe_that_is_the_default_is_read_alone() -> None:
    found = again(Claim(Configuration({"tile": 1}), (1.0, 1.0, 1.0), None))
    assert (found.verdict, list(found.now)) == ("agrees", ["metric"])
    assert again(Claim(Configuration({"tile": 1}), (0.5, 0.5, 0.5), None)).verdict == "differs"


@pytest.mark.parametrize(
    ("tile", "why"),
    [(8, "infeasible here: eight is refused"), (16, "does not allow the configuration")],
)
def test_what_cannot_be_measured_is_said(tile: int, why: str) -> None:
    found = again(Claim(Configuration({"tile": tile}), (0.1, 0.1, 0.1), None))
    assert found.verdict == "cannot be measured here" and why in found.why


def test_an_objective_whose_process_dies_cannot_be_measured_here(tmp_path: Path) -> None:
    """It was an error, and of a file of recipes none was verified after the first such one."""
    (tmp_path / "objective.py").write_text("import os; print('no licence', flush=True); os._exit(3)")
    (tmp_path / "space.yaml").write_text(SPACE)
    found = verify(read_spec(tmp_path / "space.yaml", {}), Claim(Configuration({"tile": 4})))
    assert found.verdict == "cannot be measured here" and "no licence" in found.why


def test_a_default_that_the_constraints_refuse_is_nothing_to_compare_with() -> None:
    text = SPACE.replace("tile <= n", "tile >= 2")
    found = again(Claim(Configuration({"tile": 4}), (0.25, 0.25, 0.25), None), spec(text))
    assert found.verdict == "agrees" and "speedup" not in found.now


def test_the_space_file_gives_the_study_of_a_workload() -> None:
    found = spec_for(SPACE, Path("space.yaml"), {"n": 2})
    assert (found.workload["n"], len(found.space.feasible)) == (2, 2)
    with pytest.raises(InputError, match="the workload has no 'm'"):
        spec_for(SPACE, Path("space.yaml"), {"m": 2})
    several = SPACE.replace("workload: {n: 64}", "workloads: [{n: 1}, {n: 4}]")
    assert spec_for(several, Path("space.yaml"), {"n": 4}).workload["n"] == 4


def test_where_runs_differ_too_much_nothing_can_be_told() -> None:
    wide = ((1.0, 2.0), (1.0, 3.0), (2.0, 5.0), (1.0, 4.0), (1.0, 2.0))
    found = again(Claim(Configuration({"tile": 4}), (0.3, 0.3, 0.3), by="metric", replicates=wide))
    assert found.verdict == "cannot be told"
    assert found.noticeable is not None and found.noticeable > 1.0
    assert found.runs == RUNS
    narrow = tuple((one, one * 1.001) for one, _ in wide)
    assert (
        again(Claim(Configuration({"tile": 4}), (0.3, 0.3, 0.3), by="metric", replicates=narrow)).verdict
        == "differs"
    )
    assert (
        again(Claim(Configuration({"tile": 4}), (0.25,) * 3, by="metric", replicates=narrow)).verdict
        == "agrees"
    )


def test_a_failure_is_held_against_how_it_failed() -> None:
    from autotune.status import Status

    same = again(Claim(Configuration({"tile": 8}), status=Status.INFEASIBLE))
    assert (same.verdict, same.runs) == ("agrees", 1)
    other = again(Claim(Configuration({"tile": 4}), status=Status.CRASHED))
    assert other.verdict == "differs" and "it ended as crashed, and ends as ok now" in other.why


def test_where_the_pace_is_known_as_many_runs_again_are_made() -> None:
    """The runs of another configuration differ tenfold, and the pace does not explain it."""
    own = itertools.cycle(range(300, 310))

    def paced(tile: int) -> Sample:
        return Sample({"time": 1.0 / tile}, {"pace_us": next(own)})

    paces = tuple(math.log(300 + step % 10) for step in range(60))
    then = Series((math.log(0.25),) * 60, paces)
    others = [Series((math.log(value),) * 60, paces) for value in (1.0, 10.0)]
    claim = Claim(Configuration({"tile": 4}), (0.25,) * 3, by="metric", past=Past(then, [others] * 4))
    kept: list[Any] = []
    found = again(claim, kept=kept, objective=paced)
    assert (found.verdict, found.runs, len(kept)) == ("cannot be told", 2 * RUNS, 2 * RUNS)
    assert again(claim, objective=paced, runs=2).runs == 2
    found = again(replace(claim, past=Past(then, [])), objective=paced)
    assert (found.verdict, found.runs) == ("agrees", RUNS)
