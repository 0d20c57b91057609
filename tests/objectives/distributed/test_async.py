"""Training by several workers: the synchronous ways agree, staleness is observed and bounded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.measure.objective import Context, Diverged, WrongAnswer
from autotune.space.reading.reader import read_spec
from tests.objectives.distributed.importing import with_fault
from tests.objectives.ready import SPACES
from tests.objectives.training import importable, needs_torch

importable("distributed")

from async_plan import Plan, lead_of  # noqa: E402
from async_sgd import AsyncSgd  # noqa: E402

SPEC = read_spec(SPACES / "async-sgd.yaml")
MODES = SPEC.space.knob("mode").options
BOUND = {metric.name: metric.at_most for metric in SPEC.metrics}["error"]
EASY = {"workers": 2, "width": 16, "depth": 1, "target": 1.8, "validate": 10, "seconds": 60}


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AsyncSgd]:
    objective = AsyncSgd(Context(EASY, {}, tmp_path_factory.mktemp("async")))
    yield objective
    objective.tidy()


@pytest.mark.torch
@needs_torch
def test_the_averaged_server_is_allreduce_is_one_process(training: AsyncSgd) -> None:
    assert training.check(Plan(batch=24), np.random.default_rng(0))["error"] < 1e-4


@pytest.mark.torch
@needs_torch
def test_every_mode_comes_to_an_easy_target_and_says_how(training: AsyncSgd) -> None:
    for mode in MODES:
        for staleness in (0, 2) if mode == "bounded" else (0,):
            plan = Plan(mode, rate=0.2, staleness=staleness)
            values = training.measure(plan, np.random.default_rng(1)).values
            assert values["loss"] <= 1.8 and values["time"] > 0 and values["lead"] <= plan.most_lead
            if mode in ("allreduce", "server"):
                assert values["staleness"] == values["lead"] == 0


FAULTS = {
    "the server takes the sum": ("rooms]).mean(0)", "rooms]).sum(0)"),
    "workers take the sum": ("self.descend(total[:-1] / self.workers)", "self.descend(total[:-1])"),
    "a worker leaves a sample out": (
        "self.rank.rank * self.plan.batch)",
        "self.rank.rank * self.plan.batch - (self.rank.rank > 1))",
    ),
    "momentum is forgotten": ("self.velocity.mul_(self.plan.momentum)", "self.velocity.mul_(0)"),
}


@pytest.mark.torch
@needs_torch
@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_no_step_of_sgd_is_past_the_bound(tmp_path: Path, fault: str) -> None:
    """One process took its steps by the members' own rule, and forgot the momentum as they did."""
    with with_fault("async_sgd.py:AsyncSgd", EASY, "async_ranks.py", *FAULTS[fault], tmp_path) as wrong:
        assert wrong.check(wrong.load({}), np.random.default_rng(0))["error"] > BOUND


@pytest.mark.torch
@needs_torch
def test_a_lead_is_counted_in_steps_also_where_a_message_is_of_several(training: AsyncSgd) -> None:
    """It was counted in messages: four steps were a lead of one."""
    values = training.measure(Plan("easgd", rate=0.2, period=4), np.random.default_rng(1)).values
    assert values["lead"] >= 4 and values["lead"] % 4 == 0


@pytest.mark.torch
@needs_torch
def test_what_explodes_or_does_not_get_there_has_no_time(training: AsyncSgd) -> None:
    with pytest.raises(Diverged, match="the validation loss is"):
        training.measure(Plan("async", rate=100.0, momentum=0.9), np.random.default_rng(1))
    job, training.job = training.job, replace(training.job, target=1e-6, seconds=0.2)
    try:
        with pytest.raises(WrongAnswer, match="and the target 1e-06") as missed:
            training.measure(Plan("server"), np.random.default_rng(1))
    finally:
        training.job = job
    assert missed.value.metrics["loss"] > 1e-6 and "time" not in missed.value.metrics


@pytest.mark.torch
@needs_torch
def test_a_training_ends_when_its_time_is_up_and_is_validated_then(training: AsyncSgd) -> None:
    """Workers that reduce among themselves went on until they were validated, or were taken for silent."""
    for mode in MODES:
        losses = (_when_time_is_up(training, mode, seconds) for seconds in (0.2, 2.0, 20.0))
        # A machine that stands still for some of the time gets further in more.
        assert any(loss < 2.25 for loss in losses), "what it came to, and not what it began with"


def _when_time_is_up(training: AsyncSgd, mode: str, seconds: float) -> float:
    """The loss then, of a training whose target is out of reach and that is not validated before."""
    job, training.job = training.job, replace(training.job, target=1e-6, seconds=seconds, validate=10**6)
    try:
        with pytest.raises(WrongAnswer, match="and the target 1e-06") as missed:
            training.measure(Plan(mode, rate=0.1), np.random.default_rng(1))
    finally:
        training.job = job
    return float(missed.value.metrics["loss"])


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6), st.integers(0, 9))
def test_who_is_sent_on_is_never_further_ahead_than_allowed(clocks: list[int], staleness: int) -> None:
    plan = Plan("bounded", staleness=staleness)
    slowest = clocks.index(min(clocks))
    assert lead_of(slowest, clocks) == 0 <= plan.most_lead, "the slowest is never held back"
    assert all(lead_of(worker, clocks) >= 0 for worker in range(len(clocks)))
    assert Plan("server").most_lead == 0 and Plan("async").most_lead == float("inf")


@needs_torch
def test_the_ready_spaces_are_this_objective(tmp_path: Path) -> None:
    for name in ("async-sgd", "async-sgd-straggler"):
        spec = read_spec(SPACES / f"{name}.yaml")
        assert Plan(**spec.space.default()) == Plan()
        cpus = [device.cpu for device in AsyncSgd(Context(spec.workload, {}, tmp_path)).devices]
        assert cpus == [None, None, None, 0.1 if "straggler" in name else None]
