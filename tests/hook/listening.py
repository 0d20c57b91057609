"""A session's side of runs: what it hears, in this very process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autotune.measure.commands.run_listener import RunListener
from autotune.measure.outcome import Report
from autotune.measure.reports import Curve, Reporter

KNOBS: dict[str, Any] = {"lr": 0.25, "width": 64.0, "nesterov": False, "kind": "adam", "order": ("a", "b")}

Search = Callable[..., RunListener]


class Following:
    """A session that keeps the curve of ``loss`` and ends the trial at the rung where it is told to."""

    def __init__(
        self,
        steps: int = 27,
        rungs: tuple[int, ...] = (1, 3, 9),
        stop_at: int = 10**9,
        pauses: bool = False,
        done: int = 0,
        kept: tuple[int, ...] = (),
    ) -> None:
        self.heard: list[tuple[int, dict[str, float]]] = []
        self.stop_at = stop_at
        curve = Curve(steps, "loss", rungs, done=done, pauses=pauses, rungs=kept)
        self.reporter = Reporter(curve, self.hear)

    def hear(self, report: Report, waits: bool) -> str:
        self.heard.append((report.step, dict(report.metrics)))
        return "behind the others" if waits and report.step >= self.stop_at else ""
