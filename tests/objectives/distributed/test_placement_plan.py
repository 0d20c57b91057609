"""Whose turn it is never locks, whatever the assignment; partitions of profiled models."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.objectives.training import importable

importable("distributed")

from placement_partition import Profile, equal_split, pipedream  # noqa: E402
from placement_plan import Plan, make_turns, stages  # noqa: E402

CHAIN = [(), (0,), (1,), (2,), (3,)]
GRAPH = [(), (0,), (0,), (0,), (1, 2, 3)]


def play(plan: Plan, reads: list[tuple[int, ...]]) -> dict[int, int]:
    """Let the devices take their turns until all are done; the most micro-batches that each item held."""
    turns = {device: make_turns(plan, reads, device) for device in set(plan.place)}
    forward: set[tuple[int, int]] = set()
    backward: set[tuple[int, int]] = set()
    readers = [[n for n, inputs in enumerate(reads) if item in inputs] for item in range(len(reads))]
    most = dict.fromkeys(range(len(reads)), 0)

    def ready(task: tuple[str, int, int]) -> bool:
        kind, item, number = task
        if kind == "forward":
            return all((maker, number) in forward for maker in reads[item])
        return all((reader, number) in backward for reader in readers[item])

    while not all(one.done for one in turns.values()):
        tasks = [next((t for t in one.candidates() if ready(t)), None) for one in turns.values()]
        assert any(tasks), "locked"
        for one, task in zip(turns.values(), tasks, strict=True):
            if task is None:
                continue
            one.finish(task)
            (forward if task[0] == "forward" else backward).add(task[1:])
            most[task[1]] = max(most[task[1]], one.forward[task[1]] - one.backward[task[1]])
    assert len(forward) == len(backward) == len(reads) * plan.micro_batches
    return most


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([CHAIN, GRAPH]),
    st.lists(st.integers(0, 3), min_size=5, max_size=5),
    st.integers(1, 9),
    st.sampled_from(["gpipe", "1f1b"]),
)
def test_turns_never_lock(
    reads: list[tuple[int, ...]], place: list[int], micro_batches: int, schedule: str
) -> None:
    most = play(Plan(tuple(place), micro_batches, schedule), reads)
    at = stages(place, reads)
    for item, held in most.items():
        assert held <= (micro_batches if schedule == "gpipe" else max(at) + 1 - at[item])


def test_1f1b_holds_fewer_micro_batches_than_gpipe() -> None:
    place = (0, 0, 1, 1, 1)
    assert play(Plan(place, 8, "gpipe"), CHAIN) == dict.fromkeys(range(5), 8)
    assert play(Plan(place, 8, "1f1b"), CHAIN) == {0: 2, 1: 2, 2: 1, 3: 1, 4: 1}


def test_stages_are_counted_on_the_longest_way() -> None:
    assert stages((0, 1, 0, 1, 0), CHAIN) == [0, 1, 2, 3, 4]
    assert stages((0, 1, 0, 2, 0), GRAPH) == [0, 1, 0, 1, 2]


def test_a_plan_knows_its_items_and_devices() -> None:
    knobs = {"place": {"a": "x", "b": "y"}, "micro_batches": 2, "recompute": True}
    assert Plan.of(knobs, ["a", "b"], ["x", "y"]) == Plan((0, 1), 2, "1f1b", True)
    with pytest.raises(ValueError, match="the model"):
        Plan.of(knobs, ["a", "c"], ["x", "y"])
    with pytest.raises(ValueError, match="no device"):
        Plan.of(knobs, ["a", "b"], ["x"])


def test_an_equal_split_is_in_order() -> None:
    assert equal_split(7, 2) == (0, 0, 0, 0, 1, 1, 1)
    assert equal_split(5, 3) == (0, 0, 1, 1, 2)


def profiled(seconds: list[float], slowness: list[float], sizes: list[int], rate: float) -> Profile:
    count = len(slowness)
    return Profile(
        tuple(tuple(s * slow for slow in slowness) for s in seconds),
        tuple(sizes),
        ((0.0,) * count,) * count,
        ((rate,) * count,) * count,
    )


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=4, max_size=4),
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.lists(st.integers(0, 9), min_size=4, max_size=4),
)
def test_pipedream_is_the_best_of_all_partitions(
    seconds: list[int], slowness: list[int], sizes: list[int]
) -> None:
    profile = profiled([float(s) for s in seconds], [float(s) for s in slowness], sizes, 2.0)
    readers = [[1], [2], [3], []]

    def slowest(place: tuple[int, ...]) -> float:
        found, begin = 0.0, 0
        for end in range(1, 5):
            if end == 4 or place[end] != place[begin]:
                found = max(found, sum(profile.seconds[i][place[begin]] for i in range(begin, end)))
                if end < 4:
                    found = max(found, 2 * sizes[end - 1] / 2.0)
                begin = end
        return found

    def in_stages(place: tuple[int, ...]) -> bool:
        runs = [p for n, p in enumerate(place) if n == 0 or place[n - 1] != p]
        return len(runs) == len(set(runs))

    everything = [p for p in product(range(len(slowness)), repeat=4) if in_stages(p)]
    assert slowest(pipedream(profile, readers)) == pytest.approx(min(map(slowest, everything)))


def test_the_fastest_device_has_the_least_time_in_all() -> None:
    assert profiled([1.0, 2.0], [3.0, 1.0, 2.0], [1, 1], 1.0).fastest() == 1
