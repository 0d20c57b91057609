"""Ready trainings, small, in searches of this very process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.errors import InputError
from autotune.measure.loading.load import load_objective
from autotune.measure.objective import Context, WrongAnswer
from autotune.measure.outcome import Report
from autotune.measure.phases.runner import Runner
from autotune.measure.reports import Curve, Reporter
from autotune.session.api import open_session
from autotune.session.result import Result
from autotune.space.configuration import Configuration
from autotune.space.reading.reader import read_spec
from autotune.space.spec import Budget, StudySpec
from autotune.status import Status
from autotune.store.store import Store
from tests.objectives.ready import SPACES
from tests.objectives.training import needs_torch, read_small, small_objective

pytestmark = [pytest.mark.torch, needs_torch, pytest.mark.usefixtures("one_thread")]

torch: Any = pytest.importorskip("torch")

CURVE = Curve(4, "loss", (2,), pauses=True)
NAMES = ("digits-mlp", "digits-mlp-time", "digits-cnn", "language-model")


def shortened(spec: StudySpec, trials: int, **measure: Any) -> StudySpec:
    early = spec.search.early_stopping
    early = None if early is None else replace(early, max=3)
    return replace(
        spec,
        search=replace(spec.search, strategy="random", early_stopping=early),
        measure=replace(spec.measure, finalists=0, **measure),
        budget=Budget(trials=trials),
    )


def run(spec: StudySpec, folder: Path) -> tuple[Result, Store]:
    objective = load_objective(spec.objective, Context(spec.workload, {}, folder / "cache"))
    store = Store.open(str(folder / "store.db"))
    return open_session(spec, store, objective=objective).run(), store


@pytest.mark.parametrize("name", ["digits-mlp", "language-model"])
def test_a_search_of_it_ends_well(tmp_path: Path, name: str) -> None:
    spec = shortened(read_small(name), trials=4)
    metrics = tuple(replace(m, at_least=None) for m in spec.metrics)  # three epochs are not worth 90 %
    result, store = run(replace(spec, metrics=metrics), tmp_path)
    with store:
        statuses = {trial.status for trial in result.trials}
        assert statuses <= {Status.OK, Status.PRUNED, Status.DIVERGED}
        assert result.trials[0].status is Status.OK
        facts = result.trials[0].facts
        assert len(str(facts["data_sha256"])) == 64 and facts["step"] == 3
        assert {"loss", "samples_per_s", "peak_memory", "gradient_error"} <= result.trials[0].metrics.keys()
        assert not any("test_" in name for trial in result.trials for name in trial.metrics)


def test_the_default_of_each_is_right_and_can_be_read_again(tmp_path: Path) -> None:
    for name in NAMES:
        spec = read_small(name)
        assert {metric.name: metric.unit for metric in spec.metrics}["seconds"] == "s"
        objective = small_objective(name, tmp_path)
        plan = objective.load(spec.space.default())
        assert objective.check(plan, np.random.default_rng(0))["gradient_error"] < 1e-4
        objective.final = True
        first, again = (objective.measure(plan, np.random.default_rng(seed)).values for seed in (1, 1))
        other = objective.measure(plan, np.random.default_rng(2)).values
        assert first["loss"] == again["loss"] != other["loss"]
        assert 0.0 < first["test_accuracy"] <= 1.0 and first["peak_memory"] > 2**20


@pytest.mark.parametrize("name", NAMES)
def test_a_rate_is_found_for_the_default_of_the_space(tmp_path: Path, name: str) -> None:
    """It was for a plan of which batch and weight decay were others."""
    objective = small_objective(name, tmp_path)
    assert objective.load(read_small(name).space.default()) == objective.default
    found = objective.load_baseline(next(b for b in objective.baselines() if b.name == "lr-finder"))
    assert replace(found, rate=objective.default.rate) == objective.default


def test_a_run_ends_at_its_target_or_says_how_far_it_is(tmp_path: Path) -> None:
    easy = small_objective("digits-mlp-time", tmp_path, target=2.2)
    plan = easy.load({"rate": 0.01, "batch": 32})
    values = easy.measure(plan, np.random.default_rng(0)).values
    assert values["loss"] <= 2.2 and values["gap"] <= 0.0
    assert values["time_to_target"] == values["seconds"]
    hard = small_objective("digits-mlp-time", tmp_path, target=1e-9, epochs=2)
    with pytest.raises(WrongAnswer, match="after 2 steps") as missed:
        hard.measure(plan, np.random.default_rng(0))
    assert missed.value.metrics["gap"] > 0.0 and "time_to_target" not in missed.value.metrics


def test_what_explodes_is_diverged_and_has_no_loss(tmp_path: Path) -> None:
    spec = read_small("digits-mlp")
    objective = load_objective(spec.objective, Context(spec.workload, {}, tmp_path / "cache"))
    runner = Runner(objective, spec.metrics, spec.measure, curve=CURVE)
    configuration = Configuration({"optimiser": "sgd", "rate": 50.0, "momentum": 0.99, "batch": 8})
    outcome = runner.measure(lambda: configuration, 0, reporter=Reporter(CURVE))
    assert outcome.status is Status.DIVERGED and "training loss" in outcome.message
    assert "loss" not in outcome.metrics


def test_a_paused_trial_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    spec = read_small("digits-mlp")
    objective = load_objective(spec.objective, Context(spec.workload, {}, tmp_path / "cache"))
    runner = Runner(objective, spec.metrics, spec.measure, curve=CURVE)
    steps: list[int] = []

    def follow(folder: Path, stop_at: int) -> Any:
        def hear(report: Report, waits: bool) -> str:
            steps.append(report.step)
            return "paused" if report.step == stop_at else ""

        reporter = Reporter(CURVE, hear, folder)
        return runner.measure(lambda: spec.space.default(), 7, reporter=reporter)

    assert follow(tmp_path / "paused", stop_at=2).status is Status.PRUNED
    went_on = follow(tmp_path / "paused", stop_at=0)
    assert steps == [1, 2, 3, 4]
    whole = follow(tmp_path / "whole", stop_at=0)
    assert went_on.metrics["loss"].value == whole.metrics["loss"].value


def test_the_text_can_be_asked_for_by_its_hash(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="have the hash"):
        small_objective("language-model", tmp_path, sha256="0" * 64)


def test_a_larger_batch_takes_more_memory(tmp_path: Path) -> None:
    spec = read_spec(SPACES / "largest-batch.yaml")
    workload = {**spec.workload, "width": 32, "layers": 1, "heads": 2, "device": "cpu"}
    objective: Any = load_objective(spec.objective, Context(workload, {}, tmp_path))
    small, large = (
        objective.measure(objective.load({"batch": batch}), np.random.default_rng(0)) for batch in (2, 200)
    )
    assert (small["samples"], large["samples"]) == (2.0, 200.0)
    assert large["peak_memory"] > small["peak_memory"] + 2**24
