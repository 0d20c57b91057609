"""When two results agree."""

from __future__ import annotations

from typing import Any

import pytest

from autotune.session.agreement import judge_again


@pytest.mark.parametrize(
    ("then", "now", "verdict", "why"),
    [
        ({"speedup": (2, 1.9, 2.1)}, {"speedup": (2.05, 2, 2.1)}, "agrees", "the speed-up is as it was"),
        ({"speedup": (2, 1.9, 2.1)}, {"speedup": (3.0, 2.9, 3.1)}, "differs", "better than it was"),
        ({"speedup": (2, 1.9, 2.1)}, {"speedup": (1.5, 1.4, 1.6)}, "differs", "worse than it was"),
        (
            {"speedup": (2, 1.9, 2.1)},
            {"speedup": (1.0, 0.9, 1.1)},
            "differs",
            "no better than the default any",
        ),
        ({"metric": (2, 1.9, 2.1)}, {"metric": (3, 2.9, 3.1)}, "differs", "the measured value is worse"),
        (
            {"metric": (2, 1.9, 2.1), "speedup": (2, 2, 2)},
            {"metric": (2, 1.9, 2.1)},
            "agrees",
            "measured value",
        ),
        ({}, {"metric": (2, 1.9, 2.1)}, "agrees", "nothing was said"),
    ],
)
def test_what_is_said(then: Any, now: Any, verdict: str, why: str) -> None:
    found = judge_again(then, now, 0.01, "minimize")
    assert found[0] == verdict and why in found[1]


def test_more_is_better_where_the_goal_is_to_maximise() -> None:
    assert "better" in judge_again({"metric": (2, 1.9, 2.1)}, {"metric": (3, 2.9, 3.1)}, 0.01, "maximize")[1]
