"""A product on four processes is the product, whatever the layout; what is held is counted."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.errors import InputError
from autotune.measure.loading.load import load_objective
from autotune.measure.objective import Context, OutOfMemory
from autotune.space.reading.reader import read_spec
from tests.objectives.ready import SPACES
from tests.objectives.training import importable, needs_torch

importable("distributed")

from matmul_count import Count, OnTheWay  # noqa: E402
from matmul_plan import LAYOUTS, WORLD, Plan, block_of, needs  # noqa: E402

SPACE = SPACES / "distributed-matmul.yaml"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_blocks_cover_a_matrix_and_panels_the_inner_dimension(layout: str) -> None:
    n, plan = 24, Plan(layout, panel=5)
    covered = np.zeros((n, n), dtype=int)
    for rank in range(WORLD):
        block = block_of(plan, rank, n)
        covered[slice(*block.rows), slice(*block.columns)] += 1
    assert (covered == 1).all()
    for rank in range(WORLD):
        inner = sorted(k for need in needs(plan, rank, n) for k in range(*need.inner))
        assert inner == list(range(n))
        own = block_of(plan, rank, n)
        for need in needs(plan, rank, n):
            a, b = (block_of(plan, owner, n) for owner in need.owners)
            assert a.rows == own.rows and b.columns == own.columns
            assert a.columns[0] <= need.inner[0] and need.inner[1] <= a.columns[1]
            assert b.rows[0] <= need.inner[0] and need.inner[1] <= b.rows[1]


def test_in_cannons_layout_no_two_ask_one_process_for_the_same_at_once() -> None:
    first = [needs(Plan("cannon", panel=12), rank, 24)[0] for rank in range(WORLD)]
    for owners in zip(*(need.owners for need in first), strict=True):
        assert sorted(owners) == list(range(WORLD))


def test_a_copy_that_was_followed_by_the_next_request_is_held_no_longer() -> None:
    """Or a product is over its limit only because the thread that sends had to wait for a core."""
    count = Count(100)
    copies = OnTheWay(count, ahead=0)
    copies.send(1, 0, 10)
    copies.send(2, 0, 10)
    assert count.now == 120
    copies.send(1, 1, 10)
    assert (count.now, count.most) == (120, 120)
    for to, number in ((1, 0), (1, 1), (2, 0), (2, 0)):
        copies.arrived(to, number)
    assert (count.now, count.most) == (100, 120)


def test_panels_that_are_asked_for_ahead_are_all_held() -> None:
    count = Count(100)
    copies = OnTheWay(count, ahead=2)
    for number in range(4):
        copies.send(1, number, 10)
    assert (count.now, count.most) == (130, 130)


def test_nothing_that_several_threads_count_gets_lost() -> None:
    """Each of three others is served by a thread; bytes that one of them had sent were lost to another's."""
    count, interval = Count(0), sys.getswitchinterval()

    def count_some() -> None:
        for _ in range(20_000):
            count.send(1)
            count.add(1)

    threads = [threading.Thread(target=count_some) for _ in range(3)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert (count.sent, count.now, count.most) == (60_000,) * 3


@pytest.fixture(scope="module")
def objective(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("torch")
    spec = read_spec(SPACE)
    workload = {"n": 32, "limit": 0.875}
    found = load_objective(spec.objective, Context(workload, {}, tmp_path_factory.mktemp("cache")))
    yield found
    found.tidy()


@pytest.mark.torch
@needs_torch
@pytest.mark.parametrize(
    ("workload", "says"),
    [({"n": 32, "latency": 1e-3}, "links, which need a bandwidth"), ({"n": 30}, "n is 30, and should be")],
)
def test_what_cannot_be_or_would_be_passed_over_is_refused(
    tmp_path: Path, workload: dict[str, Any], says: str
) -> None:
    """A latency alone was no link: another problem was measured than the one that is recorded."""
    with pytest.raises(InputError, match=f"refuses this workload: .*{says}"):
        load_objective(read_spec(SPACE).objective, Context(workload, {}, tmp_path))


@pytest.mark.torch
@needs_torch
def test_each_layout_gives_the_product(objective: Any) -> None:
    rng = np.random.default_rng(0)
    for layout in LAYOUTS:
        for panel, prefetch in ((4, 0), (5, 2), (16, 1)):
            assert objective.check(Plan(layout, panel, prefetch), rng)["error"] < 1e-5


@pytest.mark.torch
@needs_torch
def test_what_is_held_is_counted_and_limited(objective: Any) -> None:
    rng = np.random.default_rng(1)
    values = objective.measure(Plan("1d", 2, 0), rng).values
    # Three quarters of N^2 over four, and a panel of two rows.
    assert values["held"] == pytest.approx(0.75 + 2 / 32)
    assert values["bytes"] == 4 * 3 * 32 * 32
    with pytest.raises(OutOfMemory, match=r"held .* and may hold 0.875"):
        objective.measure(Plan("1d", 8, 2), rng)
