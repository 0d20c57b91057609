"""The exception that ends a run from inside. In a file of its own, since training scripts load it as well."""

from __future__ import annotations

from autotune.status import Status


class Stopped(BaseException):
    """Raised by the last report of a run. Let it pass; ``except Exception`` does not catch it."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
