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

    A step of the search's resource is an epoch, or with ``by="steps"`` an optimiser step: then it reports
    after each validation, too, for there may be but one epoch.
    """

    def __init__(self, run: Run, by: Literal["epochs", "steps"] = "epochs") -> None:
        super().__init__()
        self._run = run
        _ = run.should_stop  # who asks is not interrupted by a report
        self._by = by

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._report(trainer, trainer.current_epoch + 1 if self._by == "epochs" else trainer.global_step)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        within_epoch = trainer.state.fn == "fit" and not trainer.sanity_checking and not trainer.is_last_batch
        if self._by == "steps" and within_epoch:  # at its end the metrics of the training are known, too
            self._report(trainer, trainer.global_step)

    def _report(self, trainer: Any, step: int) -> None:
        self._run.report(step, trainer.callback_metrics)
        if self._run.should_stop:
            trainer.should_stop = True
