"""For Lightning: ``Trainer(callbacks=[ReportToRun(run)])``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from autotune.hook.run import Run

try:
    _Callback: Any = importlib.import_module("lightning.pytorch").Callback
except ModuleNotFoundError:
    _Callback = importlib.import_module("pytorch_lightning").Callback


class ReportToRun(_Callback):  # type: ignore[misc]
    """Reports all that was logged (``val_loss``) after each epoch, and ends the fit where the trial does.

    A step of the search's resource is an epoch, or with ``by="steps"`` an optimiser step.
    """

    def __init__(self, run: Run, by: Literal["epochs", "steps"] = "epochs") -> None:
        super().__init__()
        self._run = run
        _ = run.should_stop  # who asks is not interrupted by a report
        self._by = by

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        step = trainer.current_epoch + 1 if self._by == "epochs" else trainer.global_step
        self._run.report(step, trainer.callback_metrics)
        if self._run.should_stop:
            trainer.should_stop = True
