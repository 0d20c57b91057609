"""What is said in the place of an answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from autotune.measure.outcome import Estimate
from autotune.session.caveats import (
    MOST_OF_A_MESSAGE,
    doubtful,
    fallen,
    fell,
    noiseless,
    nothing_found,
    unchecked,
)
from autotune.session.result import EXHAUSTED
from autotune.session.same_failure import MISTAKEN
from autotune.space.spec import MetricSpec
from autotune.store.records import VerdictRecord


@pytest.mark.parametrize(
    ("statuses", "reason", "changed", "said"),
    [
        ({}, EXHAUSTED, False, "no configuration satisfies the constraints"),
        ({"crashed": 4}, EXHAUSTED, False, "no configuration succeeded"),
        ({"crashed": 4}, MISTAKEN, False, "all trials failed by the same mistake"),
        ({"crashed": 4}, "interrupted", True, "no configuration succeeded"),
        ({"running": 1}, "interrupted", True, "no trial has finished"),
        ({"ok": 1, "crashed": 4}, EXHAUSTED, True, "outside it 1 did"),
    ],
)
def test_why_there_is_no_answer(statuses: dict[str, int], reason: str, changed: bool, said: str) -> None:
    assert said in nothing_found(statuses, reason, changed)


def test_each_bound_that_was_not_checked_is_named() -> None:
    study: Any = SimpleNamespace(
        metrics=[{"name": "time"}, {"name": "error", "at_most": 0}, {"name": "rate", "at_least": 0}]
    )
    assert "reported error, rate, so" in unchecked(study, {})
    assert "reported rate, so" in unchecked(study, {"error": Estimate.of_one(0.0)})
    assert unchecked(study, {name: Estimate.of_one(0.0) for name in ("error", "rate")}) == ""


@pytest.mark.parametrize(
    ("failed", "why"),
    [
        (
            {"the default": ["crashed", "taken"], "vendor": ["ok", ""]},
            ": the default ended as crashed (taken)",
        ),
        ({"the default": ["crashed", ""], "trial 3": ["wrong", "off"]}, ": trial 3 ended as wrong (off)"),
        ({"vendor": ["crashed", "none here"]}, ""),
    ],
)
def test_why_nobody_stood_the_finale(failed: dict[str, list[str]], why: str) -> None:
    """The default may have been the only one that was to be read again beside baselines."""
    document = {"configuration": None, "remark": "no finalist was read", "outcomes": failed}
    assert fallen([VerdictRecord(1, 1, 1, document, 0.0)]) == f"no finalist was read{why}"


def test_a_long_message_is_cut_in_the_remark_on_a_finale_without_a_winner() -> None:
    """Two thousand characters of a compiler's were printed, over many lines, where a remark has one."""
    message = "no kernel\n" + "x" * 2000 + "\nfor this device"
    failed = {"trial 3": ["crashed", message]}
    document = {"configuration": None, "remark": "no finalist was read", "outcomes": failed}
    said = fallen([VerdictRecord(1, 1, 1, document, 0.0)])
    assert said.startswith("no finalist was read: trial 3 ended as crashed (no kernel x")
    assert said.endswith("x for this device)") and len(said) < 2 * MOST_OF_A_MESSAGE


def test_which_finalists_failed_in_a_finale_that_has_a_winner_is_said() -> None:
    """All of them had, and it was said that none was shown to be better than the default."""
    fine, off, bad = ["ok", ""], ["wrong", "off by 1"], ["crashed", ""]
    assert fell({}) == fell({"outcomes": {"the default": fine, "trial 3": fine, "vendor": bad}}) == ""
    assert fell({"outcomes": {"the default": ["timeout", "its limit of 60 s"], "trial 3": fine}}) == (
        "the default ended as timeout when it was measured again (its limit of 60 s)"
    )
    assert fell({"outcomes": {"the default": fine, "trial 3": fine, "trial 1": off}}) == (
        "trial 1, a finalist, ended as wrong when it was measured again (off by 1)"
    )
    assert fell({"outcomes": {"trial 3": bad, "trial 1": off, "trial 2": fine}}) == (
        "2 of 3 finalists failed when measured again: trial 3 as crashed"
    )


def test_a_bound_that_may_not_be_kept_is_said() -> None:
    study: Any = SimpleNamespace(
        metrics=[
            {"name": "seconds", "at_most": 0.5},
            {"name": "rate", "at_least": 10.0},
            {"name": "bytes", "goal": "minimize"},
        ]
    )
    kept = {"seconds": Estimate(0.4, 0.3, 0.5, 12), "rate": Estimate(12.0, 10.0, 14.0, 12)}
    assert doubtful(study, {}) == doubtful(study, kept) == ""
    assert doubtful(study, {"seconds": Estimate(0.4834, 0.31, 0.73, 3)}) == (
        "seconds may be past its bound of 0.5: 3 readings place it between 0.31 and 0.73"
    )
    assert "rate may be past its bound of 10" in doubtful(study, {"rate": Estimate(12.0, 9.0, 14.0, 4)})


def test_a_speed_that_no_clock_has_read_is_said() -> None:
    """A formula in the place of a measurement was given as sure, with an interval of no width."""
    speed, loss = MetricSpec("time", "minimize", "s"), MetricSpec("loss", "minimize")
    same, differs = Estimate(0.5, 0.5, 0.5, 15), Estimate(0.5, 0.49, 0.51, 15)
    assert noiseless(speed, [same, same]).startswith("each reading of time was the same")
    assert noiseless(MetricSpec("rate", "maximize", "items/s"), [same]) != ""
    assert noiseless(speed, [same, differs]) == noiseless(speed, []) == noiseless(loss, [same]) == ""
    assert noiseless(speed, [Estimate.of_one(0.5)]) == "", "one reading is always the same"
