"""For Hugging Face: ``Trainer(..., callbacks=[ReportToRun(run)])``."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from autotune.hook.run import Run

_Callback: Any = importlib.import_module("transformers").TrainerCallback


class ReportToRun(_Callback):  # type: ignore[misc]
    """Reports each evaluation (``eval_loss``), and ends the training where the trial is to end.

    A step of the search's resource is an epoch, or with ``by="steps"`` an optimiser step. Evaluate after
    each: ``TrainingArguments(eval_strategy="epoch")``.
    """

    def __init__(self, run: Run, by: Literal["epochs", "steps"] = "epochs") -> None:
        self._run = run
        _ = run.should_stop  # who asks is not interrupted by a report
        self._by = by

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Mapping[str, Any] | None = None, **_: Any
    ) -> None:
        step = round(state.epoch or 0) if self._by == "epochs" else state.global_step
        self._run.report(step, {name: value for name, value in (metrics or {}).items() if name != "epoch"})
        self.on_step_end(args, state, control)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._run.should_stop:
            control.should_training_stop = True
