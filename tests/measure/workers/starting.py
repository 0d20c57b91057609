"""A small objective, and one request to a worker of it."""

from __future__ import annotations

from collections.abc import Callable

from autotune.measure.workers.messages import Measure
from autotune.measure.workers.process import Worker
from autotune.space.configuration import Configuration

OBJECTIVE = """
import os, sys, time
def measure(x):
    print("reading", x)
    if x == 13:
        os.abort()
    return float(x)
"""

Start = Callable[..., Worker]


def ask(worker: Worker, x: int, seconds: float = 60) -> object:
    worker.ask(Measure(Configuration({"x": x}), None, 1, seconds), seconds)
    return worker.wait()
