"""What is left behind where a worker cannot be started: nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.measure.cores.pinning import Cores
from autotune.measure.objective import Context
from autotune.measure.workers.messages import Setup
from autotune.session.execution import slot
from autotune.space.reading.reader import parse_spec
from tests.session.execution.compiled import SPACE


class Cap:
    def __init__(self) -> None:
        self.removed = False

    def remove(self) -> bool:
        self.removed = True
        return True


def refuse(*arguments: object, **named: object) -> None:
    raise OSError("no more processes")


def test_the_cap_of_a_worker_that_was_not_born_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cap = Cap()
    monkeypatch.setattr(slot, "make_cap", lambda size, name: cap)
    monkeypatch.setattr(slot, "Worker", refuse)
    spec = parse_spec(SPACE.replace("measure: {", "measure: {memory: 1 GiB, "), tmp_path / "space.yaml", {})
    setup = Setup(spec.objective, Context({}, {}, tmp_path), spec.metrics, spec.measure)
    factory = slot.WorkerFactory(setup, Cores((0,), (0,), ""))
    with pytest.raises(OSError, match="no more processes"):
        factory.start(slot.Post(slot.MEASURE, (0,)))
    assert cap.removed
