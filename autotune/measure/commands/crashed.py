"""The signal that a command has crashed."""

from __future__ import annotations

from autotune.measure.objective import Signal
from autotune.measure.program import Finished
from autotune.status import Status


class CommandCrashed(Signal):
    """The program crashed, or gave no metrics. The attributes are those of an outcome.

    Where it printed that it had too little memory, the status is ``out-of-memory``, as for an objective that
    raises ``MemoryError``.
    """

    status = Status.CRASHED

    def __init__(
        self, message: str, ended: Finished | None = None, mistake: str = "", *, sure: bool = False
    ) -> None:
        super().__init__(message)
        if ended is not None and ended.ran_out_of_memory:
            self.status = Status.OUT_OF_MEMORY  # type: ignore[misc]  # of this one alone
        self.mistake = mistake
        self.sure = sure
        self.exit_code = ended.exit_code if ended else None
        self.signal = ended.signal if ended else None
        self.stderr = ended.stderr if ended else ""
