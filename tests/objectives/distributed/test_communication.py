"""Reductions and data-parallel steps: every way of them comes to the same sum, the same parameters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import InputError
from autotune.measure.objective import Context, Infeasible, WrongAnswer
from autotune.space.reading.reader import read_spec
from tests.objectives.distributed.importing import with_fault
from tests.objectives.ready import SPACES
from tests.objectives.training import importable, needs_torch

importable("distributed")

from allreduce_plan import Plan as Reduction  # noqa: E402
from allreduce_work import Took  # noqa: E402
from comm_allreduce import Allreduce, verify_sums  # noqa: E402
from comm_ddp import DataParallel  # noqa: E402
from ddp_plan import Plan, buckets_of  # noqa: E402
from distributed_objective import devices_of  # noqa: E402

KIB = 1024

REDUCTIONS = [
    Reduction(),
    Reduction(chunk=8 * KIB, depth=4, threads=4, connections=2),
    *(Reduction(chunk=12 * KIB, depth=3, algorithm=name) for name in ("ring", "tree", "server")),
    Reduction(chunk=8 * KIB, depth=2, compression="fp16"),
    Reduction(chunk=8 * KIB, depth=2, algorithm="tree", compression="fp16"),
    Reduction(chunk=8 * KIB, depth=2, compression="int8"),
]

STEPS = [
    Plan(),
    Plan(reducer="ddp"),
    Plan(reducer="cycles", bucket_mb=0.01, cycle_ms=0.2),
    Plan(bucket_mb=0.01, depth=1, threads=4, connections=2),
    Plan(bucket_mb=0.01, overlap=False, algorithm="ring"),
    Plan(bucket_mb=0.02, compression="fp16"),
    Plan(bucket_mb=0.02, compression="int8"),
]


@pytest.fixture(scope="module")
def reducing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Allreduce]:
    """Three ranks on the loopback interface: no power of two."""
    workload = {"world": 3, "megabytes": 0.05}
    objective = Allreduce(Context(workload, {}, tmp_path_factory.mktemp("reducing")))
    yield objective
    objective.tidy()


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataParallel]:
    workload = {"world": 2, "width": 48, "depth": 3, "samples": 16, "steps": 2}
    objective = DataParallel(Context(workload, {}, tmp_path_factory.mktemp("training")))
    yield objective
    objective.tidy()


@pytest.mark.torch
@needs_torch
def test_every_reduction_is_the_sum(reducing: Allreduce) -> None:
    names = {metric.name for metric in read_spec(SPACES / "comm-allreduce.yaml").metrics}
    for plan in REDUCTIONS:
        error = reducing.check(plan, np.random.default_rng(1))["error"]
        assert error < (1e-6 if plan.compression == "none" else 2e-3), plan
        sample = reducing.measure(plan, np.random.default_rng(2))
        assert sample.values["time"] == sample.values["exposed"] > 0
        assert set(sample.values) <= names, "a metric without a unit"
    assert sample.facts["network"] == "loopback"


@pytest.mark.torch
@needs_torch
def test_what_is_not_exact_owes_it_to_the_next_time(reducing: Allreduce) -> None:
    """The mean of many reductions comes nearer with int8's error feedback than one reduction is."""
    group = reducing.ranks()
    from allreduce_work import verify

    plan = Reduction(compression="int8")
    once, often = (max(group.run(verify, plan, 1009, 5, rounds).results) for rounds in (1, 16))
    assert often < once / 8


@pytest.mark.torch
@needs_torch
def test_every_step_is_that_of_one_process(training: DataParallel) -> None:
    names = {metric.name for metric in read_spec(SPACES / "comm-ddp.yaml").metrics}
    for plan in STEPS:
        found = training.check(plan, np.random.default_rng(3))
        assert found["error"] < {"none": 1e-4, "fp16": 2e-3, "int8": 5e-2}[plan.compression], plan
        values = training.measure(plan, np.random.default_rng(4)).values
        assert values["time"] > 0 and ("exposed" in values) == (plan.reducer != "ddp")
        assert {*found, *values} <= names, "a metric without a unit"
    assert found["compute"] > 0 and found["communication"] > 0
    assert found["ratio"] == pytest.approx(found["compute"] / found["communication"])


HALVES = ('half = self.plan.compression == "fp16"', "half = True")
FAULTS = {
    "a sum is rounded to halves unasked": ("comm_allreduce.py:Allreduce", "allreduce.py", *HALVES),
    "gradients are rounded to halves unasked": ("comm_ddp.py:DataParallel", "allreduce.py", *HALVES),
    "the mean is a hundredth too small": (
        "comm_ddp.py:DataParallel",
        "ddp_reducer.py",
        "self.rank.world, out=parameter.grad",
        "1.01 * self.rank.world, out=parameter.grad",
    ),
}


@pytest.mark.torch
@needs_torch
@pytest.mark.parametrize("fault", FAULTS)
def test_what_float32_does_not_explain_is_wrong_where_nothing_is_compressed(
    tmp_path: Path, fault: str
) -> None:
    """The spaces' bounds have room for int8, and so had for what was rounded unasked."""
    target, *changed = FAULTS[fault]
    ranks = {"megabytes": 0.05} if "Allreduce" in target else {"width": 48, "depth": 3, "samples": 16}
    with with_fault(target, {"world": 2, **ranks}, *changed, tmp_path) as wrong:
        for seed in range(3):
            with pytest.raises(WrongAnswer, match=r"off by .* explains"):
                wrong.check(wrong.load({}), np.random.default_rng(seed))


@pytest.mark.torch
@needs_torch
def test_pieces_in_the_places_of_others_are_wrong(tmp_path: Path) -> None:
    """Of large pieces the check had only one, and the sum of all elements is the same."""
    other = "out[65536 - part.start :][:65536]"
    swapped = f"{other} if part.stop in (65536, 131072) else out[part]"
    changed = ("allreduce.py", "given[part], out[part], part", f"given[part], {swapped}, part")
    with with_fault("comm_allreduce.py:Allreduce", {"world": 2, "megabytes": 1}, *changed, tmp_path) as wrong:
        plan = wrong.load({"chunk_kb": 256, "depth": 2})
        with pytest.raises(WrongAnswer, match="the sum is off by"):
            wrong.check(plan, np.random.default_rng(0))


def took(got: float = 6.0, checksum: int = 1) -> Took:
    return Took(0.0, 3.0, got, checksum)


def test_sums_that_differ_or_are_not_there_are_wrong() -> None:
    verify_sums(Reduction(), (took(), took()), 1000)
    for answers, says in [
        ((took(), took(checksum=2)), "different sums"),
        ((took(float("nan")), took(float("nan"))), "never written"),
        ((took(6.1), took(6.1)), "instead of 6"),
    ]:
        with pytest.raises(WrongAnswer, match=says):
            verify_sums(Reduction(), answers, 1000)


@pytest.mark.parametrize("elements", [2, 2_000_000])
def test_rounding_is_no_error_and_a_piece_that_is_left_out_is_one(elements: int) -> None:
    """The bound grew with the elements: two failed by rounding, and of millions a whole piece could go."""
    rng = np.random.default_rng(0)
    given = rng.standard_normal((2, elements)).astype(np.float32)
    half = (given[0].astype(np.float16) + given[1].astype(np.float16)).astype(np.float64)
    piece = half.copy()
    piece[: elements // 20 or 1] -= given[1][: elements // 20 or 1]

    def of_both(got: float) -> tuple[Took, ...]:
        return tuple(Took(0.0, float(one.astype(np.float64).sum()), got, 1) for one in given)

    plan = Reduction(compression="fp16")
    verify_sums(plan, of_both(float(half.sum())), elements)
    with pytest.raises(WrongAnswer, match="instead of"):
        verify_sums(plan, of_both(float(piece.sum())), elements)


@pytest.mark.torch
@needs_torch
def test_a_model_without_hidden_layers_is_given_time_as_well(tmp_path: Path) -> None:
    """On a slow link its ranks were to be silent for less than no time."""
    slow = {"world": 1, "width": 512, "depth": 0, "samples": 4, "link": {"bandwidth": 1e6, "latency": 0.0}}
    objective = DataParallel(Context(slow, {}, tmp_path))
    assert objective.check(Plan(), np.random.default_rng(0))["error"] < 1e-4
    objective.tidy()


@pytest.mark.torch
@needs_torch
def test_one_rank_alone_has_nobody_to_wait_for(tmp_path: Path) -> None:
    objective = Allreduce(Context({"world": 1, "megabytes": 0.05}, {}, tmp_path))
    for plan in REDUCTIONS:
        assert objective.check(plan, np.random.default_rng(1))["error"] < 2e-3, plan
    objective.tidy()


@given(st.lists(st.integers(1, 100), min_size=1, max_size=30), st.integers(1, 200), st.integers(1, 200))
def test_buckets_hold_every_tensor_once_and_no_more_than_they_must(
    sizes: list[int], first: int, cap: int
) -> None:
    buckets = buckets_of(sizes, first, cap)
    assert [n for bucket in buckets for n in bucket] == list(range(len(sizes)))
    for number, bucket in enumerate(buckets):
        limit = min(first, cap) if number == 0 else cap
        assert sum(sizes[n] for n in bucket[:-1]) < limit, "it was full before the last one"
        if bucket is not buckets[-1]:
            assert sum(sizes[n] for n in bucket) >= limit


def test_the_ready_spaces_begin_with_what_the_backend_does() -> None:
    of_allreduce, of_ddp = (
        read_spec(SPACES / f"{name}.yaml").space.default() for name in ("comm-allreduce", "comm-ddp")
    )
    for found in (Reduction.of(of_allreduce), Plan(**of_ddp)):
        assert (found.threads, found.connections, found.algorithm) == (2, 1, "gloo")
        assert found.compression == "none" and found.congestion == "host"


@pytest.mark.parametrize(
    "workload, says",
    [
        ({"world": 1, "devices": [{}, {}]}, "devices for 2"),
        ({"link": 3}, "a link is"),
        ({"devices": [{"speed": 2}]}, "unknown fact .speed. in workload.devices"),
        ({"devices": [{"cpu": -0.5}]}, "cpu of a device must be a number above 0"),
        ({"devices": [{"memory": 0}]}, "memory of a device must be a number above 0"),
    ],
)
def test_devices_that_cannot_be_are_refused(workload: dict[str, Any], says: str) -> None:
    with pytest.raises((ValueError, InputError, Infeasible), match=says):
        devices_of(workload)


@pytest.mark.parametrize("world", [0, 2.5])
def test_there_is_a_whole_number_of_ranks(world: float) -> None:
    with pytest.raises(Infeasible, match="world should be a whole number"):
        devices_of({"world": world})
