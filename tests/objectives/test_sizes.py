"""What is of no size, or of a size and a half, is refused before anything is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.measure.load import load_objective
from autotune.measure.objective import Context
from tests.objectives.ready import ready
from tests.objectives.training import needs_torch


@pytest.mark.parametrize(
    ("name", "size"),
    [("gemm-c", "k"), ("stencil-c", "steps"), ("convolution-c", "filter_width"), ("nms-c", "boxes")],
)
@pytest.mark.parametrize("value", [0, -3, 1.5, "x"])
def test_what_is_no_size_is_refused(tmp_path: Path, name: str, size: str, value: object) -> None:
    with pytest.raises(InputError, match=f"refuses this workload: {size} should be a whole number"):
        ready(name, tmp_path).objective(**{size: value})


TORCH = [pytest.mark.torch, needs_torch]


@pytest.mark.parametrize(
    ("name", "size"),
    [
        pytest.param("distributed-matmul", "n", marks=TORCH),
        pytest.param("async-sgd", "workers", marks=TORCH),
        pytest.param("comm-allreduce", "world", marks=TORCH),
        pytest.param("comm-ddp", "samples", marks=TORCH),
        pytest.param("placement-pipeline", "steps", marks=TORCH),
        pytest.param("digits-mlp", "width", marks=TORCH),
        pytest.param("digits-cnn", "channels", marks=TORCH),
        pytest.param("language-model", "heads", marks=TORCH),
    ],
)
def test_nor_is_it_cut_to_a_whole_number(tmp_path: Path, name: str, size: str) -> None:
    """``int`` had taken 1.5 for 1, and measured another workload than the one that is recorded."""
    spec = ready(name, tmp_path).spec
    context = Context({**spec.workload, size: 4.5}, {}, tmp_path)
    with pytest.raises(InputError, match=rf"refuses this workload: {size} .*whole number.* and is 4\.5"):
        load_objective(spec.objective, context)
