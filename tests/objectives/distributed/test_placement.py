"""Placed models learn what the unsplit model learns, on real processes; caps and faults are typed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.measure.loading.load import load_objective
from autotune.measure.objective import Context, Infeasible, OutOfMemory, WrongAnswer
from autotune.space.reading.reader import read_spec
from tests.objectives.distributed.importing import with_fault
from tests.objectives.ready import SPACES
from tests.objectives.training import importable, needs_torch

pytestmark = [pytest.mark.torch, needs_torch]
pytest.importorskip("torch")
importable("distributed")

from placement_plan import Plan  # noqa: E402
from placement_rank import Stepped  # noqa: E402

SMALL: dict[str, dict[str, Any]] = {
    "placement-pipeline": {
        "model": "chain",
        "blocks": 2,
        "width": 8,
        "heads": 2,
        "context": 4,
        "vocabulary": 16,
        "batch": 4,
    },
    "placement-graph": {"model": "graph", "branches": 2, "channels": 4, "side": 4, "classes": 3, "batch": 4},
}


def small(name: str, cache: Path, **device: Any) -> Any:
    """Two devices on the loopback interface, without quotas unless asked for."""
    spec = read_spec(SPACES / f"{name}.yaml")
    workload = {**SMALL[name], "devices": {"one": device, "two": device}, "steps": 2}
    return load_objective(spec.objective, Context(workload, {}, cache))


@pytest.fixture(scope="module", params=sorted(SMALL))
def objective(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    found = small(request.param, tmp_path_factory.mktemp("cache"))
    yield found
    found.tidy()


def test_gradients_and_losses_are_those_of_the_unsplit_model(objective: Any) -> None:
    rng = np.random.default_rng(0)
    places = [(0, 0, 0, 0), (0, 0, 1, 1), (1, 0, 1, 0)]
    for place, micro_batches in zip(places, (1, 2, 4), strict=True):
        for schedule, recompute in product(("gpipe", "1f1b"), (False, True)):
            plan = Plan(place, micro_batches, schedule, recompute)
            assert objective.check(plan, rng)["error"] < 1e-4


def test_a_reading_has_the_time_and_what_each_device_did(objective: Any) -> None:
    sample = objective.measure(Plan((0, 0, 1, 1)), np.random.default_rng(1))
    values = sample.values
    assert 0 < max(values["busy_one"], values["busy_two"]) < 2 * values["time"]
    assert values["peak_one"] >= 0 and sample.facts["world"] == 2
    assert objective.standing() == objective._group.processes


def test_what_the_batch_cannot_be_cut_into_is_infeasible(objective: Any) -> None:
    with pytest.raises(Infeasible, match="no 3 equal parts"):
        objective.load({"place": dict.fromkeys(objective.model.names, "one"), "micro_batches": 3})


def test_baselines_are_plans_that_can_be_measured(objective: Any) -> None:
    rng = np.random.default_rng(2)
    for baseline in objective.baselines():
        assert objective.check(objective.load_baseline(baseline), rng)["error"] < 1e-4
    assert objective.load_baseline(objective.baselines()[1]).place == (0, 0, 1, 1)


def test_a_baseline_that_the_batch_cannot_be_cut_for_says_so(tmp_path: Path) -> None:
    """It ended with an IndexError in a rank, after all layers and links had been measured."""
    spec = read_spec(SPACES / "placement-pipeline.yaml")
    workload = {**SMALL["placement-pipeline"], "batch": 6, "devices": {"one": {}}}
    objective = load_objective(spec.objective, Context(workload, {}, tmp_path))
    for baseline in objective.baselines()[1:]:
        with pytest.raises(Infeasible, match="a batch of 6 has no 4 equal parts"):
            objective.load_baseline(baseline)


def test_a_planted_mistake_is_found(objective: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle itself is told of another model."""
    monkeypatch.setitem(objective.__dict__, "model", objective.model)
    real = objective._run

    def skewed(work: Any, *arguments: Any) -> Any:
        ran = real(work, *arguments)
        for part in ran.results:
            for gradients in part.gradients.values():
                for gradient in gradients.values():
                    gradient *= 1.01
        return ran

    monkeypatch.setattr(objective, "_run", skewed)
    with pytest.raises(WrongAnswer, match="differ from the unsplit model"):
        objective.check(Plan((0, 0, 1, 1)), np.random.default_rng(3))


FAULTS = {
    "no step is made": ("self.optimiser.step()", "pass"),
    "gradients are added to those of the step before": ("self.optimiser.zero_grad()", "pass"),
    "a micro-batch has no gradient": (
        "sum(parts[1:], parts[0]) if parts else None)",
        "(sum(parts[1:], parts[0]) if parts else torch.ones(())) * (micro_batch % 4 < 3))",
    ),
    "what is computed again is another": (
        "self._compute(item, held.inputs, batch)",
        "1.001 * self._compute(item, held.inputs, batch)",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_the_unsplit_model_does_not_do_is_wrong(tmp_path: Path, fault: str) -> None:
    """Gradients that were left from the step before had not been in those that were compared."""
    workload = {**SMALL["placement-pipeline"], "devices": {"one": {}, "two": {}}}
    changed = ("placement_device.py", *FAULTS[fault])
    with with_fault("placement.py:Placement", workload, *changed, tmp_path) as wrong:
        knobs = {
            "place": dict(
                zip(("embed", "block0", "block1", "head"), ("one", "one", "two", "two"), strict=True)
            )
        }
        plan = wrong.load({**knobs, "micro_batches": 4, "recompute": True})
        for seed in range(3):
            with pytest.raises(WrongAnswer, match="differ from the unsplit model"):
                wrong.check(plan, np.random.default_rng(seed))


def test_a_device_over_its_cap_is_out_of_memory_and_named(tmp_path: Path) -> None:
    objective = small("placement-pipeline", tmp_path, memory_mib=0.001)
    try:
        with pytest.raises(OutOfMemory, match=r"the device 'one' took .* MiB, and has 0.001 MiB"):
            for seed in range(3):
                objective.measure(Plan((0, 0, 0, 0)), np.random.default_rng(seed))
        assert objective.standing(), "the group is kept"
    finally:
        objective.tidy()


def test_a_device_says_what_it_can_have(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="unknown fact"):
        small("placement-pipeline", tmp_path, speed=2)
    with pytest.raises(Exception, match="cpu of a device must be a number above 0"):
        small("placement-pipeline", tmp_path, cpu=0)


@pytest.mark.parametrize(
    "devices, says",
    [
        (["one", "two"], "by the name of a device"),
        ({"one": {"latency": 1e-3}}, "needs a bandwidth"),
        ({"one": {"bandwidth": 1e9}, "two": {}}, "some devices have a link and others have none"),
    ],
)
def test_devices_that_cannot_be_are_refused_before_the_first_trial(
    devices: Any, says: str, tmp_path: Path
) -> None:
    spec = read_spec(SPACES / "placement-pipeline.yaml")
    with pytest.raises(Exception, match=says):
        load_objective(spec.objective, Context({**spec.workload, "devices": devices}, {}, tmp_path))


def test_the_name_of_a_device_may_be_a_number(tmp_path: Path) -> None:
    """So YAML reads what looks like one: it was looked up as a text, and not found."""
    spec = read_spec(SPACES / "placement-pipeline.yaml")
    devices = {0: {"cpu": 0.5}, 1: {"memory_mib": 64}}
    found: Any = load_objective(spec.objective, Context({**spec.workload, "devices": devices}, {}, tmp_path))
    assert found.names == ("0", "1") and found.caps == (float("inf"), 64.0)


def test_a_step_is_until_the_last_device_has_ended_it(objective: Any) -> None:
    import sys

    seconds = sys.modules[type(objective).__module__].step_seconds
    one = Stepped(0.0, (1.0, 2.0, 3.5), 0.0, 0)
    two = Stepped(0.2, (0.9, 2.4, 3.0), 0.0, 0)
    assert seconds([one, two]) == pytest.approx(1.1)


def test_the_ready_spaces_fit_their_models(tmp_path: Path) -> None:
    for name in SMALL:
        spec = read_spec(SPACES / f"{name}.yaml")
        objective = load_objective(spec.objective, Context(spec.workload, {}, tmp_path))
        plan = objective.load(spec.space.default())
        assert len(plan.place) == 7
