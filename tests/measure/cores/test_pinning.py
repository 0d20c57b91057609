"""Which cores measure: whole physical ones from the far end, and what is left prepares."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from autotune.measure.cores.pinning import Cores, choose_cores


def pairs(*cores: tuple[int, ...]) -> dict[int, frozenset[int]]:
    return {cpu: frozenset(core) for core in cores for cpu in core}


def test_one_of_two_cores_measures() -> None:
    assert choose_cores(1, (0, 1), pairs((0,), (1,))) == Cores((1,), (0,))


def test_the_other_thread_of_a_measuring_core_idles() -> None:
    assert choose_cores(1, (0, 1, 2, 3), pairs((0, 2), (1, 3))) == Cores((1,), (0, 2))


def test_where_nothing_else_is_left_the_other_thread_prepares() -> None:
    assert choose_cores(1, (0, 1), pairs((0, 1))) == Cores((0,), (1,))


def test_physical_cores_come_before_their_other_threads() -> None:
    assert choose_cores(2, (0, 1, 2, 3), pairs((0, 1), (2, 3))).measuring == (0, 2)
    assert choose_cores(3, (0, 1, 2, 3), pairs((0, 1), (2, 3))).measuring == (0, 2, 3)


def test_a_machine_of_one_core_does_both() -> None:
    assert choose_cores(1, (5,), {}) == Cores((5,), (5,))


def test_not_pinned() -> None:
    assert choose_cores(0, (0, 1), {}) == Cores((), (0, 1))


def test_cores_that_are_taken_are_left_alone_as_long_as_one_is_left_to_prepare_on() -> None:
    four = pairs((0,), (1,), (2,), (3,))
    assert choose_cores(1, (0, 1, 2, 3), four, frozenset({3})) == Cores((2,), (0, 1))
    assert choose_cores(2, (0, 1, 2, 3), four, frozenset({3})) == Cores((1, 2), (0,))
    assert choose_cores(1, (0, 1, 2, 3), four, frozenset({1, 2, 3})) == Cores((3,), (0,), shared=True)
    assert choose_cores(1, (0, 1), pairs((0,), (1,)), frozenset({1})) == Cores((1,), (0,), shared=True)
    assert choose_cores(1, (0,), pairs((0,)), frozenset({0})) == Cores((0,), (0,), shared=True)
    two_threads = pairs((0, 2), (1, 3))
    shared = choose_cores(1, (0, 1, 2, 3), two_threads, frozenset({1, 3}))
    assert shared == Cores((1,), (0, 2), shared=True)


@given(st.integers(0, 9), st.sets(st.integers(0, 15), min_size=1), st.integers(1, 4))
def test_cores_are_allowed_ones_and_apart_where_they_can_be(
    wanted: int, allowed: set[int], width: int
) -> None:
    siblings = {cpu: frozenset(range(cpu - cpu % width, cpu - cpu % width + width)) for cpu in range(16)}
    cores = choose_cores(wanted, tuple(allowed), siblings)
    assert set(cores.measuring) <= allowed and set(cores.preparing) <= allowed
    assert len(cores.measuring) == min(wanted, len(allowed))
    assert cores.preparing
    if len(allowed) > wanted:
        assert not set(cores.measuring) & set(cores.preparing)
