"""Copies in pieces: the code without a GPU, in which all is done at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.errors import InputError
from autotune.measure.loading.load import load_objective
from autotune.measure.objective import Context, WrongAnswer
from autotune.space.reading.reader import read_spec
from tests.objectives.ready import SPACES

torch: Any = pytest.importorskip("torch")

pytestmark = pytest.mark.torch

SPEC = read_spec(SPACES / "comm-copies.yaml")


def copies(**workload: Any) -> Any:
    given = {**SPEC.workload, "megabytes": 8, "products": 1, "device": "cpu", **workload}
    return load_objective(SPEC.objective, Context(given, {}, Path()))


def test_every_staging_brings_all_back() -> None:
    objective = copies()
    for staging in ("pageable", "pinned", "staged"):
        for chunk, depth in ((1024, 3), (3072, 2), (65536, 1)):
            plan = objective.load({"chunk_kb": chunk, "depth": depth, "streams": 1, "staging": staging})
            assert objective.check(plan, np.random.default_rng(0))["error"] < 1e-5
            values = objective.measure(plan, np.random.default_rng(1))
            assert values["time"] > 0 and values["exposed"] <= values["time"]
            assert set(values) <= {metric.name for metric in SPEC.metrics}, "a metric without a unit"


def test_what_does_not_come_back_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    objective = copies()
    monkeypatch.setattr(objective, "_send", lambda *_: None)
    with pytest.raises(WrongAnswer):
        objective.check(objective.load({}), np.random.default_rng(0))
    with pytest.raises(WrongAnswer, match="never written"):
        objective.measure(objective.load({}), np.random.default_rng(0))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so() -> None:
    with pytest.raises(InputError, match="refuses this workload: PyTorch finds no GPU here; the code can be"):
        copies(device="cuda")
