"""The space on which thinking is timed, and that the timing runs."""

from __future__ import annotations

import sys

from benchmarks.ask_latency import Cell, own_cell, own_replay, peer_cell, product_space, seconds_of
from benchmarks.peers.client import find


def test_the_space_is_as_large_as_the_table_says() -> None:
    space = product_space()
    assert len(space.knobs) == 10 and len(space.feasible) == 18_474
    assert space.default() in space


def test_times_are_positive_and_differ() -> None:
    space = product_space()
    times = [seconds_of(space.feasible[place]) for place in range(0, 18_474, 1_000)]
    assert min(times) > 0 and len(set(times)) == len(times)


def test_a_cell_has_its_cycles() -> None:
    cell = own_cell("random", history=30, cycles=3)
    assert len(cell.cycles) == 3 and cell.typical > 0 and own_replay("random") > 0


def test_a_cell_that_was_cut_off_says_so() -> None:
    assert str(Cell(200.0, (1.0, 2.0, 3.0), 3)) == "2.0 (mean 2.0, first 200)"
    assert str(Cell(1234.0, (1.0, 2.0), 3)) == "1.5 (mean 1.5, first 1,234, 2 trials)"


def test_a_peer_is_timed_and_cut_off_at_its_limit() -> None:
    found = find("optuna-tpe", (sys.executable,))
    cell = peer_cell(found, history=15, cycles=2, limit=60)
    assert cell is not None and len(cell.cycles) == 2
    cut = peer_cell(found, history=15, cycles=100_000, limit=0.01)
    assert cut is None or len(cut.cycles) < 100_000
