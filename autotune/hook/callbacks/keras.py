"""For Keras: ``model.fit(..., callbacks=[ReportToRun(run)])``."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autotune.hook.run import Run

_Callback: Any = importlib.import_module("keras").callbacks.Callback


class ReportToRun(_Callback):  # type: ignore[misc]
    """Reports the logs of each epoch (``val_loss``), and ends the fit where the trial is to end."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run
        _ = run.should_stop  # who asks is not interrupted by a report

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        self._run.report(epoch + 1, logs or {})
        if self._run.should_stop:
            self.model.stop_training = True
