"""How a run is ended from within. Alone in its file, since it is loaded in training scripts as well."""

from __future__ import annotations

from autotune.status import Status


class Stopped(BaseException):
    """Raised by a report that is the last one. Let it pass; no ``except Exception`` stands in its way."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
