"""What of a training counts, and when."""

from __future__ import annotations

from typing import Any

from benchmarks.training import best_at, table, time_to


def line(way: str, *improved: tuple[float, float]) -> dict[str, Any]:
    head = {"space": "digits-mlp", "way": way, "seed": 0, "seconds": 60.0}
    return {**head, "improved": list(improved), "steps": 1, "trials": 1}


def test_a_loss_that_is_reported_after_the_time_counts_for_nobody() -> None:
    """A session lets the last training go on for a moment; it was said to be at the level, others not."""
    late = line("autotune", (30.0, 0.2), (60.5, 0.1))
    assert best_at(late, 60.0) == 0.2
    assert time_to(late, 0.1) is None
    assert time_to(late, 0.2) == 30.0
    rows = table([line("random", (50.0, 0.1)), late], 60.0)
    assert "| 60 | 0/1 |" in rows[-1]
