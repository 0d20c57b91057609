"""Keeping other libraries' chatter out of a search, for the length of a call."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet(logger: str) -> Iterator[None]:
    """Inside the block there are no warnings, and ``logger`` logs nothing below an error."""
    log = logging.getLogger(logger)
    level = log.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log.setLevel(logging.ERROR)
        try:
            yield
        finally:
            log.setLevel(level)
