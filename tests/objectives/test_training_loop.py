"""One training: what it does with its data, its gradients, its checkpoints, and where it explodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.measure.objective import Diverged, Infeasible, OutOfMemory, WrongAnswer
from tests.objectives.training import importable, needs_torch, small_objective

pytestmark = [pytest.mark.torch, needs_torch, pytest.mark.usefixtures("one_thread")]

torch: Any = pytest.importorskip("torch")
importable()

import training_data  # noqa: E402
import training_oracle  # noqa: E402
import training_precision  # noqa: E402
from training_loop import Training  # noqa: E402
from training_objective import refusals  # noqa: E402
from training_oracle import gradient_error, tiny_updates_survive  # noqa: E402
from training_plan import Plan  # noqa: E402
from training_range_test import suggested_rate  # noqa: E402

CPU = torch.device("cpu")
KINDS = [
    {},
    {"dtype": "bfloat16"},
    {"dtype": "bfloat16", "masters": True},
    {"dtype": "float16"},
    {"dtype": "float16", "masters": True},
    {"dtype": "float16", "scaling": "static", "loss_scale": 1024},
]


@pytest.fixture(scope="module")
def objectives(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    cache = tmp_path_factory.mktemp("cache")
    return {name: small_objective(name, cache) for name in ("digits-mlp", "digits-cnn", "language-model")}


def training(objective: Any, plan: Plan, seed: int = 0, steps: int = 3) -> Training:
    samples = objective.step_samples
    return Training(objective.make_model, objective.data, plan, seed, steps, samples, CPU)


@pytest.mark.parametrize("name", ["digits-mlp", "digits-cnn", "language-model"])
def test_a_few_steps_teach_it_something(objectives: dict[str, Any], name: str) -> None:
    run = training(objectives[name], Plan(rate=1e-2, batch=32))
    before, _ = run.validate()
    for _ in range(3):
        run.step()
    after, accuracy = run.validate()
    assert after < 0.9 * before and accuracy > 0.1


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_went_on_from_a_checkpoint_is_what_was_never_stopped(
    objectives: dict[str, Any], tmp_path: Path, kind: dict[str, Any]
) -> None:
    objective, plan = objectives["digits-mlp"], Plan(rate=1e-2, batch=50, schedule="cosine", **kind)
    whole = training(objective, plan)
    losses = [whole.step() for _ in range(3)]
    begun = training(objective, plan)
    begun.step()
    begun.save(tmp_path / "saved")
    resumed = training(objective, plan)
    assert resumed.restore(tmp_path / "saved")
    assert [resumed.step() for _ in range(2)] == losses[1:]
    assert resumed.validate() == whole.validate()


def test_a_checkpoint_of_another_training_is_left_alone(objectives: dict[str, Any], tmp_path: Path) -> None:
    objective = objectives["digits-mlp"]
    training(objective, Plan(), seed=1).save(tmp_path / "saved")
    for other in (training(objective, Plan(), seed=2), training(objective, Plan(rate=1.0), seed=1)):
        assert not other.restore(tmp_path / "saved") and other.progress.step == 0
    assert not training(objective, Plan()).restore(tmp_path / "nothing")


def test_a_loss_that_explodes_ends_it_in_its_first_updates(objectives: dict[str, Any]) -> None:
    run = training(objectives["digits-mlp"], Plan(rate=100.0, optimiser="sgd", batch=8))
    with pytest.raises(Diverged, match="training loss is"):
        run.step()
    assert run.progress.updates <= 20


@given(batch=st.integers(1, 40), accumulate=st.integers(1, 4), seed=st.integers(0, 100))
@settings(max_examples=10, deadline=None, database=None)
def test_each_step_takes_each_sample_once(batch: int, accumulate: int, seed: int) -> None:
    from training_loop import _Order

    order, plan = _Order(37, seed), Plan(batch=batch, accumulate=accumulate)
    for turn in range(2):
        starts = range(37 * turn, 37 * (turn + 1), plan.samples)
        places = [order.places(start, min(start + plan.samples, 37 * (turn + 1))) for start in starts]
        assert sorted(np.concatenate(places)) == list(range(37))


# -- the oracle -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("name", ["digits-mlp", "language-model"])
def test_every_kind_of_precision_is_right(
    objectives: dict[str, Any], name: str, kind: dict[str, Any]
) -> None:
    objective = objectives[name]
    for plan in (Plan(batch=5, accumulate=3, **kind), Plan(batch=7, accumulate=2, recompute=True, **kind)):
        tiny_updates_survive(plan, CPU)
        assert gradient_error(objective.make_model, objective.data, plan, 0, CPU) < 0.1


def test_weights_without_masters_lose_tiny_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    class Narrow(training_precision.Weights):
        """Casts the weights, and updates them as they are."""

        def __init__(self, model: Any, dtype: Any, masters: bool) -> None:
            super().__init__(model.to(dtype), dtype, masters=False)

    plan = Plan(dtype="bfloat16", masters=True)
    tiny_updates_survive(plan, CPU)
    monkeypatch.setattr(training_precision, "Weights", Narrow)
    with pytest.raises(WrongAnswer, match="are lost in bfloat16"):
        tiny_updates_survive(plan, CPU)


@pytest.mark.parametrize("fault", ["not divided", "the last one left out", "scaled"])
def test_a_wrong_sum_of_micro_batches_is_found(
    objectives: dict[str, Any], monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    class Faulty(Training):
        def accumulate(self, chosen: Any) -> Any:
            if self.plan.accumulate == 1:
                return super().accumulate(chosen)
            parts = list(chosen.split(self.plan.batch))
            for part in parts[:-1] if fault == "the last one left out" else parts:
                loss = super().accumulate(part)  # the mean over a part, not its share of the whole
            return loss

    if fault == "scaled":
        monkeypatch.setattr(training_precision.Precision, "gradients", _still_scaled)
        plan = Plan(batch=4, accumulate=2, dtype="float16")
    else:
        monkeypatch.setattr(training_oracle, "Training", Faulty)
        plan = Plan(batch=4, accumulate=2)
    objective = objectives["digits-mlp"]
    with pytest.raises(WrongAnswer, match="differs by"):
        gradient_error(objective.make_model, objective.data, plan, 0, CPU)


@pytest.mark.parametrize("name", ["digits-mlp", "language-model"])
@pytest.mark.parametrize("fault", ["twice as large", "of other samples", "of other targets"])
def test_what_is_wrong_without_micro_batches_is_found_as_well(
    objectives: dict[str, Any], monkeypatch: pytest.MonkeyPatch, fault: str, name: str
) -> None:
    """What it was held against was another training, which had the same mistake."""

    class Faulty(Training):
        def accumulate(self, chosen: Any) -> Any:
            if fault == "of other targets":
                self._train = replace(self._train, targets=self._train.targets.flip(0))
            for _ in range(2 if fault == "twice as large" else 1):
                loss = super().accumulate(chosen + (fault == "of other samples"))
            return loss

    monkeypatch.setattr(training_oracle, "Training", Faulty)
    objective = objectives[name]
    with pytest.raises(WrongAnswer, match="differs by"):
        gradient_error(objective.make_model, objective.data, Plan(batch=8), 0, CPU)


def _still_scaled(self: Any, optimiser: Any) -> list[Any]:
    self.weights.gather()
    return [p.grad for p in self.weights.updated if p.grad is not None]


# -- refusals and baselines -----------------------------------------------------------------------


def test_memory_that_is_not_there_is_typed() -> None:
    with pytest.raises(OutOfMemory, match="can't allocate"), refusals():
        torch.empty(2**60, dtype=torch.uint8)


def test_an_update_larger_than_a_step_is_infeasible(objectives: dict[str, Any]) -> None:
    with pytest.raises(Infeasible, match="more than a step"):
        objectives["language-model"].load({"batch": 65})


def test_the_range_test_suggests_a_rate_that_trains(objectives: dict[str, Any]) -> None:
    objective = objectives["digits-mlp"]
    rate = suggested_rate(objective.make_model, objective.data, Plan(), 0, CPU)
    assert 1e-4 < rate < 1.0
    run = training(objective, replace(Plan(), rate=rate))
    before, _ = run.validate()
    run.step()
    assert run.validate()[0] < before


@pytest.mark.parametrize("name", ["digits-mlp", "digits-cnn", "language-model"])
def test_every_baseline_trains(objectives: dict[str, Any], name: str) -> None:
    objective = objectives[name]
    assert "lr-finder" in {b.name for b in objective.baselines()}
    for baseline in objective.baselines():
        values = objective.measure(objective.load_baseline(baseline), np.random.default_rng(0)).values
        assert np.isfinite(values["loss"]), baseline.name


def test_a_gradient_is_checked_on_no_more_samples_than_there_are(objectives: dict[str, Any]) -> None:
    """Of a text in long windows there are few; the check had failed with an index."""
    objective = objectives["digits-mlp"]
    few = training_data.Part(objective.data.train.inputs[:5], objective.data.train.targets[:5])
    data = replace(objective.data, train=few)
    assert gradient_error(objective.make_model, data, Plan(batch=8, accumulate=2), 0, CPU) < 1e-4


@pytest.mark.parametrize("part", [{"dtype": "float64"}, {"schedule": "none"}, {"coupling": "cubic"}])
def test_a_plan_is_of_what_there_is(part: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=f"there is no {next(iter(part))} '.*'; there are"):
        Plan.of(part)
