"""How it is told that a command died."""

from __future__ import annotations

from autotune.measure.objective import Signal
from autotune.measure.program import Finished
from autotune.status import Status


class CommandCrashed(Signal):
    """The program died, or gave no metrics. The attributes are those of an outcome."""

    status = Status.CRASHED

    def __init__(
        self, message: str, ended: Finished | None = None, mistake: str = "", *, sure: bool = False
    ) -> None:
        super().__init__(message)
        self.mistake = mistake
        self.sure = sure
        self.exit_code = ended.exit_code if ended else None
        self.signal = ended.signal if ended else None
        self.stderr = ended.stderr if ended else ""
